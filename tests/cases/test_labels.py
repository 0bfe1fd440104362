"""Labels from elsewhere as other tools write them, into classes that are called by numbers or words."""

import json
import re
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels.errors import BadImport
from tests.app.labels.taking import bring
from tests.app.labels.test_imports import known
from tests.factories import make_campaign

NUMBERED = ("1", "2", "3")


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """Classes called 1, 2 and 3; the pictures lie in folders of these names, four in each."""
    campaign = make_campaign(session, class_names=NUMBERED, examples=12)
    for example in session.scalars(select(Example).where(Example.dataset_id == campaign.dataset_id)):
        example.filename = f"{example.position // 4 + 1}/{example.position % 4}.png"
    session.commit()
    return campaign


def classes(session: Session, campaign: Campaign) -> dict[int, str]:
    """The class that imports give each position."""
    found: dict[int, tuple[Any, ...]] = {**known(session, campaign, imported=True)}
    return {place: NUMBERED[label[1][0]] for place, label in found.items()}


TAKEN = {
    "counted from 0, as is said": (b"position,class_index\n0,0\n1,1\n2,2\n", {0: "1", 1: "2", 2: "3"}),
    "semicolons": (b"position;class_name\n0;1\n", {0: "1"}),
    "tabs": (b"position\tclass_name\n0\t1\n", {0: "1"}),
    "by file name": (b"filename,class_name\n2/1.png,2\n", {5: "2"}),
    "a folder more": (b"filename,class_name\nphotos/2/1.png,2\n", {5: "2"}),
    "no zone": (b"position,class_name,answered_at\n0,1,2026-01-02 03:04:05\n", {0: "1"}),
    "spaces": (b"position,class_name\n0, 1 \n", {0: "1"}),
    "capitals": (b"position,class_name,answer\n0,1,YES\n", {0: "1"}),
    "an answer of one letter": (b"position,class_name,answer\n0,1,Y\n1,2,y\n", {0: "1", 1: "2"}),
    "as a spreadsheet saves Unicode": ("position\tclass_name\n0\t1\n".encode("utf-16"), {0: "1"}),
    "as a spreadsheet saves": (b"\xef\xbb\xbfPosition,Class_Name\r\n0,1\r\n", {0: "1"}),
}


@pytest.mark.parametrize(("table", "expected"), TAKEN.values(), ids=TAKEN.keys())
def test_a_table_as_people_have_it(
    session: Session, campaign: Campaign, admin: User, table: bytes, expected: dict[int, str]
) -> None:
    bring(session, campaign, table, admin)

    assert classes(session, campaign) == expected


REFUSED = {
    "a 0 among names": (
        b"position,class\n0,0\n1,1\n2,2\n",
        "'0', which this campaign does not have; the classes are called by numbers (1, 2 and 3): if the file "
        "counts them instead, call the column class_index, or say first_class=0 or first_class=1",
    ),
    "both readings fit": (b"position,class\n0,1\n1,2\n", "can be read in two ways"),
    "places as fractions": (
        b"position,class_name\n0.0,1\n",
        "names the picture '0.0', which is no whole number",
    ),
    "a date of one country": (
        b"position,class_name,answered_at\n0,1,01/02/2026\n",
        "not like 2026-11-21T12:00Z",
    ),
    "another column": (b"image_number,label\n0,1\n", "The first line must name the columns"),
    "an id of no file": (b"image_id,label\n0,3\n", "is about the file '0', which is none of this campaign's"),
    "an old encoding": ("position,class_name\n0,Käse\n".encode("cp1252"), "save it as “CSV UTF-8”"),
    "a word": (b"position,class_name\n0,ONE\n", "the class 'ONE', which this campaign does not have"),
    "JSON-MIN": (
        b'[{"image": "/data/upload/1/3f2a-1.png", "id": 1, "choice": "1"}]',
        "(its JSON, not JSON-MIN)",
    ),
}


@pytest.mark.parametrize(("table", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_could_mean_something_else_is_refused_in_words(
    session: Session, campaign: Campaign, admin: User, table: bytes, words: str
) -> None:
    with pytest.raises(BadImport) as refused:
        bring(session, campaign, table, admin)

    assert words in refused.value.detail
    assert classes(session, campaign) == {}


def task_of(image: str) -> bytes:
    """A task of Label Studio that tells its picture by the address alone, of class 3."""
    region = {"value": {"choices": ["3"]}, "from_name": "choice", "to_name": "image", "type": "choices"}
    data = {"image": image} if image else {}
    return json.dumps([{"id": 1, "data": data, "annotations": [{"result": [region]}]}]).encode()


@pytest.mark.parametrize(
    "image",
    [
        "/data/local-files/?d=photos/2/1.png",
        "s3://bucket/2/1.png",
        "https://elsewhere.example/x/2/1.png?size=9",
    ],
)
def test_the_end_of_an_address_in_label_studio_tells_the_picture(
    session: Session, campaign: Campaign, admin: User, image: str
) -> None:
    made = bring(session, campaign, task_of(image), admin)

    assert classes(session, campaign) == {5: "3"}
    assert made.notes == ["The address of the image told the picture of 1 annotation, by its end."]


def test_a_picture_that_label_studio_was_sent_is_told_without_its_digits(
    session: Session, campaign: Campaign, admin: User
) -> None:
    example = session.scalars(select(Example).where(Example.filename == "2/1.png")).one()
    example.filename = "2/own.png"
    session.commit()

    bring(session, campaign, task_of("/data/upload/1/0a1b2c3d-own.png"), admin)

    assert classes(session, campaign) == {5: "3"}


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("/data/upload/1/0a1b2c3d-1.png", "which several pictures here are called; write the folders"),
        ("/data/upload/1/3f2a-1.png", "or could be several, write its name here as filename into the task's"),
        (
            "https://elsewhere.example/pictures/7",
            "which names no file; write the file's name as filename into",
        ),
        ("data:image/png;base64,aaaa.png", "which names no file; write the file's name as filename into"),
        ("", "does not say its picture; write the file's name as filename into the task's data"),
    ],
)
def test_an_address_that_tells_no_picture_is_refused_with_what_to_write(
    session: Session, campaign: Campaign, admin: User, image: str, words: str
) -> None:
    with pytest.raises(BadImport, match=re.escape(words)):
        bring(session, campaign, task_of(image), admin)
