"""Statements that run for every answer, built once.

Building and hashing a statement costs SQLAlchemy more than the database needs to run it. They are over the
tables rather than the mapped classes, because rows are all that is wanted here.
"""

from sqlalchemy import BindParameter, Table, bindparam, case, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from app.annotation.models import Answer, Lease, Question, Tally
from app.campaigns.models import CampaignClass


def _table(model: type) -> Table:
    table = model.__table__  # type: ignore[attr-defined]  # every mapped class has one
    assert isinstance(table, Table)
    return table


_question, _lease, _answer, _tally = map(_table, (Question, Lease, Answer, Tally))
_class = _table(CampaignClass)
_ids: BindParameter[int] = bindparam("ids", expanding=True)

# :me, :keys
KNOWN_KEYS = select(_answer.c.question_id, _answer.c.value, _answer.c.response_ms, _answer.c.key).where(
    _answer.c.user_id == bindparam("me"), _answer.c.key.in_(bindparam("keys", expanding=True))
)
# :campaign, :ids; locked in id order, so that two requests cannot deadlock
LOCK_QUESTIONS = (
    select(
        _question.c.id,
        _question.c.candidate_class,
        _question.c.least,
        _question.c.slots,
        _question.c.is_waiting,
    )
    .where(_question.c.id.in_(_ids), _question.c.campaign_id == bindparam("campaign"))
    .order_by(_question.c.id)
    .with_for_update(key_share=True)
)
# :ids of questions
LEASES = select(
    _lease.c.id, _lease.c.question_id, _lease.c.slot, _lease.c.user_id, _lease.c.expires_at
).where(_lease.c.question_id.in_(_ids))
# :ids of questions
LIVE_ANSWERS = select(_answer.c.question_id, _answer.c.user_id, _answer.c.value).where(
    _answer.c.question_id.in_(_ids), _answer.c.superseded_at.is_(None)
)
# Rows as parameters.
ADD_ANSWERS = insert(_answer)
# :ids of leases
HOLD_FOR_GOOD = update(_lease).where(_lease.c.id.in_(_ids)).values(expires_at=None)
# :ids of leases, :until, :first (turn)
HOLD_AGAIN = (
    update(_lease).where(_lease.c.id.in_(_ids)).values(expires_at=bindparam("until"), turn=bindparam("first"))
)
# :ids of leases
FREE_SLOTS = delete(_lease).where(_lease.c.id.in_(_ids))
# :ids of questions, :new_slots, :waits, :move (how far back in the queue)
SET_STANDING = (
    update(_question)
    .where(_question.c.id.in_(_ids))
    .values(
        slots=bindparam("new_slots"),
        is_waiting=bindparam("waits"),
        rank=_question.c.rank + bindparam("move"),
    )
)
# :me, :campaign, :now
HELD = (
    select(
        _question.c.id,
        _question.c.example_id,
        _question.c.candidate_class,
        _class.c.name,
        _lease.c.expires_at,
    )
    .join(_lease, _lease.c.question_id == _question.c.id)
    .join(
        _class,
        (_class.c.campaign_id == _question.c.campaign_id)
        & (_class.c.position == _question.c.candidate_class),
    )
    .where(
        _question.c.campaign_id == bindparam("campaign"),
        _lease.c.user_id == bindparam("me"),
        _lease.c.expires_at > bindparam("now"),
    )
    .order_by(_lease.c.turn, _lease.c.id)
)
# :me, :campaign, :now; before everything this person holds
FIRST_TURN = (
    select(func.coalesce(func.min(_lease.c.turn), 1) - 1)
    .join(_question, _question.c.id == _lease.c.question_id)
    .where(
        _question.c.campaign_id == bindparam("campaign"),
        _lease.c.user_id == bindparam("me"),
        _lease.c.expires_at > bindparam("now"),
    )
)
# :campaign, :me; gives finished questions and my answers
STANDING = select(
    func.coalesce(func.sum(_tally.c.finished), 0),
    func.coalesce(
        func.sum(
            case((_tally.c.user_id == bindparam("me"), _tally.c.yes + _tally.c.no + _tally.c.unsure), else_=0)
        ),
        0,
    ),
).where(_tally.c.campaign_id == bindparam("campaign"))

COUNTS = ("yes", "no", "unsure", "first_yes", "first_no", "finished", "timed", "active_ms")
_KEYS = ("campaign_id", "user_id", "candidate_class")
_on_postgresql, _on_sqlite = postgresql_insert(_tally), sqlite_insert(_tally)
# Rows as parameters: their counts are added to what is there.
ADD_TO_TALLIES = {
    "postgresql": _on_postgresql.on_conflict_do_update(
        index_elements=_KEYS,
        set_={name: _tally.c[name] + _on_postgresql.excluded[name] for name in COUNTS}
        | {"last_at": _on_postgresql.excluded.last_at},
    ),
    "sqlite": _on_sqlite.on_conflict_do_update(
        index_elements=_KEYS,
        set_={name: _tally.c[name] + _on_sqlite.excluded[name] for name in COUNTS}
        | {"last_at": _on_sqlite.excluded.last_at},
    ),
}
