"""Statements that run for every answer, over the tables not the mapped classes: rows are all it takes.

The few that are not prepared run for some answers only.
"""

from sqlalchemy import (
    BigInteger,
    Integer,
    Table,
    Uuid,
    bindparam,
    exists,
    func,
    literal_column,
    null,
    select,
    type_coerce,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

import app.accounts.models  # noqa: F401  (columns have the type of the key that they point at)
from app.annotation.models import Answer, Lease, Participant, Question, Tally
from app.campaigns.models import Campaign, CampaignClass
from app.db import BigId, UtcDateTime
from app.prepared import Prepared, RowWrites, Several, among


def _table(model: type) -> Table:
    table = model.__table__  # type: ignore[attr-defined]  # every mapped class has one
    assert isinstance(table, Table)
    return table


_question, _lease, _answer, _tally, _participant = map(_table, (Question, Lease, Answer, Tally, Participant))
_class, _campaign = _table(CampaignClass), _table(Campaign)
_me, _in_campaign = bindparam("me", type_=Uuid()), bindparam("campaign", type_=Uuid())
_now = bindparam("now", type_=UtcDateTime())
_ids, _keys = bindparam("ids", type_=Several(BigId)), bindparam("keys", type_=Several(Uuid()))

# :ids of questions, :campaign; locked in id order, so that two requests cannot deadlock. On SQLite, which
# locks none, the caller looks at the campaign: as a condition it made SQLite walk through all its questions.
_lock_questions = (
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
    .where(among(_question.c.id, _ids))
    .order_by(_question.c.id)
    .with_for_update(key_share=True)
)
LOCK_QUESTIONS = Prepared(
    {
        "postgresql": _lock_questions.where(_question.c.campaign_id == _in_campaign),
        "sqlite": _lock_questions,
    }
)
# :ids of questions; in a statement of its own, because one that waits for a lock still sees what was before
ABOUT_QUESTIONS = Prepared(
    union_all(
        select(
            _lease.c.question_id,
            _lease.c.user_id,
            _lease.c.id,
            _lease.c.slot,
            _lease.c.expires_at,
            type_coerce(null(), _answer.c.value.type).label("value"),
        ).where(among(_lease.c.question_id, _ids)),
        select(_answer.c.question_id, _answer.c.user_id, null(), null(), null(), _answer.c.value).where(
            among(_answer.c.question_id, _ids), _answer.c.superseded_at.is_(None)
        ),
    )
)
# :me, :keys
KNOWN_KEYS = Prepared(
    select(_answer.c.key, _answer.c.question_id, _answer.c.value).where(
        _answer.c.user_id == _me, among(_answer.c.key, _keys)
    )
)
# :me, :ids of questions; those of them that I answered before and took back
TAKEN_BACK = Prepared(
    select(_answer.c.question_id).where(
        among(_answer.c.question_id, _ids), _answer.c.user_id == _me, _answer.c.superseded_at.is_not(None)
    )
)

# What one answer adds to the sums of its person and class; :sign -1 takes it out again.
COUNTS = {
    "yes": "CASE WHEN value = 'yes' THEN :sign ELSE 0 END",
    "no": "CASE WHEN value = 'no' THEN :sign ELSE 0 END",
    "unsure": "CASE WHEN value = 'unsure' THEN :sign ELSE 0 END",
    "first_yes": "CASE WHEN value = 'yes' AND is_first THEN :sign ELSE 0 END",
    "first_no": "CASE WHEN value = 'no' AND is_first THEN :sign ELSE 0 END",
    "finished": ":sign * finished",
    "timed": "CASE WHEN response_ms IS NULL THEN 0 ELSE :sign END",
    "active_ms": ":sign * coalesce(response_ms, 0)",
}
_ADD_TO_TALLIES = f"""INSERT INTO tally (campaign_id, user_id, candidate_class, last_at, {", ".join(COUNTS)})
    SELECT :campaign, :me, candidate_class, :now, {", ".join(f"sum({count})" for count in COUNTS.values())}
    FROM given WHERE candidate_class IS NOT NULL GROUP BY candidate_class
    ON CONFLICT (campaign_id, user_id, candidate_class) DO UPDATE
    SET last_at = excluded.last_at,
        {", ".join(f"{name} = tally.{name} + excluded.{name}" for name in COUNTS)}"""
_OF_TALLIES = {
    "candidate_class": "integer",  # null for gold, which enters no sum
    "value": "text",
    "is_first": "boolean",
    "response_ms": "integer",
    "finished": "integer",
}
_COMMON = (_in_campaign, _me, _now, bindparam("sign", type_=Integer()))
# :campaign, :me, :now, :sign
ADD_TO_TALLIES = RowWrites(_OF_TALLIES, [_ADD_TO_TALLIES], *_COMMON)
# Answers with all that follows from them; a question's standing stays where `slots` is null.
ADD_ANSWERS = RowWrites(
    _OF_TALLIES
    | {
        "question_id": "bigint",
        "key": "uuid",
        "lease_id": "bigint",
        "frees_slot": "boolean",
        "slots": "integer",
        "is_waiting": "boolean",
        "move": "bigint",  # how far back in the queue
    },
    [
        """INSERT INTO answer (question_id, user_id, value, response_ms, key, created_at)
        SELECT question_id, :me, value, response_ms, key, :now FROM given""",
        """UPDATE lease SET expires_at = NULL
        WHERE id IN (SELECT lease_id FROM given WHERE NOT frees_slot)""",
        """DELETE FROM lease WHERE id IN (SELECT lease_id FROM given WHERE frees_slot)""",
        """UPDATE question
        SET slots = given.slots, is_waiting = given.is_waiting, rank = question.rank + given.move
        FROM given WHERE question.id = given.question_id AND given.slots IS NOT NULL""",
        _ADD_TO_TALLIES,
    ],
    *_COMMON,
)
# :ids of leases, :until, :first (turn)
HOLD_AGAIN = Prepared(
    update(_lease)
    .where(among(_lease.c.id, _ids))
    .values(expires_at=bindparam("until"), turn=bindparam("first"))
)
# :ids of questions, :new_slots, :waits, :move (how far back in the queue)
SET_STANDING = Prepared(
    update(_question)
    .where(among(_question.c.id, _ids))
    .values(
        slots=bindparam("new_slots"),
        is_waiting=bindparam("waits"),
        rank=_question.c.rank + bindparam("move", type_=BigInteger()),
    )
)
# :me, :campaign, :now
HELD = Prepared(
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
        _question.c.campaign_id == _in_campaign,
        _lease.c.user_id == _me,
        _lease.c.expires_at > _now,
    )
    .order_by(_lease.c.turn, _lease.c.id)
)
# :me, :campaign, :now; before everything this person holds
FIRST_TURN = Prepared(
    select(func.coalesce(func.min(_lease.c.turn), 1) - 1)
    .join(_question, _question.c.id == _lease.c.question_id)
    .where(
        _question.c.campaign_id == _in_campaign,
        _lease.c.user_id == _me,
        _lease.c.expires_at > _now,
    )
)
# A literal because PostgreSQL uses no partial index for a value that it does not know.
IS_GOLD = _question.c.purpose == literal_column("'gold'")
_HAS_GOLD = exists().where(_question.c.campaign_id == _in_campaign, IS_GOLD)
_MY_PART = (_participant.c.campaign_id == _in_campaign, _participant.c.user_id == _me)
_IS_PAUSED = exists().where(*_MY_PART, _participant.c.paused_at.is_not(None))
# :me, :campaign; gives whether I am paused, and whether there is gold
PERSON = Prepared(select(_IS_PAUSED, _HAS_GOLD))
_GOLD_ANSWERS = select(_participant.c.gold_answers).where(*_MY_PART).scalar_subquery()
# :campaign, :me; gives how many answers of mine count
MY_ANSWERS = Prepared(
    select(
        func.coalesce(func.sum(_tally.c.yes + _tally.c.no + _tally.c.unsure), 0)
        + func.coalesce(_GOLD_ANSWERS, 0)
    ).where(_tally.c.campaign_id == _in_campaign, _tally.c.user_id == _me)
)
# :campaign; gives finished questions, and whether there is gold; a sum over people and classes
FINISHED = Prepared(
    select(func.coalesce(func.sum(_tally.c.finished), 0), _HAS_GOLD).where(
        _tally.c.campaign_id == _in_campaign
    )
)
# :turn, :state (locks)
TAKE_TURN = Prepared(
    select(
        func.pg_advisory_xact_lock(bindparam("turn", type_=BigInteger())),
        func.pg_advisory_xact_lock_shared(bindparam("state", type_=BigInteger())),
        # For this transaction. PostgreSQL takes few given rows for a hundred, and would read all questions to
        # join them with, or start processes to read them; what it plans while tables are small it would keep
        # when they are large; and planning anew, for values that it knows, takes longer than running these.
        func.set_config("enable_hashjoin", "off", True),
        func.set_config("enable_mergejoin", "off", True),
        func.set_config("enable_seqscan", "off", True),
        func.set_config("enable_bitmapscan", "off", True),
        func.set_config("max_parallel_workers_per_gather", "0", True),
        func.set_config("plan_cache_mode", "force_generic_plan", True),
    )
)
# :campaign, :me; as `app.annotation.turns.Turn` has it
TURN = Prepared(
    select(
        _campaign.c.id,
        _campaign.c.dataset_id,
        _campaign.c.state,
        _campaign.c.seed,
        _campaign.c.question_count,
        _campaign.c.confirm_yes,
        _campaign.c.gold_share,
        _campaign.c.gold_bound,
        _campaign.c.gold_feedback,
        _IS_PAUSED,
        _HAS_GOLD,
    ).where(_campaign.c.id == _in_campaign)
)

_gold_counts = ("gold_answers", "gold_right", "gold_wrong")
_part_on_postgresql, _part_on_sqlite = postgresql_insert(_participant), sqlite_insert(_participant)
# A row as parameters: its counts are added to what is there.
ADD_TO_PARTICIPANT = {
    "postgresql": _part_on_postgresql.on_conflict_do_update(
        index_elements=("campaign_id", "user_id"),
        set_={name: _participant.c[name] + _part_on_postgresql.excluded[name] for name in _gold_counts},
    ),
    "sqlite": _part_on_sqlite.on_conflict_do_update(
        index_elements=("campaign_id", "user_id"),
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
    ).where(_host.c.question_id == bindparam("host"), _host.c.user_id == _me),
)
LEASE_GOLD = {
    "postgresql": postgresql_insert(_lease).from_select(*_gold_lease).on_conflict_do_nothing(),
    "sqlite": sqlite_insert(_lease).from_select(*_gold_lease).on_conflict_do_nothing(),
}
