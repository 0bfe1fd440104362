"""Leasing what is asked again between first questions, as `mixing` says. Both executions do it here.

What returns to another person, and the settled questions that hide it where first ones have run out, stand
beside questions about the same class. The most doubtful settled ones come first: those on which people
disagreed, then what people said alone, the least trusted of them first.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from math import isclose
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Uuid,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.belief_mixing import mixture_by_belief
from app.annotation.consensus import MAX_SLOTS
from app.annotation.holding import LeasedQuestion
from app.annotation.locking import LockedCampaign
from app.annotation.mixing import Mixture, chance, mixture
from app.annotation.models import Answer, AnswerValue, Lease, Participant, Purpose, Question, Tally
from app.annotation.queue import (
    FREE_RETURNING,
    FREE_RETURNING_OF_CLASS,
    Found,
    Head,
    holding,
    lease_found,
    mine,
    not_met_as_known,
)
from app.db import UtcDateTime

SEVERAL = 2  # answers: where people disagreed, and no has more, there are three
LOOKED_AT = 8  # that return, at least, so that chance has something to choose from

_CAMPAIGN, _ME = bindparam("campaign", type_=Uuid()), bindparam("me", type_=Uuid())
_NOW = bindparam("now", type_=UtcDateTime())


def _answers(*which: ColumnElement[bool]) -> ColumnElement[int]:
    query = select(func.count()).where(
        Answer.question_id == Question.id, Answer.superseded_at.is_(None), *which
    )
    return query.correlate(Question).scalar_subquery()


_YES, _NO = _answers(Answer.value == AnswerValue.YES), _answers(Answer.value == AnswerValue.NO)
# Settled as no, held by nobody and without a word of this person.
_SETTLED = (
    select(Question.id, Question.slots, Question.rank)
    .where(
        Question.campaign_id == _CAMPAIGN,
        Question.candidate_class == bindparam("class_", type_=Integer()),
        Question.purpose == Purpose.LABELLING,
        ~Question.is_waiting,
        ~Question.is_set_aside,
        ~exists().where(Lease.question_id == Question.id, Lease.expires_at > _NOW),
        _answers(Answer.user_id == _ME) == 0,
        not_met_as_known(),
    )
    .limit(bindparam("room", type_=Integer()))
    .with_for_update(key_share=True, skip_locked=True, of=Question)
)
_DISPUTED = _SETTLED.where(
    Question.slots > literal_column("1"),
    Question.slots > SEVERAL,
    _YES > 0,
    _NO > _YES,
    _YES + _NO < MAX_SLOTS,
).order_by(_NO - _YES, Question.rank)
_said = Answer.__table__.alias("said")
_SAID_ALONE = (
    _SETTLED.join(_said, _said.c.question_id == Question.id)
    .where(
        _said.c.user_id == bindparam("person", type_=Uuid()),
        _said.c.value == AnswerValue.NO,
        _said.c.superseded_at.is_(None),
        _YES + _NO == 1,
    )
    .order_by(_said.c.id.desc())
)
_SUMS = select(
    func.coalesce(func.sum(Tally.yes + Tally.no), 0).label("answers"),
    func.coalesce(func.sum(Tally.first_yes + Tally.first_no), 0).label("firsts"),
    func.coalesce(func.sum(Tally.first_yes), 0).label("first_yes"),
    func.coalesce(func.sum(Tally.finished), 0).label("finished"),
).where(Tally.campaign_id == _CAMPAIGN)
_SETTLED_HELD = (
    select(func.count())
    .select_from(Lease)
    .join(Question, Question.id == Lease.question_id)
    .where(
        Question.campaign_id == _CAMPAIGN,
        Question.purpose == Purpose.LABELLING,
        ~Question.is_waiting,
        Lease.expires_at > _NOW,
    )
)
_PEOPLE = (
    select(
        Tally.user_id,
        func.sum(Tally.first_yes).label("yes"),
        func.sum(Tally.first_no).label("no"),
        func.max(Participant.gold_right).label("right"),
        func.max(Participant.gold_wrong).label("wrong"),
        func.count(Participant.paused_at).label("paused"),
    )
    .outerjoin(
        Participant, (Participant.campaign_id == Tally.campaign_id) & (Participant.user_id == Tally.user_id)
    )
    .where(Tally.campaign_id == _CAMPAIGN, Tally.user_id != _ME)
    .group_by(Tally.user_id)
    .having(func.sum(Tally.first_no) > 0)
)


class Hosts(NamedTuple):
    """First questions about one class behind which others are to stand."""

    class_: int
    firsts: list[LeasedQuestion]

    @property
    def turns(self) -> list[int]:
        """Of each, which what stands behind it gets, too."""
        return [first.turn for first in self.firsts]


def _law(campaign: LockedCampaign, probability: float, *, least: int = 1) -> Mixture:
    """By what stands beside a question that was drawn with this probability.

    Questions by a model's belief share one law, by what is expected of all of them: what returns beside one
    says nothing of what the model believes of its picture. Between two classes no answer makes a question
    return, and beliefs change nothing.
    """
    is_sure = probability == 1  # of an evaluation, about a prediction
    is_believed = not is_sure and not isclose(probability, 1 / campaign.num_classes)
    if campaign.believed_count and is_believed and campaign.confirming.of_yes:
        return mixture_by_belief(campaign.believed_yes / campaign.believed_count, least=least)
    return mixture(probability if is_sure else 1 / campaign.num_classes, least=least)


def hosts_among(campaign: LockedCampaign, firsts: Sequence[LeasedQuestion]) -> list[Hosts]:
    """Behind which of the first questions one that returns may stand; chance says so of each."""
    hosts: dict[int, Hosts] = {}
    for first in firsts:
        if _chance(campaign, first.rank) < _law(campaign, first.probability).returning:
            class_ = first.candidate_class
            hosts.setdefault(class_, Hosts(class_, [])).firsts.append(first)
    return list(hosts.values())


def mix_in_returning(
    session: Session, campaign: LockedCampaign, firsts: Sequence[LeasedQuestion], *, by: User, now: datetime
) -> bool:
    """Lease what returns right behind some of the first questions just leased; gives whether any was."""
    hosts = hosts_among(campaign, firsts)
    found = [_returning(session, campaign, each.class_, len(each.firsts), by=by, now=now) for each in hosts]
    placed = [
        pair
        for each, items in zip(hosts, found, strict=True)
        for pair in zip(items, each.turns, strict=False)
    ]
    return _lease(session, placed, by=by, now=now)


def places_for_returning(
    session: Session, campaign: LockedCampaign, room: int, head: Head, *, by: User, now: datetime
) -> int:
    """How many places of a page that begins at `head` are for what returns; the rest are for first ones."""
    law = _law(campaign, head.probability)
    firsts = returning = 0
    while firsts + returning < room:
        returning += _chance(campaign, head.block.block_start + firsts) < law.returning
        firsts += 1
    found = _returning(session, campaign, head.block.block_class, returning, by=by, now=now)
    return min(room - 1, len(found))


def lease_the_rest(
    session: Session, campaign: LockedCampaign, places: int, *, by: User, now: datetime
) -> bool:
    """Where first questions have run out: lease what returns, and settled ones of the same class between.

    Gives whether anything was leased. Nothing is where nothing returns to this person.
    """
    held, last_turn = holding(session, campaign, by=by, now=now)
    room = places - held
    if room <= 0:
        return False
    head = session.execute(FREE_RETURNING, mine(campaign, by, now) | {"room": 1}).one_or_none()
    if head is None:
        return False
    class_ = head.candidate_class
    law = _law(campaign, head.probability, least=head.least)
    found = _returning(session, campaign, class_, max(room, LOOKED_AT), by=by, now=now)
    if law.settled_later:
        left = _left(session, campaign, law, now)
        expected = len(found) * law.settled_among_the_rest(left.allowed, left.coming)
        wanted = int(expected + _chance(campaign, head.rank, 2, by.id.int, last_turn))
        found += _settled(session, campaign, class_, min(wanted, left.allowed), law, by=by, now=now)
    drawn = sorted(found, key=lambda item: _chance(campaign, item.rank, by.id.int, last_turn))[:room]
    return _lease(
        session, zip(drawn, range(last_turn + 1, last_turn + 1 + len(drawn)), strict=True), by=by, now=now
    )


def _chance(campaign: LockedCampaign, rank: int, *about: int) -> float:
    """By the question's place as it was drawn."""
    return chance(campaign.seed, rank % campaign.rank_step, *about)


def _lease(session: Session, placed: Iterable[tuple[Found, int]], *, by: User, now: datetime) -> bool:
    """Lease locked questions with these turns; gives whether there was any."""
    found = list(placed)
    if not found:
        return False
    taken = set(
        lease_found(session, [item for item, _ in found], [turn for _, turn in found], by=by, now=now)
    )
    settled = [item.id for item, _ in found if item.is_settled and item.id in taken]
    if settled:
        session.execute(
            update(Question).where(Question.id.in_(settled)).values(slots=Question.slots + 1),
            execution_options={"synchronize_session": False},
        )
    return bool(taken)


def _returning(
    session: Session, campaign: LockedCampaign, class_: int, count: int, *, by: User, now: datetime
) -> list[Found]:
    if not count:
        return []
    values = mine(campaign, by, now) | {"class_": class_, "room": count}
    return [Found(row.id, row.slots, row.rank) for row in session.execute(FREE_RETURNING_OF_CLASS, values)]


def _settled(
    session: Session,
    campaign: LockedCampaign,
    class_: int,
    count: int,
    law: Mixture,
    *,
    by: User,
    now: datetime,
) -> list[Found]:
    """The most doubtful settled questions for this person, so many at most."""
    found: dict[int, Found] = {}
    for query, more in _from_the_most_doubtful(session, campaign, law, by) if count else ():
        values = mine(campaign, by, now) | {"class_": class_, "room": count - len(found)}
        for row in session.execute(query, values | more):
            found[row.id] = Found(row.id, row.slots + 1, row.rank, is_settled=True)
        if len(found) >= count:
            break
    return list(found.values())


class _Left(NamedTuple):
    allowed: int  # answers that there may be more, beside those that questions which wait still need
    coming: int  # these


def _left(session: Session, campaign: LockedCampaign, law: Mixture, now: datetime) -> _Left:
    """By what was said: there may be more confirmations than one in K, and fewer."""
    sums = session.execute(_SUMS, {"campaign": campaign.id}).one()
    held = session.scalar(_SETTLED_HELD, {"campaign": campaign.id, "now": now}) or 0
    coming = int(sums.firsts - sums.finished)
    needed = (law.answers - law.probability) * int(sums.firsts) + int(sums.first_yes)
    return _Left(max(0, int(needed - int(sums.answers) - coming - held)), coming)


def _from_the_most_doubtful(
    session: Session, campaign: LockedCampaign, law: Mixture, by: User
) -> Iterator[tuple[Select[int, int, int], dict[str, object]]]:
    """Where to look for settled questions, one query with its values after the other."""
    yield _DISPUTED, {}
    people = session.execute(_PEOPLE, {"campaign": campaign.id, "me": by.id}).all()
    for row in sorted(people, key=lambda row: _trust(law, *row[1:5], is_out=row.paused > 0)):
        yield _SAID_ALONE, {"person": row.user_id}


def _trust(
    law: Mixture, yes: int, no: int, right: int | None, wrong: int | None, *, is_out: bool
) -> tuple[bool, float, float]:
    """How far to trust what somebody said alone: by known pictures, then by their share of yes."""
    known = (right or 0) + (wrong or 0)
    return not is_out, (right or 0) / known if known else 1.0, -abs(yes / (yes + no) - law.probability)
