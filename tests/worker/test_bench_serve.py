"""`clarinet bench serve` serves, measures and finds what is lost."""

import json
from typing import Literal
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, select, update

from app.accounts.models import User
from app.annotation.models import Answer, AnswerValue, Question
from app.clock import utc_now
from tests.conftest import postgres_database
from worker.bench.rows import add_campaign, add_dataset, add_people, fresh_context
from worker.bench.serve import Row, as_row, as_sentence, as_text, checked, comparisons, measure_serving
from worker.context import Context
from worker.drawing import open_campaign


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_answers_are_served_and_counted(kind: str) -> None:
    def rows(url: str) -> list[dict[str, object]]:
        cases = [(2, 1, 2), (3, 5, 1)]
        measured = list(measure_serving(url, cases, seconds=1.5, say=lambda _: None, paths=("fast", "plain")))
        assert [row.path for row in measured] == ["fast", "plain"] * len(cases)
        [*compared] = comparisons(measured)
        assert [(each.clients, each.batch) for each in compared] == [(2, 1), (3, 5)]
        assert all((each.cpu_ratio or 0) > 0 and each.pairs_ratio > 0 for each in compared)
        assert all("times the processor time" in as_sentence(each) for each in compared)
        assert all(str(row.clients) in as_text(row) for row in measured)
        return [as_row(row) for row in measured]

    if kind == "sqlite":
        found = rows("")
    else:
        with postgres_database() as url:
            found = rows(url)

    cases = [(row["database"], row["clients"], row["batch"], row["requests"]) for row in found]
    assert cases == [(kind, 2, 1, 2)] * 2 + [(kind, 3, 5, 1)] * 2
    for row in json.loads(json.dumps(found)):
        assert row["pairs_per_s"] > 1
        assert 0 < row["cpu_ms"] < 1000
        assert 0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] <= row["longest_wait_ms"]
        assert (row["refused"], row["failed"], row["lost"], row["doubled"]) == (0, 0, 0, 0)


def test_what_is_lost_or_doubled_is_found() -> None:
    with fresh_context("") as context:
        with context.unit_of_work() as session:
            admin, people = add_people(session, 2)
            campaign_id = add_campaign(session, admin, add_dataset(session, admin, 4))
        open_campaign(context, campaign_id)
        keys = [_answer(context, campaign_id, place, by=people[0]) for place in range(3)]
        assert checked(context, campaign_id, set(keys)) == (0, 0)

        _answer(context, campaign_id, 1, by=people[1])  # a second answer where one is enough
        with context.unit_of_work() as session:
            session.execute(delete(Answer).where(Answer.key == UUID(keys[0])))
        assert checked(context, campaign_id, set(keys)) == (1, 1)


def _answer(context: Context, campaign_id: UUID, place: int, *, by: User) -> str:
    """A no to a question, whatever the rules say; gives its key."""
    key = uuid4()
    with context.unit_of_work() as session:
        ids = session.scalars(select(Question.id).where(Question.campaign_id == campaign_id))
        question_id = sorted(ids)[place]
        session.execute(update(Question).where(Question.id == question_id).values(slots=1))
        session.add(
            Answer(
                question_id=question_id, user_id=by.id, value=AnswerValue.NO, key=key, created_at=utc_now()
            )
        )
    return str(key)


def test_paths_are_compared_by_their_medians() -> None:
    def row(path: Literal["fast", "plain"], pairs_per_s: float, cpu_ms: float | None) -> Row:
        return Row(path, "sqlite", 32, 1, 1, pairs_per_s, cpu_ms, 1, 1, 1, 1, 0, 0, 0, 0)

    rows = [row("fast", 400, 2.0), row("plain", 100, 9.0), row("fast", 600, 3.0), row("plain", 100, 6.0)]

    [found] = comparisons(rows)
    assert (found.cpu_ratio, found.pairs_ratio) == (3.0, 5.0)
    assert comparisons([row("fast", 400, 2.0)]) == []
    [untold] = comparisons([row("fast", 400, None), row("plain", 100, None)])
    assert untold.cpu_ratio is None
    assert "processor" not in as_sentence(untold)
