"""An evaluation that asks about every picture of the target: its accuracy is counted, not estimated."""

import re
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import DatasetVersion
from app.db import Database
from app.evaluations import service as evaluations
from app.evaluations.models import Evaluation
from app.registry.models import Model
from app.runs import service as runs
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests import annotators
from tests.app.evaluations import laid_out
from tests.app.runs.conftest import reported
from tests.factories import NOW, make_run, make_user

HTML = {"accept": "text/html"}
WHOLE = evaluations.Wishes(half_width=0.05, drawn_share=0)  # of 60 images all
Opened = Callable[[evaluations.Wishes], tuple[Evaluation, Campaign]]


@pytest.fixture
def model(session: Session, storage: FolderStorage) -> Model:
    """A model that takes every fifth image for the next class."""
    return laid_out.make_model(session, storage, laid_out.make_target(session, storage))


@pytest.fixture
def opened(
    *,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    model: Model,
    admin: User,
) -> Opened:
    """Lays one out and opens it."""

    def make(wishes: evaluations.Wishes) -> tuple[Evaluation, Campaign]:
        found = laid_out.make_evaluation(session, storage, model, wishes, by=admin)
        return found, laid_out.opened(session, settings, database, storage, found, by=admin)

    return make


@pytest.mark.parametrize("by_class", [False, True])
def test_every_picture_judged_has_a_share_and_no_interval(
    *, client: TestClient, session: Session, opened: Opened, annotator: User, by_class: bool
) -> None:
    found, campaign = opened(evaluations.Wishes(half_width=0.05, drawn_share=0, by_class=by_class))
    waiting = client.get(f"/evaluations/{found.id}", headers=HTML).text
    laid_out.answer_all(session, campaign, by=annotator)
    session.commit()

    interval = evaluations.result_of(session, found).interval
    assert interval is not None
    assert interval.is_counted
    assert interval.estimate == interval.low == interval.high == 48 / 60
    page = client.get(f"/evaluations/{found.id}", headers=HTML).text
    assert "none: all 60 training images of the target are asked about" in waiting
    assert "all pictures: measured, not estimated" in page
    assert "95 % interval" not in page
    run = client.get(f"/runs/{found.run_id}", headers=HTML).text
    assert "measured by 1 person on 60 pictures" in run
    assert "all pictures: measured, not estimated" in run
    assert "<dt>Chance</dt><dd>33.3 %</dd>" in run
    model = client.get(f"/models/{found.model_id}", headers=HTML).text
    assert "all pictures: measured, not estimated; chance 33.3 %" in model
    assert "(80.0 to 80.0 %)" not in client.get("/runs", headers=HTML).text


def test_once_people_measured_it_no_text_says_that_they_should(
    *,
    client: TestClient,
    session: Session,
    storage: FolderStorage,
    opened: Opened,
    admin: User,
    annotator: User,
) -> None:
    found, campaign = opened(WHOLE)
    laid_out.answer_all(session, campaign, by=annotator)
    few = {"estimate": None, "low": None, "high": None, "held_out": 5, "needed": 200, "missing": 2080}
    reported(session, runs.get_run(session, found.run_id, by=admin), source_estimate=few)
    model = session.get_one(Model, found.model_id)
    model.card = {**model.card, "source_estimate": few}
    target = select(DatasetVersion).where(DatasetVersion.dataset_id == found.dataset_id)
    held = session.scalars(target).one()
    held.class_names = held.train_per_class = held.test_per_class = None
    other = make_run(session, storage, train=2)
    session.commit()

    run = client.get(f"/runs/{found.run_id}", headers=HTML).text
    compared = client.get(f"/runs/compare?run={found.run_id}&run={other.id}", headers=HTML).text
    card = client.get(f"/models/{found.model_id}", headers=HTML).text

    assert '<td class="number">80.0 % <small>by people</small></td>' in run
    assert "80.0 to 80.0 %" not in run + compared + card
    assert "none: all pictures were judged" in compared
    assert "has no curve: people measured its accuracy after its end" in compared
    for page in (run, compared, card):
        assert "80.0" in page
        assert not re.search(r"people (can )?judge|[Aa]sk people about|Ask people how good run", page)


def test_what_people_measured_is_said_to_be_no_better_than_guessing(
    client: TestClient, session: Session, opened: Opened, annotator: User
) -> None:
    found, campaign = opened(WHOLE)
    laid_out.answer_all(session, campaign, by=annotator, lies=60)
    session.commit()

    interval = evaluations.result_of(session, found).interval
    assert interval is not None
    assert interval.estimate < 1 / 3
    told = "This cannot be told from guessing among 3 classes"
    for path in (f"/evaluations/{found.id}", f"/runs/{found.run_id}", f"/models/{found.model_id}"):
        page = client.get(path, headers=HTML).text
        assert told in page, path
        assert "or download it" not in page
    assert "no better than chance" in client.get("/models", headers=HTML).text
    assert "no better than chance" in client.get("/runs", headers=HTML).text


def test_while_some_wait_the_interval_is_that_of_a_large_part(
    session: Session, opened: Opened, annotator: User
) -> None:
    found, campaign = opened(WHOLE)
    leased = annotators.lease(session, campaign, count=54, by=annotator, now=NOW)
    annotators.submit(
        session, campaign, [laid_out.said(question.id) for question in leased], by=annotator, now=NOW
    )

    result = evaluations.result_of(session, found)

    assert (result.right, result.waiting) == (54, 6)
    assert result.interval is not None
    assert result.interval.high == 1
    assert (
        result.interval.low == 59 / 60
    )  # all six others wrong would be too much chance: so would two of them


def test_what_nobody_can_tell_is_left_out_of_the_share_and_keeps_it_an_estimate(
    session: Session, opened: Opened, annotator: User
) -> None:
    found, campaign = opened(WHOLE)
    leased = annotators.lease(session, campaign, count=60, by=annotator, now=NOW)
    given = [laid_out.said(question.id, unusable=place < 10) for place, question in enumerate(leased)]
    annotators.submit(session, campaign, given, by=annotator, now=NOW)
    other = make_user(session)
    leased = annotators.lease(session, campaign, count=60, by=other, now=NOW)
    given = [laid_out.said(question.id, unusable=True) for question in leased]
    annotators.submit(session, campaign, given, by=other, now=NOW)

    result = evaluations.result_of(session, found)

    assert (result.right, result.untold, result.waiting) == (50, 10, 0)
    assert result.interval is not None
    assert result.interval.estimate == 1
    assert not result.interval.is_counted  # ten may be right or wrong
    assert result.interval.low < 1


def test_a_point_is_one_and_more_are_points(
    client: TestClient, session: Session, storage: FolderStorage, admin: User
) -> None:
    target = laid_out.make_target(session, storage, images=300)
    model = laid_out.make_model(session, storage, target)
    wishes = evaluations.Wishes(half_width=0.1)
    found = laid_out.make_evaluation(session, storage, model, wishes, by=admin)
    pages = []
    for half_width in (0.1, 0.01, 0.005):
        found.half_width = half_width
        session.commit()
        pages.append(client.get(f"/evaluations/{found.id}", headers=HTML).text)

    for page, told in zip(pages, ("10 points", "1 point", "0.5 points"), strict=True):
        assert f"<dd>within {told}</dd>" in page
