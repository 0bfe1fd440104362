"""The task that works out a large campaign's figures."""

import pytest
from sqlalchemy.orm import Session

from app import jobs
from app.clock import utc_now
from app.db import Database
from app.jobs import Job
from app.quality import precomputed
from app.quality import service as quality
from app.quality.models import KeptFigures
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import answer, make_campaign, questions_of
from worker.context import Context
from worker.precomputing import keep_figures
from worker.upkeep import Upkeep


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage, published: list[Job]) -> Context:
    """What the worker gives its tasks."""
    return Context(settings, database, storage, publish=published.append)


def test_upkeep_asks_for_a_large_campaign_s_figures_and_the_job_keeps_them(
    context: Context, session: Session, published: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precomputed, "LARGE", 30)
    make_campaign(session, examples=29)
    large = make_campaign(session, examples=30)
    make_campaign(session, examples=30, state="draft")
    answer(session, large, questions_of(session, large)[0].id, "yes")
    session.commit()

    Upkeep(context).once()
    assert [job.args for job in published if job.name == jobs.KEEP_FIGURES] == [(str(large.id),)]
    before = utc_now()
    keep_figures(context, large.id)

    kept = session.get_one(KeptFigures, large.id)
    assert before <= kept.computed_at <= utc_now()
    assert 0 < kept.took_s < 60
    assert kept.yes_by_true_class is not None
    assert quality.waiting_figures(session, utc_now()) == []


def test_of_what_is_small_people_are_minded_once_somebody_answered(
    context: Context, session: Session, published: list[Job]
) -> None:
    campaign = make_campaign(session, examples=30)
    session.commit()
    Upkeep(context).once()
    assert not [job for job in published if job.name == jobs.KEEP_FIGURES]
    answer(session, campaign, questions_of(session, campaign)[0].id, "yes")
    session.commit()

    Upkeep(context).once()
    keep_figures(context, campaign.id)

    assert [job.args for job in published if job.name == jobs.KEEP_FIGURES] == [(str(campaign.id),)]
    kept = session.get_one(KeptFigures, campaign.id)
    assert len(kept.rates) == 1
    assert kept.yes_by_true_class is None  # which its pages count themselves


def test_delivered_twice_it_does_nothing(
    context: Context, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make_campaign(session, examples=30)
    session.commit()
    monkeypatch.setattr(precomputed, "LARGE", 30)
    keep_figures(context, campaign.id)
    first = session.get_one(KeptFigures, campaign.id).computed_at
    keep_figures(context, campaign.id)

    session.expire_all()
    assert session.get_one(KeptFigures, campaign.id).computed_at == first
