"""A campaign that people have answered."""

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import Dataset, Example
from app.storage import Storage
from tests.factories import answer, make_campaign, make_dataset, questions_of


def answered(
    session: Session, storage: Storage, *, examples: int = 60, answers: int | None = None, by: User
) -> Campaign:
    """An open campaign over real tiny images of cats and dogs, with faultless answers."""
    source = make_dataset(session, storage, train=examples)
    campaign = make_campaign(session, dataset=source)
    for question in questions_of(session, campaign)[:answers]:
        truth = session.get_one(Example, question.example_id).true_class
        answer(session, campaign, question.id, "yes" if truth == question.candidate_class else "no", by=by)
    return campaign


@pytest.fixture
def campaign(session: Session, storage: Storage, annotator: User) -> Campaign:
    """60 answers on two classes: enough for a run."""
    campaign = answered(session, storage, by=annotator)
    session.commit()
    return campaign


@pytest.fixture
def target(session: Session, storage: Storage) -> Dataset:
    """Images to adapt to."""
    target = make_dataset(session, storage, name="Far away", train=10, test=4)
    session.commit()
    return target
