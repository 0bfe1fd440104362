"""Whatever an annotator reads, its order says no more about the classes of the pictures than chance does."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.annotation import service
from app.annotation.gold import KnownPicture
from app.annotation.models import Question
from app.annotation.public_ids import public_ids_of
from app.campaigns.models import Campaign
from app.datasets.models import Dataset, Example
from app.main import create_app
from app.settings import Settings
from app.storage import Storage
from tests.factories import make_campaign, make_dataset, make_token, make_user, questions_of

API = "/api/v1"
HTML = {"Accept": "text/html"}
CLASSES = ("cat", "dog", "owl", "fox")
IMAGES = 96
PICTURE = re.compile(r"/pictures/([0-9a-f]+)")
SHUFFLES = 2000
Classes = Callable[[str], int]  # the true class of a picture, by its name


def in_class_folders(session: Session, storage: Storage) -> Dataset:
    """A dataset whose images came class by class, as folders give them."""
    dataset = make_dataset(session, storage, class_names=CLASSES, train=IMAGES, test=0)
    for true_class in range(len(CLASSES)):
        size = IMAGES // len(CLASSES)
        among = (Example.position >= true_class * size, Example.position < (true_class + 1) * size)
        session.execute(
            update(Example).where(Example.dataset_id == dataset.id, *among).values(true_class=true_class)
        )
    session.flush()
    return dataset


def tells(order: Sequence[Any], classes: Sequence[int]) -> bool:
    """Whether pictures of a class stand beside each other, in this order, more than any shuffle puts them."""
    ranked = np.array(classes)[sorted(range(len(order)), key=order.__getitem__)]
    together = int((ranked[1:] == ranked[:-1]).sum())
    chance = np.random.default_rng(0)
    shuffled = chance.permuted(np.tile(ranked, (SHUFFLES, 1)), axis=1)  # (SHUFFLES, N)
    return together > int((shuffled[:, 1:] == shuffled[:, :-1]).sum(axis=1).max())


@dataclass
class Reader:
    """Somebody who writes down every value that stands beside a picture, by where they read it."""

    client: TestClient
    class_of: Classes
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)  # values by place and picture

    def note(self, where: str, value: Any, url: str) -> None:
        """Of each picture once: some come twice, and then stand beside themselves."""
        self.seen.setdefault(where, {}).setdefault(url, value)

    def note_json(self, where: str, items: list[dict[str, Any]]) -> None:
        """Of a list of objects each of which is about a picture: its place, and all that it says."""
        for place, item in enumerate(items):
            url = item["image_url"]
            self.note(f"{where}: place", place, url)
            for name, value in item.items():
                self.note(f"{where}: {name}", value, url)

    def note_page(self, path: str) -> None:
        """The pictures of a page in their order; and what stands before each."""
        page = self.client.get(path, headers=HTML)
        assert page.status_code == 200, path
        for place, found in enumerate(PICTURE.finditer(page.text)):
            self.note(f"{path}: place", place, found[0])
            self.note(f"{path}: name", found[1], found[0])

    def note_picture(self, url: str) -> None:
        """What a picture's response says beside its bytes, and to a browser that has it."""
        for given in ({}, {"If-None-Match": "*"}):
            answer = self.client.get(url, headers=given)
            assert answer.status_code in (200, 304), url
            for name, value in answer.headers.items():
                if name != "content-length":  # of the bytes, which everybody sees
                    self.note(f"picture, {answer.status_code}: {name}", value, url)

    def telling(self) -> list[str]:
        """Where values are that tell: by their letters, or by one of the numbers in them."""
        found = []
        for where, rows in self.seen.items():
            values, classes = list(rows.values()), [self.class_of(url) for url in rows]
            numbers = [[int(each) for each in re.findall(r"\d+", str(value))] for value in values]
            orders: list[list[Any]] = [[str(value) for value in values]]
            if len({len(each) for each in numbers}) == 1:
                orders += [[each[place] for each in numbers] for place in range(len(numbers[0]))]
            if any(tells(order, classes) for order in orders):
                found.append(where)
        return found


def class_of(session: Session, campaign: Campaign) -> Classes:
    """Looks a picture's class up, as only the server can."""
    ids = public_ids_of(session, campaign.id)
    known = {row.id: row.true_class for row in session.execute(select(Example.id, Example.true_class))}

    def look(url: str) -> int:
        plain = re.search(r"/examples/(\d+)/", url)
        name = PICTURE.search(url)
        found = known[int(plain[1]) if plain else ids.example_id(name[1] if name else "")]
        assert found is not None
        return int(found)

    return look


@pytest.mark.parametrize("execution", ["fast", "plain"])
def test_no_order_that_an_annotator_reads_tells_classes(
    *, execution: str, app: FastAPI, settings: Settings, session: Session, storage: Storage
) -> None:
    if execution == "plain":
        app = create_app(settings, database=app.state.database, publish=app.state.publish, answering="plain")
    dataset = in_class_folders(session, storage)
    campaign = make_campaign(session, dataset=dataset)
    campaign.gold_share = 0.2
    campaign.gold_bound = 0  # whoever says no to everything goes on
    # Every picture stands beside a class, so that the screen shows all.
    for item, start in zip(campaign.classes, range(0, IMAGES, IMAGES // len(CLASSES)), strict=True):
        query = select(Example.id).where(Example.dataset_id == dataset.id).order_by(Example.position)
        item.example_ids = list(session.scalars(query))[start : start + 3]
    known = [KnownPicture(question.example_id, 0) for question in questions_of(session, campaign)[::4]]
    session.flush()
    service.mark_known(
        session, campaign, known, by=session.get_one(type(make_user(session)), dataset.created_by_id)
    )
    token = make_token(session, make_user(session))
    client = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    here = f"{API}/campaigns/{campaign.id}"
    reader = Reader(client, class_of(session, campaign))

    def answer(questions: list[dict[str, Any]], **more: Any) -> Any:
        given = [
            {"question_id": item["id"], "value": "no", "response_ms": 900, "key": str(uuid4())}
            for item in questions
        ]
        reply = client.post(f"{here}/answers", json={"answers": given} | more)
        assert reply.status_code == 200, reply.text
        return reply.json()

    leased = client.post(f"{here}/questions", json={"count": 40}).json()["questions"]
    reader.note_json("questions", leased)
    for item in leased:
        reader.note_picture(item["image_url"])
    told = answer(leased, next={"count": 100})["next"]["questions"]
    reader.note_json("next", told)
    answer(told[:50])
    undone = client.post(f"{here}/undo", json={"count": 30}).json()["undone"]
    reader.note_json("undo", [item["question"] for item in undone])
    reader.note_json("my answers", client.get(f"{here}/my-answers").json()["items"])
    reader.note_page(f"/annotate/{campaign.id}/answers")
    reader.note_page(f"/annotate/{campaign.id}")

    assert reader.telling() == [f"/annotate/{campaign.id}: place"], "only the pictures that admins put there"
    shown = client.get(here).json()["classes"]
    assert [item["example_ids"] for item in shown] == [[]] * len(CLASSES)
    # The test finds what numbers would tell.
    asked = [
        session.get_one(Question, public_ids_of(session, campaign.id).question_id(q["id"])) for q in leased
    ]
    true = [reader.class_of(item["image_url"]) for item in leased]
    assert tells([question.example_id for question in asked], true)
    plain = f"{API}/datasets/{dataset.id}/examples/{asked[0].example_id}/image"
    assert (
        client.get(plain).status_code == client.get(plain, headers={"If-None-Match": "*"}).status_code == 404
    )


def test_closing_reveals_no_name(session: Session, storage: Storage) -> None:
    dataset = make_dataset(session, storage)
    first, second = (make_campaign(session, dataset=dataset) for _ in range(2))
    example = questions_of(session, first)[0].example_id

    named = [public_ids_of(session, campaign.id).picture(example) for campaign in (first, second)]

    assert first.seed == second.seed
    assert named[0] != named[1], "another key than the seed, which closing reveals"


def test_who_may_know_numbers_gets_them(app: FastAPI, session: Session, storage: Storage) -> None:
    campaign = make_campaign(session, dataset=make_dataset(session, storage))
    simulated = make_user(session)
    simulated.is_simulated = True
    for user, knows in (
        (make_user(session), False),
        (simulated, True),
        (make_user(session, role="reviewer"), True),
        (make_user(session, role="admin"), True),
    ):
        client = TestClient(app, headers={"Authorization": f"Bearer {make_token(session, user)}"})
        [question] = client.post(f"{API}/campaigns/{campaign.id}/questions", json={"count": 1}).json()[
            "questions"
        ]

        assert ("/examples/" in question["image_url"]) is knows
        assert client.get(question["image_url"]).status_code == 200
