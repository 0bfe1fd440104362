"""Nothing tells a known picture from the questions beside it: neither what is late nor what comes twice."""

import random
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import gold, service
from app.annotation.models import AnswerValue, Question
from app.annotation.rules import LEASE
from app.annotation.submissions import TAKEN, Status
from tests import annotators
from tests.app.annotation.test_gold import gold_of, golden
from tests.factories import NOW, make_user

pytestmark = [pytest.mark.dialects, pytest.mark.usefixtures("each_execution")]

LATE = NOW + LEASE + timedelta(minutes=1)


@pytest.fixture(autouse=True)
def fixed_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same gold in each run."""
    monkeypatch.setattr(gold, "_chance", random.Random(7))


def noes(ids: list[int]) -> list[service.SubmittedAnswer]:
    return [service.SubmittedAnswer(id_, AnswerValue.NO, 900, uuid4()) for id_ in ids]


def test_a_late_answer_to_a_known_picture_counts_as_that_beside_it(
    session: Session, admin: User, annotator: User
) -> None:
    campaign, other = golden(session, admin), make_user(session)
    held = [item.id for item in annotators.lease(session, campaign, count=20, by=annotator, now=NOW)]
    known = gold_of(session, held)
    assert len(known) >= 4
    # Somebody else gets the first of what ran out; the rest waits on.
    drawn = [item.id for item in annotators.lease(session, campaign, count=4, by=other, now=LATE)]
    theirs = set(drawn) & set(held) - set(known)
    annotators.submit(session, campaign, noes(drawn), by=other, now=LATE)
    assert theirs

    outcomes = annotators.submit(session, campaign, noes(held), by=annotator, now=LATE)

    said = {id_: (found.status, found.detail) for id_, found in zip(held, outcomes, strict=True)}
    assert {said[id_] for id_ in theirs} == {(Status.REFUSED, TAKEN)}
    # A known picture stands right behind the question that it came with.
    for before, id_ in pairwise(held):
        if id_ in known and before not in known:
            assert said[id_] == said[before]
    assert (Status.REFUSED, TAKEN) in {said[id_] for id_ in known}
    assert Status.STORED in {said[id_][0] for id_ in known}


def test_pictures_that_somebody_saw_are_known_ones_last(
    session: Session, admin: User, annotator: User
) -> None:
    campaign = golden(session, admin, examples=100, per_class=5)

    seen: list[int] = []
    for _ in range(3):
        held = [item.id for item in annotators.lease(session, campaign, count=10, by=annotator, now=NOW)]
        known = gold_of(session, held)
        pictures = {
            row.id: row.example_id for row in session.execute(select(Question.id, Question.example_id))
        }
        fresh = [pictures[id_] for id_ in held if id_ in known]
        assert len(set(fresh)) == len(fresh), "no picture twice at once"
        assert not set(fresh) & set(seen)
        seen += [pictures[id_] for id_ in held]
        annotators.submit(session, campaign, noes(held), by=annotator, now=NOW)
