"""The statements that run for every answer, over the tables: plain rows, and what each of them says."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Table,
    Text,
    Uuid,
    bindparam,
    exists,
    func,
    literal_column,
    null,
    select,
    type_coerce,
    union_all,
)

import app.accounts.models  # noqa: F401  (columns have the type of the key that they point at)
from app.annotation.fates import binding
from app.annotation.locking import LockedCampaign
from app.annotation.models import (
    ALL_ANSWERS,
    Answer,
    AnswerValue,
    Lease,
    Participant,
    Question,
    Tally,
    UsedTime,
)
from app.annotation.rules import QuestionState
from app.campaigns.admission import admitted
from app.campaigns.models import Campaign, CampaignClass
from app.db import BigId, UtcDateTime
from app.fast.compiling import ListOf, in_list
from app.fast.prepared import Prepared, RowWrites


class KnownKey(NamedTuple):
    """An answer that this person has under a key."""

    key: UUID
    question_id: int
    value: AnswerValue


class SlotOrAnswer(NamedTuple):
    """One of the slots of a question, or one of its live answers."""

    question_id: int
    user_id: UUID
    lease_id: int | None  # None: an answer
    slot: int | None
    expires_at: datetime | None
    held_since: datetime | None
    value: AnswerValue | None  # None: a slot
    is_hasty: bool | None


class HeldQuestion(NamedTuple):
    """A question that this person holds."""

    id: int
    example_id: int
    candidate_class: int
    class_name: str
    expires_at: datetime
    rank: int
    probability: float
    turn: int


class MyAnswers(NamedTuple):
    """How many answers of this person count, those to known pictures included."""

    answers: int


class Given(NamedTuple):
    """How many answers of everybody count, those to known pictures included, and whether it has any."""

    answers: int
    has_gold: bool


def _table(model: type) -> Table:
    table = model.__table__  # type: ignore[attr-defined]  # every mapped class has one
    assert isinstance(table, Table)
    return table


_question, _lease, _answer, _tally, _participant = map(_table, (Question, Lease, Answer, Tally, Participant))
_class, _campaign, _used = _table(CampaignClass), _table(Campaign), _table(UsedTime)
_me, _in_campaign = bindparam("me", type_=Uuid()), bindparam("campaign", type_=Uuid())
_now = bindparam("now", type_=UtcDateTime())
_ids, _keys = bindparam("ids", type_=ListOf(BigId)), bindparam("keys", type_=ListOf(Uuid()))

# :ids of questions, :campaign; locked in id order, so that two requests cannot deadlock. On SQLite, which
# locks none, the caller looks at the campaign: as a condition it made SQLite walk through all its questions.
_lock_questions = (
    select(*(_question.c[name] for name in QuestionState._fields))
    .where(in_list(_question.c.id, _ids))
    .order_by(_question.c.id)
    .with_for_update(key_share=True)
)
LOCK_QUESTIONS = Prepared(
    QuestionState._make,
    {
        "postgresql": _lock_questions.where(_question.c.campaign_id == _in_campaign),
        "sqlite": _lock_questions,
    },
)
# :ids of questions; in a statement of its own, because one that waits for a lock still sees what was before
SLOTS_AND_ANSWERS = Prepared(
    SlotOrAnswer._make,
    union_all(
        select(
            _lease.c.question_id,
            _lease.c.user_id,
            _lease.c.id,
            _lease.c.slot,
            _lease.c.expires_at,
            _lease.c.held_since,
            type_coerce(null(), _answer.c.value.type).label("value"),
            type_coerce(null(), _answer.c.is_hasty.type).label("is_hasty"),
        ).where(in_list(_lease.c.question_id, _ids)),
        select(
            _answer.c.question_id,
            _answer.c.user_id,
            null(),
            null(),
            null(),
            null(),
            _answer.c.value,
            _answer.c.is_hasty,
        ).where(in_list(_answer.c.question_id, _ids), _answer.c.superseded_at.is_(None)),
    ),
)
# :me, :keys
KNOWN_KEYS = Prepared(
    KnownKey._make,
    select(_answer.c.key, _answer.c.question_id, _answer.c.value).where(
        _answer.c.user_id == _me, in_list(_answer.c.key, _keys)
    ),
)

# What one answer adds to the sums of its person and class; as `app.annotation.tallies.count_answer`.
_COUNTS = {
    "yes": "CASE WHEN value = 'yes' THEN 1 ELSE 0 END",
    "no": "CASE WHEN value = 'no' THEN 1 ELSE 0 END",
    "unsure": "CASE WHEN value = 'unsure' THEN 1 ELSE 0 END",
    "unusable": "CASE WHEN value = 'unusable' THEN 1 ELSE 0 END",
    "first_yes": "CASE WHEN value = 'yes' AND is_first THEN 1 ELSE 0 END",
    "first_no": "CASE WHEN value = 'no' AND is_first THEN 1 ELSE 0 END",
    "confirmed": "confirmed",
    "denied": "denied",
    "finished": "finished",
    "timed": "CASE WHEN response_ms IS NULL THEN 0 ELSE 1 END",
    "active_ms": "coalesce(response_ms, 0)",
}
# Answers with all that follows from them. One to a known picture, which has no place in the queue and enters
# no sum, does not count; it writes the same rows as any other, with what they hold already.
ADD_ANSWERS = RowWrites(
    {
        "question_id": "bigint",
        "value": "text",
        "response_ms": "integer",
        "key": "uuid",
        "lease_id": "bigint",
        "keeps_slot": "boolean",
        "is_hasty": "boolean",
        "slots": "integer",
        "is_waiting": "boolean",
        "move": "bigint",  # how far back in the queue
        "candidate_class": "integer",
        "counts": "boolean",
        "is_first": "boolean",
        "finished": "integer",
        "confirmed": "integer",
        "denied": "integer",
    },
    [
        """INSERT INTO answer (question_id, user_id, value, response_ms, key, created_at, is_hasty)
        SELECT question_id, :me, value, response_ms, key, :now, is_hasty FROM new_answer""",
        """UPDATE lease SET expires_at = NULL
        WHERE id IN (SELECT lease_id FROM new_answer WHERE keeps_slot)""",
        """DELETE FROM lease WHERE id IN (SELECT lease_id FROM new_answer WHERE NOT keeps_slot)""",
        """UPDATE question
        SET slots = new_answer.slots, is_waiting = new_answer.is_waiting,
            rank = question.rank + new_answer.move
        FROM new_answer WHERE question.id = new_answer.question_id""",
        f"""INSERT INTO tally
            (campaign_id, user_id, candidate_class, last_at, looked_until, {", ".join(_COUNTS)})
        SELECT :campaign, :me, candidate_class, :now, :until,
            {", ".join(f"sum(CASE WHEN counts THEN {sql} ELSE 0 END)" for sql in _COUNTS.values())}
        FROM new_answer WHERE true GROUP BY candidate_class
        ON CONFLICT (campaign_id, user_id, candidate_class) DO UPDATE
        SET last_at = excluded.last_at, looked_until = excluded.looked_until,
            {", ".join(f"{name} = tally.{name} + excluded.{name}" for name in _COUNTS)}""",
        """INSERT INTO used_time (user_id, spans)
        SELECT :me, CAST(:used AS text) FROM new_answer WHERE CAST(:used AS text) IS NOT NULL LIMIT 1
        ON CONFLICT (user_id) DO UPDATE SET spans = excluded.spans""",
    ],
    table="new_answer",
    common=(
        _in_campaign,
        _me,
        _now,
        bindparam("until", type_=UtcDateTime()),
        bindparam("used", type_=Text()),
    ),
)
# :campaign, :me, :now, :answered questions; as `app.annotation.fates.bind_known`
BIND_KNOWN = Prepared(
    tuple, binding(lambda column: in_list(column.expression, bindparam("answered", type_=ListOf(BigId))))
)
# :me, :campaign, :now
HELD = Prepared(
    HeldQuestion._make,
    select(
        _question.c.id,
        _question.c.example_id,
        _question.c.candidate_class,
        _class.c.name,
        _lease.c.expires_at,
        _question.c.rank,
        _question.c.probability,
        _lease.c.turn,
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
    .order_by(_lease.c.turn, _lease.c.id),
)
# A literal because PostgreSQL uses no partial index for a value that it does not know.
_HAS_GOLD = exists().where(
    _question.c.campaign_id == _in_campaign, _question.c.purpose == literal_column("'gold'")
)
_MY_PART = (_participant.c.campaign_id == _in_campaign, _participant.c.user_id == _me)
_GOLD_ANSWERS = select(_participant.c.gold_answers).where(*_MY_PART).scalar_subquery()
_GOLD_GIVEN = (
    select(func.coalesce(func.sum(_participant.c.gold_answers), 0))
    .where(_participant.c.campaign_id == _in_campaign)
    .scalar_subquery()
)
_ANSWERS_OF = func.coalesce(func.sum(ALL_ANSWERS), 0)
# :campaign, :me
MY_ANSWERS = Prepared(
    MyAnswers._make,
    select(_ANSWERS_OF + func.coalesce(_GOLD_ANSWERS, 0)).where(
        _tally.c.campaign_id == _in_campaign, _tally.c.user_id == _me
    ),
)
# :campaign; a sum over people and classes
GIVEN = Prepared(
    Given._make,
    select(_ANSWERS_OF + _GOLD_GIVEN, _HAS_GOLD).where(_tally.c.campaign_id == _in_campaign),
)
# :person, :state: as `app.annotation.locking.lock_keys` gives them
TAKE_LOCKS = Prepared(
    tuple,
    select(
        func.pg_advisory_xact_lock(bindparam("person", type_=BigInteger())),
        func.pg_advisory_xact_lock_shared(bindparam("state", type_=BigInteger())),
        # For this transaction. PostgreSQL takes few rows of JSON for a hundred, and would read all questions
        # to join them with, or start processes to read them; what it plans while tables are small it would
        # keep when they are large; and planning anew, for values that it knows, takes longer than running.
        func.set_config("enable_hashjoin", "off", True),
        func.set_config("enable_mergejoin", "off", True),
        func.set_config("enable_seqscan", "off", True),
        func.set_config("enable_bitmapscan", "off", True),
        func.set_config("max_parallel_workers_per_gather", "0", True),
        func.set_config("plan_cache_mode", "force_generic_plan", True),
    ),
)
# :campaign, :me, :outside
CAMPAIGN = Prepared(
    lambda row: LockedCampaign(*row),
    select(
        _campaign.c.id,
        _campaign.c.dataset_id,
        _campaign.c.state,
        _campaign.c.seed,
        _campaign.c.question_count,
        _campaign.c.rank_step,
        _campaign.c.confirm_yes,
        _campaign.c.confirm_law,
        _campaign.c.gold_share,
        _campaign.c.gold_bound,
        _campaign.c.least_card_ms,
        _campaign.c.least_page_ms,
        _campaign.c.least_picture_ms,
        select(func.max(_tally.c.looked_until))
        .where(_tally.c.campaign_id == _in_campaign, _tally.c.user_id == _me)
        .scalar_subquery(),
        select(_used.c.spans).where(_used.c.user_id == _me).scalar_subquery(),
        exists().where(*_MY_PART, _participant.c.paused_at.is_not(None)),
        _HAS_GOLD,
        _campaign.c.overlap,
        select(func.max(_class.c.position) + 1).where(_class.c.campaign_id == _in_campaign).scalar_subquery(),
        admitted(_me, bindparam("outside", type_=Boolean())),
        _campaign.c.rounds,
        _campaign.c.believed_count,
        _campaign.c.believed_yes,
        _campaign.c.modes,
    ).where(_campaign.c.id == _in_campaign),
)
