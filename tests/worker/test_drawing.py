"""The task that draws a campaign's questions."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import numpy as np
import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts.models import User
from app.annotation import questions
from app.annotation import service as annotation
from app.annotation.models import Question
from app.campaigns import draws, openings
from app.campaigns import service as campaigns
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign, CampaignState
from app.clock import utc_now
from app.datasets.models import Example
from app.db import Database
from app.jobs import Job
from app.quality import service as quality
from app.quality.models import DrawCheck
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import make_campaign
from worker import drawing
from worker.context import Context


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage) -> Context:
    """What the worker gives its tasks; nothing is published."""
    return Context(settings, database, storage, publish=lambda _: None)


@pytest.fixture
def requested(session: Session, admin: User) -> Campaign:
    """A draft of 40 images in two rounds whose opening was asked for."""
    campaign = make_campaign(session, examples=40, rounds=2, state="draft")
    campaigns.open_campaign(session, campaign, by=admin, now=utc_now())
    session.commit()
    return campaign


def count_questions(session: Session, campaign: Campaign) -> int:
    """How many questions are in the table."""
    query = select(func.count()).select_from(Question).where(Question.campaign_id == campaign.id)
    return session.scalar(query) or 0


def test_every_question_follows_from_the_seed(
    context: Context, session: Session, requested: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "CHUNK", 7)  # several transactions

    drawing.open_campaign(context, requested.id)

    session.expire_all()
    campaign = campaigns.any_campaign(session, requested.id)
    assert campaign.state is CampaignState.OPEN
    assert campaign.opened_at is not None
    assert (campaign.claimed_until, campaign.question_count) == (None, 80)
    expected = draws.draw(campaign.seed, np.arange(40), num_classes=3, rounds=2)
    rows = session.execute(
        select(Example.position, Question.round, Question.candidate_class, Question.rank)
        .join(Example, Example.id == Question.example_id)
        .where(Question.campaign_id == campaign.id)
        .order_by(Question.rank)
    ).all()
    assert [row.position for row in rows] == expected.positions.tolist()
    assert [row.round for row in rows] == expected.rounds.tolist()
    assert [row.candidate_class for row in rows] == expected.classes.tolist()
    assert [row.rank for row in rows] == list(range(80))
    probabilities = session.scalars(select(Question.probability).distinct()).all()
    assert list(probabilities) == pytest.approx([1 / 3])
    assert [c.question_count for c in campaign.classes] == np.bincount(expected.classes).tolist()
    assert campaign.commitment == draws.commitment(
        campaign.seed,
        dataset_digest=campaign.dataset_digest or "",
        examples=40,
        class_names=campaign.class_names,
        rounds=2,
    )


def test_a_second_delivery_changes_nothing(context: Context, session: Session, requested: Campaign) -> None:
    drawing.open_campaign(context, requested.id)
    before = session.execute(select(Question.id, Question.candidate_class)).all()

    drawing.open_campaign(context, requested.id)

    assert session.execute(select(Question.id, Question.candidate_class)).all() == before


def test_a_message_for_nothing_does_nothing(context: Context, session: Session) -> None:
    draft = make_campaign(session, state="draft")
    session.commit()

    drawing.open_campaign(context, draft.id)
    drawing.open_campaign(context, uuid4())

    session.refresh(draft)
    assert draft.state is CampaignState.DRAFT
    assert count_questions(session, draft) == 0


class Killed(BaseException):
    """The process died."""


def test_a_killed_opening_shows_nothing_and_starts_again(
    context: Context, session: Session, requested: Campaign, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "CHUNK", 7)
    real = questions.add_questions

    def die_in_the_middle(session: Session, campaign_id: UUID, drawn: draws.Draws, **details: int) -> None:
        if details["start"] >= 35:
            raise Killed
        real(session, campaign_id, drawn, **details)  # type: ignore[arg-type]  # passed on as they came

    with monkeypatch.context() as patch:
        patch.setattr(questions, "add_questions", die_in_the_middle)
        with pytest.raises(Killed):
            drawing.open_campaign(context, requested.id)

    session.expire_all()
    assert requested.state is CampaignState.DRAFT
    assert requested.commitment is None
    assert count_questions(session, requested) == 35
    with pytest.raises(CampaignNotFound):
        annotation.campaign_to_answer(session, requested.id, by=annotator)

    requested.claimed_until = utc_now() - timedelta(seconds=1)  # its lease has run out
    session.commit()
    assert openings.waiting_openings(session, utc_now()) == [requested.id]
    drawing.open_campaign(context, requested.id)

    session.expire_all()
    campaign = campaigns.any_campaign(session, requested.id)
    assert campaign.state == "open"
    assert count_questions(session, campaign) == 80
    assert quality.audit(session, campaign, now=utc_now(), has_seed=True, recompute=True).passed


def test_whoever_lost_the_claim_writes_nothing_more(
    context: Context, session: Session, requested: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = questions.forget_questions

    def be_overtaken(session: Session, campaign_id: UUID) -> None:
        real(session, campaign_id)
        row = session.get_one(Campaign, campaign_id)
        row.claimed_until = utc_now() - timedelta(seconds=1)
        session.flush()
        assert claims.claim(session, Campaign, campaign_id, by="another", now=utc_now()) is not None

    monkeypatch.setattr(questions, "forget_questions", be_overtaken)

    drawing.open_campaign(context, requested.id)

    session.expire_all()
    assert requested.state is CampaignState.DRAFT
    assert requested.claimed_by == "another"
    assert count_questions(session, requested) == 0


def test_a_check_is_kept_and_a_draft_has_none(
    context: Context, session: Session, requested: Campaign
) -> None:
    drawing.check_draws(context, requested.id)
    assert session.get(DrawCheck, requested.id) is None

    drawing.open_campaign(context, requested.id)
    drawing.check_draws(context, requested.id)
    drawing.check_draws(context, requested.id)

    session.expire_all()
    check = session.get_one(DrawCheck, requested.id)
    assert (check.draws_match, check.commitment_matches, sum(check.drawn_per_class)) == (True, True, 80)


def test_opening_and_closing_ask_for_a_check(context: Context, requested: Campaign, admin: User) -> None:
    sent: list[Job] = []
    context = replace(context, publish=sent.append)
    due = Job(jobs.CHECK_DRAWS, (str(requested.id),))

    drawing.open_campaign(context, requested.id)
    assert sent == [due]

    with context.unit_of_work() as work:
        campaigns.close_campaign(work, campaigns.any_campaign(work, requested.id), by=admin, now=utc_now())
    assert sent == [due, due]
