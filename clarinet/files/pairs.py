"""Folders that are no classes: pictures that say where things lie in others, and what holds all images. Pure.

Data for segmentation come as `images/1.jpg` beside `masks/1.png`, as `train` beside `train_masks`, or as
`1_mask.png` beside `1.png`. Taken as they lie, "images" and "masks" would be classes. The rules, which
folders of real classes do not meet:

1. A folder is called like one of MARKS, perhaps with other words. Beside it is one folder with the same other
   words, which is called like one of IMAGES or is a split. Every further folder there is called so, too.
2. More than half of the pictures in the former are called like one in the latter: `1.png`, or with a word
   more, as `1_mask.png`, for `1.jpg`; or with nnU-Net's channel less, as `1.png` for `1_0000.png`. Then the
   former are left out.
3. More than half of all pictures have another beside them that has their name and a word of MARKS more. Then
   these are left out.
4. A folder called like one of IMAGES, and no other beside it, is only around images: in a class, too.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from clarinet.files.names import in_a_row, sameness
from clarinet.files.splits import split_word
from clarinet.recipes.counting import many

_IMAGES = "images image imgs img jpegimages jpgs jpg jpegs jpeg pngs png photos pictures inputs input rgb"
_MARKS = """
masks mask annotations annotation annots labels label seg segs segmentation segmentations segmentationclass
segmentationobject gt groundtruth groundtruths trimaps trimap mattes instances semantic labelids depth depths
edges targets
"""
CLASS_LIST = "classes.txt"  # a class a line, in the order that counts them
IMAGES, MARKS = frozenset(_IMAGES.split()), frozenset(_MARKS.split())
_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_CHANNEL = re.compile(r"_\d{4}$")
_LAST_WORD = re.compile(r"[\s_.-]+([^\W\d_]+)[\s_.-]*\d*")

Parts = Sequence[str]
Folder = tuple[str, ...]


@dataclass(slots=True)
class Paired:
    """What is left of the paths.

    Args:
        parts: of each path that counts, without folders that are only around images.
        left: paths of what marks others.
        remarks: sentences without their full stop.
    """

    parts: dict[str, list[str]]
    left: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)


def without_marks(paths: Iterable[str], class_names: Iterable[str] = ()) -> Paired:
    """Take off what the rules above say.

    Args:
        paths: of images, relative, with / between their parts.
        class_names: those that are known before or listed beside the images, and stay classes.
    """
    found = Paired({path: path.split("/") for path in paths})
    known = frozenset(map(sameness, class_names))
    around = _leave_out_folders(found, known)
    _leave_out_files(found)
    for path in found.left:
        del found.parts[path]
    found.parts = {path: _without(one, around) for path, one in found.parts.items()}
    _take_off_lone(found, known)
    return found


def is_for_images(name: str) -> bool:
    """Whether a folder's name says that it holds images, and no more."""
    return "".join(_words(name)) in IMAGES


def _leave_out_folders(found: Paired, known: Collection[str]) -> set[Folder]:
    """Rules 1 and 2; gives the folders of images that are only around them."""
    image_folder: dict[Folder, Folder] = {}  # by that of its marks
    for within, folders in sorted(_by_place(found.parts.values()).items()):
        for marks, images in _pairs(folders, known).items():
            image_folder[(*within, marks)] = (*within, images)
    if not image_folder:
        return set()
    found.left |= {path for path, one in found.parts.items() if _lies_below(one, image_folder)}
    of_marks, of_images = (
        in_a_row([f'"{"/".join(folder)}"' for folder in dict.fromkeys(folders)])
        for folders in (image_folder, image_folder.values())
    )
    found.remarks.append(
        f"{of_marks} {'has' if len(image_folder) == 1 else 'have'} pictures of the same names as {of_images}"
        f", which say where things lie in those and are no class: {many(len(found.left), 'file')} left out; "
        f"if they are classes, list them in a {CLASS_LIST} beside them, a name a line; or give the folders "
        "other names, or the classes in a table (filename,class)"
    )
    return {images for images in image_folder.values() if is_for_images(images[-1])}


def _pairs(folders: dict[str, set[str]], known: Collection[str]) -> dict[str, str]:
    """The folder of images for each folder of marks, or none at all."""
    marks = {name: others for name in folders if (others := _words_beside(MARKS, name)) is not None}
    images = {name: _words_beside(IMAGES, name) for name in folders if name not in marks}
    if not marks or any(sameness(name) in known for name in folders):
        return {}
    if any(others is None and not split_word(name) for name, others in images.items()):
        return {}
    pairs = {}
    for name, others in marks.items():
        fitting = [one for one, own in images.items() if (_words(one) if own is None else own) == others]
        if len(fitting) != 1 or not _are_called_alike(folders[name], folders[fitting[0]]):
            return {}
        pairs[name] = fitting[0]
    return pairs


def _leave_out_files(found: Paired) -> None:
    """Rule 3."""
    stems = {stem: path for path in found.parts if path not in found.left and (stem := _stem(path))}
    of = {stem: less for stem in stems if (less := _without_mark(stem)) in stems}
    others = len(stems) - len(of)
    if not of or 2 * len(set(of.values())) <= others:
        return
    found.left |= {stems[stem] for stem in of}
    is_ = (
        "has the name of another and a word more"
        if len(of) == 1
        else "have the names of others and a word more"
    )
    found.remarks.append(
        f'{many(len(of), "picture")} {is_} ("{stems[min(of)]}"), which say where things lie in those: '
        "left out"
    )


def _take_off_lone(found: Paired, known: Collection[str]) -> None:
    """Rule 4, for all such folders or none: where one has another beside it, they are classes."""
    holds: dict[Folder, set[str]] = defaultdict(set)
    for one in found.parts.values():
        for depth, part in enumerate(one):
            holds[tuple(one[:depth])].add(part if depth < len(one) - 1 else "")
    ends = {tuple(one[:-1]) for one in found.parts.values() if len(one) > 1 and is_for_images(one[-2])}
    names = sorted({end[-1] for end in ends})
    if (
        not names
        or any(sameness(name) in known for name in names)
        or any(holds[end[:-1]] != {end[-1]} for end in ends)
    ):
        return
    found.parts = {path: _without(one, ends) for path, one in found.parts.items()}
    told = in_a_row([f'"{name}"' for name in names])
    found.remarks.append(f"{told} holds all images and is taken for the folder around them, not for a class")


def _by_place(paths: Iterable[Parts]) -> dict[Folder, dict[str, set[str]]]:
    """Of each folder that has folders: what files below these are called, without their endings."""
    found: dict[Folder, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in paths:
        for depth in range(len(one) - 1):
            found[tuple(one[:depth])][one[depth]].add(_stem(one[-1]))
    return found


def _stem(path: str) -> str:
    folder, slash, file = path.rpartition("/")
    return f"{folder}{slash}{file.rpartition('.')[0] or file}".casefold()


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORDS.split(name) if word]


def _words_beside(known: Collection[str], name: str) -> list[str] | None:
    """A name's words but for one that is known; None where none is."""
    words = _words(name)
    if "".join(words) in known:
        return []
    others = [word for word in words if word not in known]
    return others if len(others) == len(words) - 1 else None


def _lies_below(one: Parts, folders: Collection[Folder]) -> bool:
    return any(tuple(one[:depth]) in folders for depth in range(1, len(one)))


def _are_called_alike(marks: Collection[str], images: Collection[str]) -> bool:
    """Whether more than half of the marks are called like an image, perhaps with a word more."""
    images = {*images, *(_CHANNEL.sub("", stem) for stem in images)}
    alike = sum(stem in images or any(less in images for less in _with_a_word_less(stem)) for stem in marks)
    return 2 * alike > len(marks)


def _with_a_word_less(stem: str) -> Iterable[str]:
    """A name without a word at its end, or at its beginning."""
    words = re.split(r"([\s_.-]+)", stem)
    if len(words) > 1:
        yield "".join(words[:-2])
        yield "".join(words[2:])


def _without_mark(stem: str) -> str | None:
    """A name without a word of MARKS at its end, perhaps with a number."""
    found = [match for match in _LAST_WORD.finditer(stem) if match.end() == len(stem)]
    return stem[: found[-1].start()] if found and found[-1][1] in MARKS else None


def _without(one: list[str], around: Collection[Folder]) -> list[str]:
    folders = [part for depth, part in enumerate(one[:-1]) if tuple(one[: depth + 1]) not in around]
    return [*folders, one[-1]]
