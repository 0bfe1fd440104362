"""Which folders are splits: by the names that people give them, and by what lies in them. Pure."""

import re
from collections.abc import Collection, Sequence

from clarinet.files.names import in_a_row

SPLITS = ("train", "test")
VALIDATION = ("val", "valid", "validation")  # what others call a third split
THIRD = "validation"
WORDS = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("test", "testing", "tst"), "test"),
    **dict.fromkeys((*VALIDATION, "dev", "development", "eval", "evaluation", "holdout"), THIRD),
}
_FILLING = (
    "dataset",
    "images",
    "image",
    "pictures",
    "photos",
    "samples",
    "split",
    "data",
    "imgs",
    "img",
    "set",
)
# As nnU-Net calls its folders of images, beside `labelsTr`, which marks things in these.
_RUN_TOGETHER = {"imagestr": "train", "imagests": "test", "imagesva": THIRD, "imagesval": THIRD}
_PARTS = re.compile(r"[\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_YEAR = re.compile(r"(?:19|20)\d\d$")
_OF_A_DOMAIN = re.compile(r"(train|training|test|testing|val|valid|validation)[\W_]?[A-Z]", re.IGNORECASE)
_COUNT = re.compile(r"\d+$")
WITH_A_CLASS = 2  # parts of a path: a folder and a file


def split_word(name: str) -> str | None:
    """Which split a name means: train, test or THIRD, as `Training`, `test_images` or `imagesTr` do."""
    if name.casefold() in _RUN_TOGETHER:
        return _RUN_TOGETHER[name.casefold()]
    words = [_bare(_YEAR.sub("", word)) for word in _PARTS.split(name.casefold())]
    left = [word for word in words if word and word not in _FILLING]
    return WORDS.get(left[0]) if len(left) == 1 else None


def split_told(name: str) -> str | None:
    """Which split a name is about, as `trainLabels` is; None where it says none or several."""
    return _part_that_tells(_CAMEL.sub(" ", name))


def _bare(word: str) -> str:
    """A word without what only says that images are in it: "train" of "trainset"."""
    for filling in _FILLING:
        if word.endswith(filling) and word.removesuffix(filling) in WORDS:
            return word.removesuffix(filling)
    return word


def _part_that_tells(name: str) -> str | None:
    """Which split one of a name's words means, as in `seg_train`; None where none or several do."""
    found = {WORDS[word] for word in map(_bare, _PARTS.split(name.casefold())) if word in WORDS}
    return found.pop() if len(found) == 1 else None


def splits_of(paths: Collection[Sequence[str]]) -> tuple[dict[str, str], list[str]]:
    """Which first folders are splits, and what is to be said of some.

    A folder that is called like one and holds images itself, beside other folders, is a class. What is called
    otherwise, as `seg_train` is, is a split where all folders are such and hold class folders. Numbers behind
    the names, as in `test1`, do not count where all folders are splits.
    """
    folders = {parts[0] for parts in paths if len(parts) > 1}
    flat = {parts[0] for parts in paths if len(parts) == WITH_A_CLASS}
    words = {folder: word for folder in folders if (word := split_word(folder))}
    if len(words) < len(folders):
        counted = {folder: split_word(_COUNT.sub("", folder)) for folder in folders}
        if None not in counted.values() and len(set(counted.values())) > 1:
            words = {folder: word for folder, word in counted.items() if word}
    if len(words) < len(folders):
        wide = {folder: _part_that_tells(folder) for folder in folders}
        are_all = None not in wide.values() and not flat and len(set(wide.values())) > 1
        words = (
            {folder: word for folder, word in wide.items() if word}
            if are_all
            else {folder: word for folder, word in words.items() if folder not in flat}
        )
    if not words:
        return {}, _domains_told(folders)
    meant = set(words.values())
    found = {folder: counts_as(word, meant) for folder, word in words.items()}
    told = [
        _told(folder, word, found[folder], holds_images=folder in flat)
        for folder, word in sorted(words.items())
        if _is_odd(folder)
    ]
    return found, told


def _domains_told(folders: Collection[str]) -> list[str]:
    """That folders such as `trainA` and `testB`, the splits of two domains, were taken for classes."""
    found = {name: match[1].casefold() for name in folders if (match := _OF_A_DOMAIN.fullmatch(name))}
    if len({WORDS.get(word) for word in found.values()}) < WITH_A_CLASS:
        return []
    named = in_a_row([f'"{name}"' for name in sorted(found)])
    return [
        f"{named} are taken for classes; if they are the splits of several domains, import each domain by "
        "itself, its folders called train and test"
    ]


def _is_odd(folder: str) -> bool:
    return folder.lower() not in SPLITS


def counts_as(word: str, words: Collection[str]) -> str:
    """The split that images of train, test or THIRD belong to, beside those that there are.

    A third split is the test split where there is none, else further training images.
    """
    if word != THIRD:
        return word
    return "train" if "test" in words else "test"


def third_told(name: str, split: str) -> str:
    """What becomes of a third split, without a full stop."""
    if split == "train":
        return f'"{name}" joins the training images, because there is a test split, too'
    return f'"{name}" is taken for the test split'


def _told(folder: str, word: str, split: str, *, holds_images: bool) -> str:
    told = f'"{folder}" is taken for the {"training" if split == "train" else "test"} split'
    if word == THIRD:
        told = third_told(folder, split)
    return f"{told}; if it is a class, put it into train/{folder}" if holds_images else told
