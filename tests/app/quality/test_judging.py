"""What people's answers say, taken from sums and disagreements alone: the same as from every answer."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from sqlalchemy import Connection, func, select
from sqlalchemy.orm import Session, selectinload

from app.annotation import gold as known_pictures
from app.annotation import service
from app.annotation.models import Answer, AnswerValue, Purpose, Question, Tally
from app.campaigns.models import Campaign
from app.db import Database
from app.quality import service as quality
from app.quality.claims import TELLING
from app.quality.dawid_skene import Estimate
from app.quality.dependence import fit
from app.quality.doubts import is_doubtful
from app.quality.judging import Reliability, judge_of, left_out, question_answers, reliability
from clarinet.files.label_table import LabelKind
from tests import annotators
from tests.factories import NOW, make_campaign, make_user

CASES: dict[str, dict[str, Any]] = {
    "yes confirmed": {"confirm_yes": True},
    "a yes stands alone": {"confirm_yes": False},
    "two are asked": {"confirm_yes": True, "overlap": 2},
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Database:
    """Each supported database, one after the other: what the tests look at is made once on each."""
    found: Database = request.getfixturevalue(f"{request.param}_engine")
    return found


@pytest.fixture(scope="module", params=list(CASES.values()), ids=list(CASES))
def made(request: pytest.FixtureRequest, engine: Database) -> Iterator[tuple[Connection, UUID]]:
    """A campaign that people worked on, and the transaction that has it."""
    with engine.engine.connect() as connection, pytest.MonkeyPatch.context() as patch:
        outer = connection.begin()
        patch.setattr(known_pictures, "_chance", random.Random(6))
        with Session(connection, expire_on_commit=False, join_transaction_mode="create_savepoint") as session:
            campaign_id = work_on(session, request.param).id
            session.commit()
        yield connection, campaign_id
        outer.rollback()


@pytest.fixture
def session(made: tuple[Connection, UUID]) -> Iterator[Session]:
    """A session in that transaction; what a test changes there ends with it."""
    with Session(made[0], expire_on_commit=False, join_transaction_mode="create_savepoint") as session:
        yield session


@pytest.fixture
def worked(session: Session, made: tuple[Connection, UUID]) -> Campaign:
    """The campaign."""
    return session.get_one(Campaign, made[1], options=[selectinload(Campaign.classes)])


def work_on(session: Session, asked: dict[str, Any]) -> Campaign:
    """A campaign in which seven people answered at random, took answers back and saw known pictures.

    One of them is left out, and somebody is doubtful: says no to everything.
    """
    chance = random.Random(5)
    admin = make_user(session, role="admin")
    campaign = make_campaign(
        session,
        examples=90,
        class_names=[str(k) for k in range(10)],
        consensus="dawid-skene",
        **asked,
    )
    campaign.gold_share, campaign.gold_bound = 0.2, 0.0
    service.mark_known(session, campaign, service.some_known(session, campaign, per_class=3), by=admin)
    # Numbers of ids go on from what ran before, and with them what each question is would change.
    first = session.scalars(select(func.min(Question.id)).where(Question.campaign_id == campaign.id)).one()
    people = [make_user(session) for _ in range(7)]
    for turn in range(80):
        person = people[turn % 7]
        leased = annotators.lease(session, campaign, count=chance.randint(1, 6), by=person, now=NOW)
        given = [
            service.SubmittedAnswer(q.id, _said(chance, q.id - first, person is people[1]), 9, uuid4())
            for q in leased
        ]
        annotators.submit(session, campaign, given, by=person, now=NOW)
        if given and chance.random() < 0.3:
            annotators.undo(session, campaign, count=1, by=person, now=NOW)
    service.leave_out(session, campaign, people[0].id, by=admin, left_out=True)
    session.flush()
    return campaign


def _said(chance: random.Random, number: int, always_no: bool) -> AnswerValue:
    """Of every tenth question yes is right, most people know, and of some pictures nobody can tell."""
    if number % 9 == 4:
        return AnswerValue.UNSURE
    if always_no:
        return AnswerValue.NO
    is_yes = (number % 10 == 0) is (chance.random() < 0.97)
    return AnswerValue.YES if is_yes else AnswerValue.NO


def fitted_to_every_answer(session: Session, campaign: Campaign) -> tuple[list[int], list[UUID], Estimate]:
    """Questions, people and the model fitted to single answers, none counted together with another."""
    rows = session.execute(
        select(Answer.question_id, Answer.user_id, Answer.value, Question.is_match)
        .join(Question, Question.id == Answer.question_id)
        .where(
            Question.campaign_id == campaign.id,
            Answer.superseded_at.is_(None),
            Answer.value != AnswerValue.UNSURE,
            Answer.user_id.not_in(left_out(campaign.id)),
        )
    ).all()
    questions = sorted({row.question_id for row in rows})
    people = sorted({row.user_id for row in rows})
    matches = {row.question_id: row.is_match for row in rows}
    known = [np.nan if matches[id_] is None else float(matches[id_]) for id_ in questions]
    found = fit(
        np.array([questions.index(row.question_id) for row in rows]),
        np.array([people.index(row.user_id) for row in rows]),
        np.array([row.value is AnswerValue.YES for row in rows]),
        prior=1 / campaign.num_classes,
        known=np.array(known),
        num_people=len(people),
    )
    return questions, people, found


def rates(found: Reliability) -> dict[UUID, tuple[float, float]]:
    """By person."""
    return {
        UUID(text): (float(found.sensitivity[at]), float(found.specificity[at]))
        for text, at in found.places.items()
    }


def test_rates_follow_from_sums_and_disagreements(session: Session, worked: Campaign) -> None:
    _, people, found = fitted_to_every_answer(session, worked)
    slow = dict(zip(people, zip(found.sensitivity, found.specificity, strict=True), strict=True))

    fast = rates(reliability(session, worked, num_classes=worked.num_classes))

    # Somebody without a countable answer may have a row of sums, and then the rates of all together.
    assert set(slow) <= set(fast)
    for person, expected in slow.items():
        assert fast[person] == pytest.approx(expected, abs=1e-6)


def test_the_review_misses_nothing(session: Session, worked: Campaign) -> None:
    judge = judge_of(session, worked, num_classes=worked.num_classes)
    rows = session.execute(question_answers(worked.id)).all()
    finished = set(
        session.scalars(
            select(Question.id).where(
                Question.campaign_id == worked.id,
                Question.purpose == Purpose.LABELLING,
                ~Question.is_waiting,
            )
        )
    )
    told = {row.id for row in rows}
    doubtful = {row.id for row in rows if is_doubtful(judge(row), num_classes=worked.num_classes)}

    shown = [question.id for question in quality.open_questions(session, worked)]

    assert len(shown) == len(set(shown)), "each once"
    assert set(shown) == (doubtful & finished) | (finished - told)
    assert finished - told, "the case has questions that nobody could tell"
    assert doubtful & finished


def test_sums_are_those_of_the_answers(session: Session, worked: Campaign) -> None:
    """What both rest on: by person, class and value."""
    kept = {
        (tally.user_id, tally.candidate_class, value): getattr(tally, value)
        for tally in session.scalars(select(Tally).where(Tally.campaign_id == worked.id))
        for value in AnswerValue
        if getattr(tally, value)
    }
    answers = session.execute(
        select(Answer.user_id, Question.candidate_class, Answer.value)
        .join(Question, Question.id == Answer.question_id)
        .where(
            Question.campaign_id == worked.id,
            Question.purpose != Purpose.GOLD,
            Answer.superseded_at.is_(None),
        )
    )

    assert kept == Counter(tuple(row) for row in answers)


def test_a_campaign_claims_what_its_labels_weigh(session: Session, worked: Campaign) -> None:
    judge = judge_of(session, worked, num_classes=worked.num_classes)
    assert judge.reliability is not None
    majority = replace(judge, reliability=None)
    probability = judge.reliability.probability_yes
    expected: dict[LabelKind, list[float]] = {LabelKind.TRUE: [], LabelKind.COMPLEMENTARY: []}
    for row in session.execute(question_answers(worked.id)):
        kind, yes = majority(row).kind, probability(row)
        if kind is not None and yes is not None:
            expected[kind].append(1 - yes if kind is LabelKind.TRUE else yes)

    claims = judge.reliability.claims

    assert claims is not None
    assert claims.missing == TELLING - claims.several
    for count, wrong, found in (
        (claims.true, claims.wrong_true, expected[LabelKind.TRUE]),
        (claims.complementary, claims.wrong_complementary, expected[LabelKind.COMPLEMENTARY]),
    ):
        assert count == len(found)
        assert wrong == pytest.approx(np.mean(found) if found else 0.0, rel=1e-4)
    assert claims.true, "the case has true labels"
