"""No time tells a known picture: its answer uses up the person's time like any other."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count, pairwise
from uuid import uuid4

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import Answer, AnswerValue, Lease
from tests import annotators
from tests.app.annotation.test_gold import fixed_chance, gold_of, golden
from tests.factories import NOW, answer, make_campaign, questions_of

SECOND = timedelta(seconds=1)
DAY_MS = 80_000_000

__all__ = ["fixed_chance"]  # a fixture that every test here uses


@pytest.mark.dialects
@pytest.mark.usefixtures("each_execution")
@pytest.mark.parametrize("value", [AnswerValue.NO, AnswerValue.UNSURE])
def test_answers_to_known_pictures_use_up_time_like_all_others(
    session: Session, admin: User, annotator: User, *, value: AnswerValue
) -> None:
    campaign = golden(session, admin)
    campaign.least_card_ms = 200
    session.flush()
    held = [item.id for item in annotators.lease(session, campaign, count=20, by=annotator, now=NOW)]
    known = gold_of(session, held)
    behind = [after for before, after in pairwise(held) if before in known]
    assert len(behind) >= 4

    for place, id_ in enumerate(held, start=1):
        given = service.SubmittedAnswer(id_, value, DAY_MS, uuid4())
        annotators.submit(session, campaign, [given], by=annotator, now=NOW + place * SECOND)
        if id_ in known:
            annotators.undo(session, campaign, by=annotator, now=NOW + place * SECOND)
            again = service.SubmittedAnswer(id_, value, 900, uuid4())
            annotators.submit(session, campaign, [again], by=annotator, now=NOW + place * SECOND)

    looks = select(Answer.response_ms, Answer.is_hasty).where(Answer.user_id == annotator.id)
    first = session.execute(looks.where(Answer.superseded_at.is_not(None) | ~Answer.question_id.in_(known)))
    assert set(map(tuple, first)) == {(1_000, False)}
    again_at_once = looks.where(Answer.superseded_at.is_(None), Answer.question_id.in_(known))
    assert set(map(tuple, session.execute(again_at_once))) == {(0, True)}
    drawn = select(func.count()).where(Answer.superseded_at.is_(None), Answer.question_id.not_in(known))
    assert service.progress(session, campaign, now=NOW).counts.total == session.scalar(drawn)


@pytest.mark.dialects
def test_putting_known_pictures_beside_another_question_is_no_round_trip_of_its_own(
    session: Session, admin: User, annotator: User
) -> None:
    campaign = golden(session, admin)
    held = [item.id for item in annotators.lease(session, campaign, count=20, by=annotator, now=NOW)]
    known = gold_of(session, held)
    beside = select(Lease.question_id, Lease.beside_id).where(Lease.question_id.in_(known))
    before = {row.question_id: row.beside_id for row in session.execute(beside)}
    answered = before[max(known, key=held.index)]
    assert answered is not None
    alone: list[str] = []
    event.listen(session.get_bind(), "before_cursor_execute", lambda *given: alone.append(given[2]))

    given = service.SubmittedAnswer(answered, AnswerValue.NO, 900, uuid4())
    annotators.submit(session, campaign, [given], by=annotator, now=NOW + SECOND)

    assert not any("beside_id" in one and one.startswith("UPDATE") for one in alone)
    after = {row.question_id: row.beside_id for row in session.execute(beside)}
    assert {id_ for id_ in known if before[id_] == answered} == {
        id_ for id_ in known if before[id_] != after[id_]
    }


def test_the_pace_is_told_per_hundred_questions_and_moves_by_nothing_else(
    session: Session, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.annotation.own.STEP", 10)  # a hundred take long
    campaign = make_campaign(session, examples=30)
    asked = [question.id for question in questions_of(session, campaign)]

    def pace() -> float | None:
        return service.own_figures(session, campaign, by=annotator).mean_ms

    answer(session, campaign, asked[0], by=annotator, response_ms=None)  # nobody knows how long it took
    for id_ in asked[1:10]:
        answer(session, campaign, id_, by=annotator, response_ms=900)
    assert pace() is None
    answer(session, campaign, asked[10], by=annotator, response_ms=1_700)
    assert pace() == 1_000, "980 in steps of 100"

    annotators.undo(session, campaign, by=annotator, now=NOW)
    answer(session, campaign, asked[10], by=annotator, response_ms=90_000)
    for id_ in asked[11:20]:
        answer(session, campaign, id_, by=annotator, response_ms=3_000)
        assert pace() == 1_000
    answer(session, campaign, asked[20], by=annotator, response_ms=3_000)
    assert pace() == 2_000


@pytest.mark.dialects
@pytest.mark.usefixtures("each_execution")
@pytest.mark.parametrize("value", [AnswerValue.YES, AnswerValue.NO])
def test_the_same_statements_run_for_a_known_picture_and_for_any_other(
    session: Session, admin: User, annotator: User, *, value: AnswerValue
) -> None:
    campaign = golden(session, admin, gold_bound=0.0)
    held = [item.id for item in annotators.lease(session, campaign, count=20, by=annotator, now=NOW)]
    known = gold_of(session, held)

    said: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    changed = AnswerValue.NO if value is AnswerValue.YES else AnswerValue.YES
    clock = count()
    for id_ in held:
        given = service.SubmittedAnswer(id_, value, 900, uuid4())
        with statements_of(session) as run:
            annotators.submit(session, campaign, [given], by=annotator, now=NOW + next(clock) * SECOND)
            annotators.undo(session, campaign, by=annotator, now=NOW + next(clock) * SECOND)
            again = replace(given, key=uuid4())
            annotators.submit(session, campaign, [again], by=annotator, now=NOW + next(clock) * SECOND)
            locked = service.lock_campaign(session, campaign.id, by=annotator)
            now = NOW + next(clock) * SECOND
            service.change_answer(session, locked, id_, changed, key=uuid4(), by=annotator, now=now)
        if id_ != held[0]:  # which made the rows of its person
            said[id_ in known].add(tuple(run))

    assert said[True] == said[False]


@contextmanager
def statements_of(session: Session) -> Iterator[list[str]]:
    """What a session sends to its database meanwhile, but for what the fast execution sends past it."""
    found: list[str] = []

    def note(*args: object) -> None:
        found.append(re.sub(r" SET .*? WHERE ", " ", str(args[2]), flags=re.DOTALL))

    engine = session.connection().engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)
