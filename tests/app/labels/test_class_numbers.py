"""A column of class numbers in a file of labels: names or places, for the whole file."""

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.labels.errors import BadImport
from tests.app.labels.taking import bring
from tests.app.labels.test_imports import known
from tests.factories import make_campaign

NUMBERED = ("1", "2", "3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("position,class\n0,3\n1,1\n", {0: "3", 1: "1"}),  # 3 is no place: all are names
        ("position,class\n0,03\n1,1\n", {0: "3", 1: "1"}),
        ("position,class_name\n0,1\n1,2\n", {0: "1", 1: "2"}),
        ("position,class_index\n0,1\n1,2\n2,0\n", {0: "2", 1: "3"}),
        ("position;label\n0;3\n", {0: "3"}),
        ("position\tclass_index\tclass_name\n0\t2\t3\n", {0: "3"}),
    ],
)
def test_a_column_of_numbers_is_names_or_places_for_the_whole_file(
    session: Session, admin: User, text: str, expected: dict[int, str]
) -> None:
    campaign = make_campaign(session, class_names=NUMBERED)

    bring(session, campaign, text, admin)

    found = known(session, campaign, imported=True)
    numbers = {position: found[position][1] for position in expected}
    assert numbers == {position: (NUMBERED.index(name),) for position, name in expected.items()}


@pytest.mark.parametrize("text", ["position,class\n0,1\n1,2\n", "position,label\n0,2\n"])
def test_where_both_readings_fit_the_file_is_refused_with_both(
    session: Session, admin: User, text: str
) -> None:
    campaign = make_campaign(session, class_names=NUMBERED)

    with pytest.raises(
        BadImport, match=r"class called '.', or as the class at place . counted from 0, which is"
    ):
        bring(session, campaign, text, admin)


@pytest.mark.parametrize(
    ("class_names", "cells", "expected"),
    [
        (("07", "08", "09"), "79", [0, 2]),  # a spreadsheet takes zeros off
        (("01", "02", "03", "04"), "42", [3, 1]),
        (("0", "2", "4"), "024", [0, 1, 2]),
        (("1", "01", "2"), "2", [2]),
    ],
)
def test_a_number_is_the_name_of_a_class_that_is_called_so(
    session: Session, admin: User, class_names: tuple[str, ...], cells: str, expected: list[int]
) -> None:
    campaign = make_campaign(session, class_names=class_names)
    lines = "".join(f"{place},{cell}\n" for place, cell in enumerate(cells))

    made = bring(session, campaign, f"position,label\n{lines}", admin)

    found = known(session, campaign, imported=True)
    assert [found[place][1] for place in range(len(cells))] == [(class_,) for class_ in expected]
    assert made.notes == []


@pytest.mark.parametrize(
    ("class_names", "cells", "words"),
    [
        (
            ("0", "2", "4"),
            "021",
            "Line 4 is about the class '1', which this campaign does not have; the classes",
        ),
        (
            ("1", "2", "3"),
            "012",
            "Line 2 is about the class '0', .* call the column class_index, or say first_",
        ),
        (
            ("01", "02", "03"),
            "12",
            "class called '01', or as the class at place 1 counted from 0, which is '02'",
        ),
        (("01", "1", "2"), "0", "Line 2 is about the class '0'"),
    ],
)
def test_a_number_that_is_no_name_makes_no_places_of_the_others(
    *, session: Session, admin: User, class_names: tuple[str, ...], cells: str, words: str
) -> None:
    campaign = make_campaign(session, class_names=class_names)
    lines = "".join(f"{place},{cell}\n" for place, cell in enumerate(cells))

    with pytest.raises(BadImport, match=words):
        bring(session, campaign, f"position,label\n{lines}", admin)


def test_zeros_in_front_do_not_count_in_a_column_of_names(session: Session, admin: User) -> None:
    campaign = make_campaign(session, class_names=("01", "02", "03"))

    bring(session, campaign, "position,class_name,label\n0,1,01\n1,2,02\n", admin)

    assert known(session, campaign, imported=True)[1][1] == (1,)


def test_where_both_readings_are_one_nothing_is_asked(session: Session, admin: User) -> None:
    campaign = make_campaign(session, class_names=("0", "1", "2"))

    bring(session, campaign, "position,class\n0,2\n1,0\n", admin)
