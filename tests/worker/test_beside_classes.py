"""Pictures that stand beside a class, and others of the same bytes, are asked of nobody."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.errors import StandsBesideClass
from app.annotation.models import AnswerValue, Question
from app.campaigns import drawings
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.datasets.models import Dataset, Example
from app.db import Database
from app.fast.answering import FAST
from app.labels import service as labelling
from app.quality import service as quality
from app.quality.auditing import Audit
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, grow_rows, make_campaign
from worker import drawing
from worker.context import Context

pytestmark = pytest.mark.dialects

SHOWN, TWIN, LATER_TWIN = 3, 7, 14  # positions in the dataset
NO = AnswerValue.NO


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage) -> Context:
    """What the worker gives its tasks; nothing is published."""
    return Context(settings, database, storage, publish=lambda _: None)


@pytest.fixture
def campaign(context: Context, session: Session, admin: User) -> Campaign:
    """Two rounds over twelve images, opened by the worker, with one beside a class that has a twin."""
    made = make_campaign(session, examples=12, rounds=2, confirm_yes=False, state="draft")
    shown, twin = (example_at(session, made, position) for position in (SHOWN, TWIN))
    twin.digest = shown.digest
    made.classes[0].example_ids = [shown.id]
    campaigns.open_campaign(session, made, by=admin, now=utc_now())
    session.commit()
    drawing.open_campaign(context, made.id)
    session.expire_all()
    return campaigns.any_campaign(session, made.id)


def example_at(session: Session, campaign: Campaign, position: int) -> Example:
    """The image at a position of the campaign's dataset."""
    here = Example.dataset_id == campaign.dataset_id, Example.position == position
    return session.scalars(select(Example).where(*here)).one()


def positions_asked(session: Session, campaign: Campaign, by: User) -> list[int]:
    """Of the pictures that somebody is asked about who answers everything, each as often as it comes."""
    found: list[int] = []
    for turn in range(20):
        now = NOW + timedelta(minutes=turn)
        leased = annotators.lease(session, campaign, count=10, by=by, now=now)
        if not leased:
            break
        found += [session.get_one(Example, question.example_id).position for question in leased]
        given = [annotation.SubmittedAnswer(question.id, NO, 900, uuid4()) for question in leased]
        annotators.submit(session, campaign, given, by=by, now=now)
    return sorted(found)


def audited(session: Session, campaign: Campaign) -> Audit:
    """Everything drawn anew."""
    session.expire_all()
    campaign = campaigns.any_campaign(session, campaign.id)
    return quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)


def test_they_are_drawn_and_asked_of_nobody(session: Session, campaign: Campaign, annotator: User) -> None:
    assert campaign.question_count == 24

    asked = positions_asked(session, campaign, annotator)

    others = [position for position in range(12) if position not in (SHOWN, TWIN)]
    assert asked == sorted(2 * others)
    told = audited(session, campaign)
    assert told.passed
    assert told.draws_match
    assert told.commitment_matches
    assert told.beside_classes == 4
    far = annotation.progress(session, campaign, now=NOW)
    assert (far.questions, far.finished, far.counts.total) == (20, 20, 20)
    assert [person.user_id for person in far.annotators] == [annotator.id]
    assert_sums(session, campaign)
    labelled = {label.example_id for label in labelling.labels(session, campaign)}
    assert len(labelled) == len(others)


def test_nobody_is_told_that_they_are_still_to_come(
    session: Session, campaign: Campaign, annotator: User
) -> None:
    listed = annotation.standing(session, campaign, by=annotator)
    ways = (annotation.PLAIN, FAST)
    leased = [way.lease(session, campaign.id, count=1, by=annotator, now=NOW)[1] for way in ways]

    assert listed.waiting == 20
    assert [told.standing.waiting for told in leased] == [20, 20]


def test_they_are_no_known_pictures(session: Session, campaign: Campaign, admin: User) -> None:
    ids = {position: example_at(session, campaign, position).id for position in range(12)}
    known = [annotation.KnownPicture(ids[position], 0) for position in (SHOWN, TWIN, 5)]

    some = annotation.some_known(session, campaign, per_class=100)
    marked = annotation.mark_known(session, campaign, known, by=admin)

    assert {picture.example_id for picture in some} == set(ids.values()) - {ids[SHOWN], ids[TWIN]}
    assert marked == 1
    assert annotation.gold_count(session, campaign.id) == 1


def test_a_twin_that_is_not_asked_about_itself_is_no_known_picture(
    session: Session, campaign: Campaign, admin: User
) -> None:
    """As where a campaign asks about one of the same bytes only."""
    twin = example_at(session, campaign, TWIN)
    for question in session.scalars(select(Question).where(Question.example_id == twin.id)):
        session.delete(question)
    session.flush()

    assert annotation.mark_known(session, campaign, [annotation.KnownPicture(twin.id, 0)], by=admin) == 0


def test_nobody_keeps_them(session: Session, campaign: Campaign, admin: User) -> None:
    for position in (SHOWN, TWIN):
        example_id = example_at(session, campaign, position).id
        with pytest.raises(StandsBesideClass):
            quality.review_picture(session, campaign, example_id, kept=True, by=admin, now=NOW)
        quality.review_picture(session, campaign, example_id, kept=False, by=admin, now=NOW)

    assert audited(session, campaign).beside_classes == 4
    far = annotation.progress(session, campaign, now=NOW)
    assert (far.questions, far.finished) == (20, 0)


def test_a_twin_that_joins_later_is_not_asked_about_either(
    context: Context, session: Session, campaign: Campaign, admin: User, annotator: User
) -> None:
    grow_rows(session, session.get_one(Dataset, campaign.dataset_id), 6)
    later, shown = (example_at(session, campaign, position) for position in (LATER_TWIN, SHOWN))
    later.digest = shown.digest
    drawings.ask_further(session, campaign, by=admin, now=NOW)
    session.commit()

    drawing.draw_further(context, campaign.id)

    session.expire_all()
    campaign = campaigns.any_campaign(session, campaign.id)
    assert LATER_TWIN not in positions_asked(session, campaign, annotator)
    told = audited(session, campaign)
    assert (told.passed, told.beside_classes) == (True, 6)
    far = annotation.progress(session, campaign, now=NOW)
    assert (far.questions, far.finished, campaign.question_count) == (30, 30, 36)
    assert annotation.standing(session, campaign, by=admin).waiting == 0
