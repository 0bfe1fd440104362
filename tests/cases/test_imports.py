"""Files of labels that other tools and servers write, about pictures here: none is about another one."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.labels.errors import BadImport
from app.labels.importing.accepting import Choices
from tests.app.labels.taking import bring, make_named_campaign, send
from tests.app.labels.test_imports import known

ELSEWHERE = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """Six pictures, 0.png to 5.png, of cats, dogs and owls."""
    return make_named_campaign(session, examples=6)


def classes(session: Session, campaign: Campaign) -> dict[int, tuple[object, ...]]:
    """The classes that imports give each position."""
    found: dict[int, tuple[Any, ...]] = {**known(session, campaign, imported=True)}
    return {place: label[1] for place, label in found.items()}


def refusal(session: Session, campaign: Campaign, table: str, by: User, **choices: Any) -> str:
    """Why a file is not taken."""
    with pytest.raises(BadImport) as refused:
        bring(session, campaign, table, by, **choices)
    return refused.value.detail


def tasks(*data: dict[str, object], control: str = "class", **annotation: object) -> str:
    """Tasks of Label Studio that all choose a cat."""
    region = {"type": "choices", "from_name": control, "to_name": "image", "value": {"choices": ["cat"]}}
    return json.dumps([{"data": one, "annotations": [{"result": [region], **annotation}]} for one in data])


class TestAddresses:
    """Numbers of pictures in addresses of Label Studio's tasks."""

    def address(self, session: Session, campaign: Campaign, *, dataset: object) -> str:
        """Of the first picture, if it were of this dataset."""
        number = session.scalar(
            select(Example.id).where(Example.dataset_id == campaign.dataset_id, Example.position == 0)
        )
        return f"https://labels.example/api/v1/datasets/{dataset}/examples/{number}/image"

    def test_of_another_dataset_label_nothing_here(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        image = self.address(session, campaign, dataset=ELSEWHERE)

        told = refusal(session, campaign, tasks({"image": image}), admin)
        with_number = refusal(session, campaign, tasks({"image": image, "example_id": 1}), admin)

        assert told.startswith(f"Task 1 is about a picture of the dataset {ELSEWHERE}, which is not this")
        assert "give the picture's filename or position" in with_number
        assert classes(session, campaign) == {}

    def test_of_this_dataset_tell_the_picture_and_agree_with_its_number(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        image = self.address(session, campaign, dataset=campaign.dataset_id)

        told = refusal(session, campaign, tasks({"image": image, "example_id": 7_777_777}), admin)
        bring(session, campaign, tasks({"image": f"{image}?size=200"}), admin)

        assert "says example_id 7777777, and" in told
        assert classes(session, campaign) == {0: (0,)}

    def test_of_no_dataset_are_told(self, session: Session, campaign: Campaign, admin: User) -> None:
        told = refusal(session, campaign, tasks({"image": "https://labels.example/examples/1/image"}), admin)

        assert "names the picture 'https://labels.example/examples/1/image', which is no address" in told

    def test_of_another_dataset_do_not_matter_beside_a_file_name(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        image = self.address(session, campaign, dataset=ELSEWHERE)

        bring(session, campaign, tasks({"image": image, "example_id": 1, "filename": "3.png"}), admin)

        assert classes(session, campaign) == {3: (0,)}


class TestNamesakes:
    """Pictures of one name, as a dataset gets them that grew."""

    @pytest.fixture
    def alike(self, session: Session, campaign: Campaign) -> dict[int, int]:
        """The first and the last picture are called alike, another one but for case; ids by position."""
        names = {0: "cat/1.png", 3: "cat/1.PNG", 5: "cat/1.png"}
        pictures = list(session.scalars(select(Example).where(Example.dataset_id == campaign.dataset_id)))
        for example in pictures:
            example.filename = names.get(example.position, example.filename)
        session.commit()
        return {example.position: example.id for example in pictures}

    def test_are_told_by_their_positions_as_exports_have_them(
        self, session: Session, campaign: Campaign, alike: dict[int, int], admin: User
    ) -> None:
        lines = f"{alike[5]},5,cat/1.png,dog\n{alike[3]},3,cat/1.PNG,owl\n{alike[1]},1,1.png,cat\n"

        bring(session, campaign, f"example_id,position,filename,class\n{lines}", admin)

        assert classes(session, campaign) == {1: (0,), 3: (2,), 5: (1,)}

    def test_are_told_by_their_numbers_where_these_are_of_that_name(
        self, session: Session, campaign: Campaign, alike: dict[int, int], admin: User
    ) -> None:
        head = "example_id,filename,class\n"

        bring(session, campaign, f"{head}{alike[5]},cat/1.png,dog\n", admin)
        other = refusal(session, campaign, f"{head}{alike[2]},cat/1.png,dog\n", admin)
        alone = refusal(session, campaign, "filename,class\ncat/1.png,dog\n", admin)

        assert classes(session, campaign) == {5: (1,)}
        for told in (other, alone):
            assert "the file 'cat/1.png', which several pictures here are called; write the folders" in told

    def test_are_told_apart_in_tasks_as_well(
        self, session: Session, campaign: Campaign, alike: dict[int, int], admin: User
    ) -> None:
        task = {"filename": "cat/1.png", "position": 5, "example_id": alike[5]}

        bring(session, campaign, tasks(task), admin)

        assert classes(session, campaign) == {5: (0,)}

    def test_a_number_of_another_server_does_not_matter_where_the_name_is_of_one(
        self, session: Session, campaign: Campaign, alike: dict[int, int], admin: User
    ) -> None:
        bring(session, campaign, f"example_id,filename,class\n{alike[1]},2.png,dog\nx7,4.png,cat\n", admin)

        assert classes(session, campaign) == {2: (1,), 4: (0,)}


class TestPositions:
    """Positions may count from 0, as here, or from 1; one off shifts every label."""

    def test_that_could_count_from_1_are_refused_with_both_readings(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        table = "position,class\n1,cat\n2,dog\n3,owl\n"

        told = refusal(session, campaign, table, admin)
        in_tasks = refusal(session, campaign, tasks({"position": 1}, {"position": 2}), admin)

        for sentence in (told, in_tasks):
            assert "counted from 0, position 1 is the second picture; counted from 1, it is the" in sentence
            assert "Say first_position=0 or first_position=1" in sentence
        bring(session, campaign, table, admin, choices=Choices(first_position=1))
        assert classes(session, campaign) == {0: (0,), 1: (1,), 2: (2,)}

    def test_count_as_somebody_says(self, session: Session, campaign: Campaign, admin: User) -> None:
        bring(session, campaign, "position,class\n1,cat\n", admin, choices=Choices(first_position=0))
        one = Choices(first_position=1)
        told = refusal(session, campaign, "position,class\n0,cat\n1,dog\n", admin, choices=one)
        beyond = refusal(session, campaign, "position,class\n7,cat\n", admin, choices=one)
        named = refusal(session, campaign, "filename,position,class\n1.png,1,cat\n", admin, choices=one)

        assert "Line 2 is about position 0, but positions are said to count from 1" in told
        assert "where this campaign has no picture" in beyond
        assert "which are two pictures" in named
        assert classes(session, campaign) == {1: (0,)}

    @pytest.mark.parametrize(
        "table",
        [
            "filename,position,class\n1.png,1,cat\n2.png,2,dog\n",
            "example_id,position,class\n900001,1,cat\n900002,2,dog\n",  # of a server elsewhere
            "position,class\n2,dog\n0,owl\n1,cat\n",
        ],
    )
    def test_beside_which_something_else_stands_count_from_0(
        self, session: Session, campaign: Campaign, admin: User, table: str
    ) -> None:
        bring(session, campaign, table, admin)

        found = classes(session, campaign)
        assert (found[1], found[2]) == ((0,), (1,))

    def test_are_chosen_over_the_api_and_refused_where_they_are_none(
        self, client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        made = send(client, campaign, b"position,class\n1,cat\n6,owl\n", first_position="1")
        wrong = send(client, campaign, b"position,class\n1,cat\n", first_position="2")

        assert (made["state"], classes(session, campaign)) == ("ready", {0: (0,), 5: (2,)})
        assert wrong["detail"] == "first_position is '2'; it may be 0 or 1."

    def test_leave_out_over_the_api_what_somebody_names(
        self, client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        table = b'position,class,"chk, mine"\n0,cat,y\n1,255,n\n2,dog,n\n'

        refused = send(client, campaign, table)
        made = send(client, campaign, table, ignore_columns='"chk, mine"', no_label="255")
        wrong = send(client, campaign, table, no_label="a\x00b")

        assert refused["state"] == "failed"
        assert (made["state"], made["yes"]) == ("ready", 2)
        assert made["notes"] == [
            "Left out, as was asked for: 'chk, mine'.",
            'Left out, because "255" stands for no class: 1 line.',
        ]
        assert classes(session, campaign) == {0: (0,), 2: (1,)}
        assert wrong["detail"] == "no_label has at most 120 characters, and none that cannot be seen."


class TestPeople:
    """One person is one, however their name is written."""

    NAMES = (
        ("Jos\u00e9", "Jose\u0301"),
        ("bob@x.org", "Bob@X.org"),
        ("Ada  Lovelace", "ada lovelace "),
        ("'=Al", "=al"),
    )

    @pytest.mark.parametrize(("one", "other"), NAMES)
    def test_count_once_in_one_file_and_in_two(
        self, *, session: Session, campaign: Campaign, admin: User, one: str, other: str
    ) -> None:
        head = "filename,class,answer,annotator\n"

        first = bring(session, campaign, f"{head}0.png,cat,yes,{one}\n0.png,cat,yes,{other}\n", admin)
        again = bring(session, campaign, f"{head}0.png,cat,yes,{other}\n1.png,dog,yes,{other}\n", admin)
        bring(session, campaign, f"{head}0.png,cat,no,Another\n", admin)

        assert (first.yes, again.yes, again.known) == (1, 2, 1)
        assert 0 not in classes(session, campaign), "one says yes and one says no"

    @pytest.mark.parametrize(("one", "other"), NAMES)
    def test_contradict_themselves_in_one_file_and_in_two(
        self, *, session: Session, campaign: Campaign, admin: User, one: str, other: str
    ) -> None:
        head = "filename,class,annotator\n"

        told = refusal(session, campaign, f"{head}0.png,cat,{one}\n0.png,dog,{other}\n", admin)
        bring(session, campaign, f"{head}0.png,cat,{one}\n", admin, name="first.csv")
        later = refusal(session, campaign, f"{head}0.png,dog,{other}\n", admin)

        assert "but line 2 of 'old.csv' says that it is 'cat', both by" in told
        assert "but line 2 of 'first.csv' says that it is 'cat', both by" in later

    def test_of_label_studio_are_one_by_number_and_address(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        by_number = json.loads(tasks({"filename": "0.png"}, completed_by=1))
        with_address = json.loads(
            tasks({"filename": "0.png"}, completed_by={"id": 1, "email": "a@b.example"})
        )
        other = json.loads(tasks({"filename": "0.png"}, control="not_class", completed_by=2))

        made = bring(session, campaign, json.dumps([*by_number, *with_address, *other]), admin)

        assert (made.yes, made.no) == (1, 1)
        assert classes(session, campaign) == {}, "one says yes and one says no"


VERDICTS = {
    "chk": ("y", "n", "?"),
    "vote": ("\U0001f44d", "\U0001f44e\U0001f3fd"),
    "\u043e\u0442\u0432\u0435\u0442": ("\u0434\u0430", "\u043d\u0435\u0442"),
    "status": ("done", "rejected"),
    "state": ("in review", "approved", "rejected"),
    "wrong": ("x", ""),
    "quality": ("good", "bad"),
    "score": ("0.0", "1.0"),
    "mark": ("\u2714\ufe0f", "\u2716\ufe0f"),
    "x": ("n\u00e3o", "s\u00ec"),
}
NO_VERDICTS = {
    "camera": ("Nikon", "Canon"),
    "side": ("left", "right"),
    "sex": ("m", "f"),
    "count": ("1", "3", "2"),
    "confidence": ("1.0", "1.0"),
    "remark": ("-", "?"),
    "axis": ("x", "y", "z"),
}


FEW = 3  # values of a column that may judge


class TestVerdicts:
    """What may turn a yes into a no is no remark that can be left out."""

    @pytest.mark.parametrize(("column", "cells"), VERDICTS.items(), ids=VERDICTS)
    def test_in_a_column_of_another_name_are_refused(
        self, *, session: Session, campaign: Campaign, admin: User, column: str, cells: tuple[str, ...]
    ) -> None:
        lines = "".join(f"{place}.png,cat,{cell}\n" for place, cell in enumerate(cells))

        told = refusal(session, campaign, f"filename,class,{column}\n{lines}", admin)

        assert f"in the column '{column}'; call it answer if it tells whether" in told
        assert told.endswith(
            "or else take it out of the file, or name it in ignore_columns. Nothing was stored."
        )
        assert classes(session, campaign) == {}

    @pytest.mark.parametrize(("column", "cells"), NO_VERDICTS.items(), ids=NO_VERDICTS)
    def test_are_not_seen_where_there_are_none(
        self, *, session: Session, campaign: Campaign, admin: User, column: str, cells: tuple[str, ...]
    ) -> None:
        lines = "".join(f"{place}.png,cat,{cell}\n" for place, cell in enumerate(cells))
        text = f"filename,class,{column}\n{lines}"

        if 1 < len(set(cells)) <= FEW:  # which may be verdicts in words that nobody knows
            told = refusal(session, campaign, text, admin)
            assert f"in the column '{column}' and nothing else" in told
            bring(session, campaign, text, admin, choices=Choices(ignored=[column]))
            return
        made = bring(session, campaign, text, admin)

        assert made.notes == [f"The column was not read: {column}."]

    @pytest.mark.parametrize(
        "control", ["is_not", "wrong_class", "reject", "isNot", "Not-Class", "kein Tier"]
    )
    def test_in_a_control_of_another_name_are_refused(
        self, session: Session, campaign: Campaign, admin: User, control: str
    ) -> None:
        told = refusal(session, campaign, tasks({"filename": "0.png"}, control=control), admin)

        assert f"Task 1 chooses in the control {control!r}, which sounds like a no; call it not_class" in told
        bring(session, campaign, tasks({"filename": "1.png"}, control="nose_type"), admin)
        assert classes(session, campaign) == {1: (0,)}


class TestWords:
    """What is said of a file calls its parts by their names, and why there is nothing in it."""

    def test_a_task_is_no_line(self, client: TestClient, campaign: Campaign) -> None:
        about: dict[str, object] = {"filename": "0.png"}
        both = tasks(about, completed_by=1), tasks(about, control="not_class", completed_by=1)
        data = json.dumps([*json.loads(both[0]), *json.loads(both[1])])

        made = send(client, campaign, data.encode(), name="ls.json")

        told = "Task 2 says that '0.png' is not 'cat', but task 1 of 'ls.json' says that it is 'cat'"
        assert made["failure"].startswith(told)

    def test_a_file_without_labels_says_what_it_has(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        region = {"type": "taxonomy", "from_name": "class", "value": {"taxonomy": [["animal", "cat"]]}}
        data = json.dumps([{"data": {"filename": "0.png"}, "annotations": [{"result": [region]}]}])

        told = refusal(session, campaign, data, admin)

        assert told == (
            "The file has no labels. 1 region of the type 'taxonomy' not read. Nothing was stored."
        )
