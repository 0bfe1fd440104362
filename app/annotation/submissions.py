"""What becomes of each answer that a client sends. Pure."""

import enum
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.accounts.models import User
from app.annotation import rules
from app.annotation.errors import KeyReused
from app.annotation.haste import Look, Looks, ShortestLook, Told, looks
from app.annotation.locking import LockedCampaign
from app.annotation.models import AnswerValue
from app.annotation.used_time import Span, read_spans, with_used, written
from app.campaigns.models import CampaignState, Modes
from app.languages import translatable

NOT_HERE = translatable("There is no such question in this campaign.")
CLOSED = translatable("The campaign is closed and takes no more answers.")
NOT_OPEN_YET = translatable("The campaign is not open yet.")
ANSWERED_BY_YOU = translatable("You have answered this question already.")
PAUSED_HERE = translatable("You are paused in this campaign, so this answer was not taken.")
TAKEN = translatable("Somebody else got this question in the meantime; your answer was not needed.")


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """What a client sends."""

    question_id: int
    value: AnswerValue
    response_ms: int | None
    key: UUID
    page: int = 1  # pictures that were shown together


class Status(enum.StrEnum):
    """What became of a submitted answer."""

    STORED = "stored"
    REPEATED = "repeated"  # it was stored before
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one submitted answer; `detail` is a sentence if it was refused."""

    key: UUID
    status: Status
    detail: str | None = None


class Stored(NamedTuple):
    """An answer that is to be stored, and what follows from it."""

    answer: SubmittedAnswer
    question: rules.Asked
    slot: rules.Slot
    effect: rules.Effect | None  # None: a known picture
    is_hasty: bool = False


@dataclass(slots=True)
class Decision:
    """What to do with a batch."""

    submitted: Sequence[SubmittedAnswer]
    stored: list[Stored] = field(default_factory=list)
    refused: dict[UUID, str] = field(default_factory=dict)  # a sentence by key
    # Until when the person's answers to the campaign used up the time, and their time in all; see `haste`.
    looked_until: datetime | None = None
    used: str | None = None  # None: as it was

    def outcomes(self) -> list[Outcome]:
        """In the order of the batch, where a key that comes twice was stored once."""
        fresh = {item.answer.key for item in self.stored}
        found = []
        for item in self.submitted:
            if item.key in self.refused:
                found.append(Outcome(item.key, Status.REFUSED, self.refused[item.key]))
            elif item.key in fresh:
                fresh.remove(item.key)
                found.append(Outcome(item.key, Status.STORED))
            else:
                found.append(Outcome(item.key, Status.REPEATED))
        return found


def decide(
    submitted: Sequence[SubmittedAnswer],
    known: Mapping[UUID, tuple[int, AnswerValue]],
    questions: Mapping[int, rules.Asked],
    *,
    campaign: LockedCampaign,
    by: User,
    now: datetime,
    lost: Collection[int] = (),
) -> Decision:
    """Which answers to store, and which to refuse.

    Args:
        submitted: one person's.
        known: question and value of this person's stored answers, by key.
        questions: those of the campaign that they are about, by id.
        campaign: a paused one takes answers, a closed one none; of a person who is paused none is taken.
        by: who answers; programs that say they are ones may be fast.
        now: when.
        lost: known pictures that come as late as the questions beside them, which somebody else got.

    Raises:
        KeyReused: a key belongs to a different answer.
    """
    said = dict(known)
    decision = Decision(submitted)
    answered: set[int] = set()
    taken: list[tuple[SubmittedAnswer, rules.Asked, rules.Slot]] = []
    for item in _fresh(submitted, said):
        question = questions.get(item.question_id)
        is_twice = item.question_id in answered
        why = (
            PAUSED_HERE
            if campaign.is_paused
            else _refusal(question, campaign.state, by.id, now, is_twice=is_twice)
        )
        if why is None and item.question_id in lost:
            why = TAKEN
        if why is not None:
            decision.refused[item.key] = why
            continue
        assert question is not None
        slot = question.slot_of(by.id)
        assert slot is not None  # without one it was refused
        answered.add(item.question_id)
        taken.append((item, question, slot))
    used = read_spans(campaign.used)
    found = _looks(taken, campaign, used, by=by, now=now)
    decision.looked_until = found.until
    if found.spans:
        decision.used = written(with_used(used, found.spans, now))
    for (item, question, slot), look in zip(taken, found.found, strict=True):
        value = None if look.is_hasty else item.value
        effect = rules.after_answer(
            question,
            value,
            by=by.id,
            now=now,
            confirm_yes=campaign.confirming.of_yes,
            lead=campaign.lead(question.row.id),
        )
        believed = item if item.response_ms == look.ms else replace(item, response_ms=look.ms)
        decision.stored.append(Stored(believed, question, slot, effect, look.is_hasty))
    return decision


def _looks(
    taken: Sequence[tuple[SubmittedAnswer, rules.Asked, rules.Slot]],
    campaign: LockedCampaign,
    used: Sequence[Span],
    *,
    by: User,
    now: datetime,
) -> Looks:
    """What is believed of the looks before these answers: who cannot tell has looked, too.

    How many pictures stood on a page is the client's word. No more are believed than came together, about one
    class, and none where the campaign shows no pages. Where it does, whoever sends many answers at once may
    have seen them as a page: a program could lease it as one, so leases prove nothing more.
    The few of a page that a long queue leaves to its next request are read as a smaller page.
    """
    if by.is_simulated:
        believed = [Look(item.response_ms, is_hasty=False) for item, _, _ in taken]
        return Looks(believed, campaign.looked_until, [])
    shortest = ShortestLook(campaign.least_card_ms, campaign.least_page_ms, campaign.least_picture_ms)
    together = Counter(question.row.candidate_class for _, question, _ in taken)
    most = 1 if campaign.modes is Modes.CARD else len(taken)
    told = [
        Told(item.response_ms, min(item.page, together[question.row.candidate_class], most), slot.held_since)
        for item, question, slot in taken
    ]
    return looks(told, shortest, until=campaign.looked_until, now=now, used=used)


def _fresh(
    submitted: Sequence[SubmittedAnswer], said: dict[UUID, tuple[int, AnswerValue]]
) -> list[SubmittedAnswer]:
    """Those whose key is new."""
    fresh = []
    for item in submitted:
        this = (item.question_id, item.value)
        if item.key not in said:
            said[item.key] = this
            fresh.append(item)
        elif said[item.key] != this:
            raise KeyReused(item.key)
    return fresh


def _refusal(
    question: rules.Asked | None, state: CampaignState, by: UUID, now: datetime, *, is_twice: bool
) -> str | None:
    if state is CampaignState.CLOSED:
        return CLOSED
    if state is CampaignState.DRAFT:
        return NOT_OPEN_YET
    if question is None:
        return NOT_HERE
    if is_twice or any(user_id == by for user_id, _ in question.answers):
        return ANSWERED_BY_YOU
    return None if rules.may_answer(question, by, now) else TAKEN
