"""A campaign that people have answered."""

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.datasets.models import Dataset, Example
from app.runs import trials
from app.runs.models import Metric, Run, kept_of
from app.stores.folder import FolderStorage
from tests import annotators
from tests.factories import NOW, make_campaign, make_dataset, make_run

# What an epoch tells of the source: an estimate, or what it lacks.
ESTIMATE = {"estimate": 0.9, "low": 0.8, "high": 0.95, "held_out": 300, "needed": 200, "missing": 0}
TOO_FEW = {"estimate": None, "low": None, "high": None, "held_out": 96, "needed": 200, "missing": 2080}


def answered(
    session: Session, storage: FolderStorage, *, examples: int = 60, answers: int | None = None, by: User
) -> Campaign:
    """An open campaign over real tiny images of cats and dogs, with up to 100 faultless answers."""
    source = make_dataset(session, storage, train=examples)
    campaign = make_campaign(session, dataset=source)
    truth = dict(session.execute(select(Example.id, Example.true_class)).all())
    leased = annotators.lease(session, campaign, count=answers or examples, by=by, now=NOW)
    given = [
        annotation.SubmittedAnswer(
            question.id,
            AnswerValue.YES if truth[question.example_id] == question.candidate_class else AnswerValue.NO,
            900,
            uuid4(),
        )
        for question in leased
    ]
    annotators.submit(session, campaign, given, by=by, now=NOW)
    return campaign


@pytest.fixture
def campaign(session: Session, storage: FolderStorage, annotator: User) -> Campaign:
    """60 answers on two classes: enough for a run."""
    campaign = answered(session, storage, by=annotator)
    session.commit()
    return campaign


@pytest.fixture
def target(session: Session, storage: FolderStorage) -> Dataset:
    """Images to adapt to."""
    target = make_dataset(session, storage, name="Far away", train=10, test=4)
    session.commit()
    return target


@pytest.fixture
def run(session: Session, storage: FolderStorage) -> Run:
    """A run of two seeds: one waits, one trains and has reported an epoch."""
    run = make_run(session, storage, seeds=(0, 1), train=2)
    claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=utc_now())
    assert claim is not None
    report = trials.Report(
        epoch=1,
        epochs=2,
        step=3,
        seconds=1.5,
        losses={"complementary": 0.7},
        target_accuracy=0.75,
        source_estimate=ESTIMATE,
    )
    trials.record_epoch(session, claim, report, now=utc_now())
    session.commit()
    session.expire_all()
    return run


def reported(session: Session, run: Run, **figures: Any) -> Metric:
    """A metric of the run's first seed, which its trial keeps as the last, whatever it tells."""
    told = {"epoch": 1, "epochs": 2, "step": 3, "seconds": 1.5, "losses": {}, "recorded_at": NOW} | figures
    metric = Metric(trial_id=run.trials[0].id, **told)
    run.trials[0].last_metric = kept_of(metric)
    session.add(metric)
    return metric


def inputs_of(page: str) -> dict[str, str]:
    """Names and values of the form's inputs and selects, as a browser would send them."""
    values = {
        unescape(name): unescape(value)
        for name, value in re.findall(r'<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"', page)
    }
    for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options) or re.search(r'value="([^"]*)"', options)
        if chosen:
            values[name] = chosen[1]
    values.pop("csrf_token", None)
    return values
