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
        ("position,class\n0,0\n1,1\n2,2\n", {0: "1", 1: "2", 2: "3"}),  # 0 is no name: all are places
        ("position,class\n0,3\n1,1\n", {0: "3", 1: "1"}),  # 3 is no place: all are names
        ("position,class_name\n0,1\n1,2\n", {0: "1", 1: "2"}),
        ("position,class_index\n0,1\n1,2\n", {0: "2", 1: "3"}),
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


def test_where_both_readings_are_one_nothing_is_asked(session: Session, admin: User) -> None:
    campaign = make_campaign(session, class_names=("0", "1", "2"))

    bring(session, campaign, "position,class\n0,2\n1,0\n", admin)
