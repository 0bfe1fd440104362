"""Names of classes: which spellings are one, and which class of one list is which of another."""

import random
from pathlib import Path

import pytest
from PIL import Image

from clarinet import load_folder
from clarinet.files.names import (
    NO_LABEL,
    is_printable,
    natural,
    numbers_among,
    plain_number,
    require_distinct_classes,
    sameness,
    share_no_class,
    strangers,
    tidy,
)
from clarinet.recipes.errors import DataError

SAME = [
    ("cat", "Cat"),
    ("caf\u00e9", "cafe\u0301"),
    ("stra\u00dfe", "STRASSE"),
    ("polar bear", " polar  bear\u00a0"),
    ("cat", "c\u200bat\ufeff"),
    ("cat", "\u3164cat\u2060"),  # a blank letter of Hangul
    ("\u2764", "\u2764\ufe0f"),  # with a sign that it is an emoji
    ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u062e"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_people_take_these_for_one(one: str, other: str) -> None:
    assert sameness(one) == sameness(other)
    assert numbers_among(["owl", one], [other, "dog"]) == [1, NO_LABEL]
    with pytest.raises(DataError, match=r"labels has the classes .*, of which two are the same"):
        require_distinct_classes("labels", [one, other])


@pytest.mark.parametrize(
    ("one", "other"), [("cat", "cats"), ("1", "01"), ("o", "\u00f6"), ("polar bear", "polarbear")]
)
def test_these_are_two(one: str, other: str) -> None:
    assert numbers_among([one], [other]) == [NO_LABEL]
    require_distinct_classes("labels", [one, other])


def test_a_tidy_name_is_the_same_name_and_stays_tidy() -> None:
    kept = "\u0645\u06cc\u200c\u062e"  # nobody can write this without the joiner

    for one, other in SAME:
        assert sameness(tidy(one)) == sameness(one) == sameness(tidy(other))
        assert tidy(tidy(one)) == tidy(one)
    assert tidy("  polar\u00a0 \u202ebear\ufeff ") == "polar bear"
    assert tidy("cafe\u0301") == "caf\u00e9"
    assert tidy(kept) == kept
    assert is_printable(kept)
    assert not is_printable("a\x1bb")
    assert not is_printable("a\u202eb")


def test_what_is_no_class_is_said_with_its_name_and_number() -> None:
    assert strangers(["cat", "owl"], ["Cat", "owls", "dog"], [20, 13, 0], total=40) == (
        "13 of 40 test images are of owls, which is no class of this campaign"
    )
    assert strangers(["cat"], ["a", "b", "c"], [1, 1, 1], whose="model") == (
        "3 of 3 test images are of a, b and c, which are no classes of this model"
    )
    assert strangers(["cat"], list("abcdefg"), [1] * 7).startswith(
        "7 of 7 test images are of a, b, c, d, e and 2 more"
    )
    assert strangers(["cat"], ["CAT"], [1]) == ""


def test_numbers_of_any_length_and_script_are_in_order() -> None:
    huge = "1" * 5_000  # more digits than Python takes for a number
    in_order = ["0", "2", "\u0663", "007", "10", "a2", "a10", f"a{huge[1:]}", f"a{huge}", "a b"]

    mixed = random.Random(0).sample(in_order, len(in_order))
    assert sorted(mixed, key=natural) == in_order
    drawn = random.Random(0).sample(range(10**6), 200)
    assert sorted(map(str, drawn), key=natural) == list(map(str, sorted(drawn)))
    assert [plain_number(digits) for digits in ("000", "007", "\u0661\u0662", huge)] == ["0", "7", "12", huge]


def test_the_very_name_goes_first_and_what_could_mean_two_means_none() -> None:
    """Older data sets hold two spellings as two classes."""
    assert numbers_among(["Cat", "cat", "dog"], ["cat", "Cat", "CAT", "Dog"]) == [1, 0, NO_LABEL, 2]


def test_folders_are_counted_by_names_that_are_written_otherwise(tmp_path: Path) -> None:
    for name in ("DOG", "Cat"):
        (tmp_path / name).mkdir()
        Image.new("L", (8, 8)).save(tmp_path / name / "a.png")

    arrays, _ = load_folder(tmp_path, side=8, class_names=["cat", "owl", "dog"])

    assert arrays["y_train"].tolist() == [0, 2]  # in the order of the paths: Cat, DOG


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (["cat", "dog"], ["Dog", "owl"], False),
        (["cat", "dog"], ["oak", "elm"], True),
        (["cat", "dog"], ["0", "1"], False),
        (["0", "1"], ["5", "6"], False),
        (["cat"], [], False),
        (["caf\u00e9"], ["CAFE\u0301"], False),
        (["2", "cat"], ["2", "oak"], False),
    ],
)
def test_names_have_none_in_common_or_some(one: list[str], other: list[str], *, apart: bool) -> None:
    """Numbers are no names: an npz counts what it does not name."""
    assert share_no_class(one, other) == share_no_class(other, one) == apart
