"""Statements that run for every answer, built once.

Building and hashing a statement costs SQLAlchemy more than the database needs to run it. They are over the
tables rather than the mapped classes, because rows are all that is wanted here.
"""

from sqlalchemy import (
    BindParameter,
    Table,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from app.annotation.models import Answer, Lease, Participant, Question, Tally
from app.campaigns.models import CampaignClass
from app.db import BigId


def _table(model: type) -> Table:
    table = model.__table__  # type: ignore[attr-defined]  # every mapped class has one
    assert isinstance(table, Table)
    return table


_question, _lease, _answer, _tally, _participant = map(_table, (Question, Lease, Answer, Tally, Participant))
_class = _table(CampaignClass)
_ids: BindParameter[int] = bindparam("ids", expanding=True)

# :me, :keys
KNOWN_KEYS = select(_answer.c.question_id, _answer.c.value, _answer.c.response_ms, _answer.c.key).where(
    _answer.c.user_id == bindparam("me"), _answer.c.key.in_(bindparam("keys", expanding=True))
)
# :ids; locked in id order, so that two requests cannot deadlock. The caller looks at the campaign: as a
# condition it made SQLite walk through all of the campaign's questions instead of finding these.
LOCK_QUESTIONS = (
    select(
        _question.c.id,
        _question.c.campaign_id,
        _question.c.candidate_class,
        _question.c.least,
        _question.c.slots,
        _question.c.is_waiting,
        _question.c.purpose,
        _question.c.is_match,
    )
    .where(_question.c.id.in_(_ids))
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
# :me, :ids of questions; those of them that I answered before and took back
TAKEN_BACK = select(_answer.c.question_id).where(
    _answer.c.question_id.in_(_ids),
    _answer.c.user_id == bindparam("me"),
    _answer.c.superseded_at.is_not(None),
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
# "gold" is a literal because PostgreSQL uses no partial index for a value that it does not know.
_HAS_GOLD = exists().where(
    _question.c.campaign_id == bindparam("campaign"), _question.c.purpose == literal_column("'gold'")
)
# :me, :campaign; gives since when I am paused, and whether there is gold
PERSON = select(
    select(_participant.c.paused_at)
    .where(_participant.c.campaign_id == bindparam("campaign"), _participant.c.user_id == bindparam("me"))
    .scalar_subquery(),
    _HAS_GOLD,
)
_GOLD_ANSWERS = (
    select(_participant.c.gold_answers)
    .where(_participant.c.campaign_id == bindparam("campaign"), _participant.c.user_id == bindparam("me"))
    .scalar_subquery()
)
# :campaign, :me; gives finished questions, my answers, and whether there is gold
STANDING = select(
    func.coalesce(func.sum(_tally.c.finished), 0),
    func.coalesce(
        func.sum(
            case((_tally.c.user_id == bindparam("me"), _tally.c.yes + _tally.c.no + _tally.c.unsure), else_=0)
        ),
        0,
    )
    + func.coalesce(_GOLD_ANSWERS, 0),
    _HAS_GOLD,
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

_gold_counts = ("gold_answers", "gold_right", "gold_wrong")
_part_on_postgresql, _part_on_sqlite = postgresql_insert(_participant), sqlite_insert(_participant)
# A row as parameters: its counts are added to what is there.
ADD_TO_PARTICIPANT = {
    "postgresql": _part_on_postgresql.on_conflict_do_update(
        index_elements=_KEYS[:2],
        set_={name: _participant.c[name] + _part_on_postgresql.excluded[name] for name in _gold_counts},
    ),
    "sqlite": _part_on_sqlite.on_conflict_do_update(
        index_elements=_KEYS[:2],
        set_={name: _participant.c[name] + _part_on_sqlite.excluded[name] for name in _gold_counts},
    ),
}

# :gold, :host (questions), :me; the gold comes right behind its host, because it has the same turn and a
# larger id. Where somebody else takes the same slot at the same moment, there is no gold this time.
_host, _taken = _lease.alias("host"), _lease.alias("taken")
_next_slot = (
    select(func.coalesce(func.max(_taken.c.slot) + 1, 0))
    .where(_taken.c.question_id == bindparam("gold", type_=BigId))
    .scalar_subquery()
)
_gold_lease = (
    ("question_id", "slot", "user_id", "expires_at", "turn"),
    select(
        bindparam("gold", type_=BigId), _next_slot, _host.c.user_id, _host.c.expires_at, _host.c.turn
    ).where(_host.c.question_id == bindparam("host"), _host.c.user_id == bindparam("me")),
)
LEASE_GOLD = {
    "postgresql": postgresql_insert(_lease).from_select(*_gold_lease).on_conflict_do_nothing(),
    "sqlite": sqlite_insert(_lease).from_select(*_gold_lease).on_conflict_do_nothing(),
}
