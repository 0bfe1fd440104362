"""What becomes of each answer that a client sends. Pure."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.annotation import rules
from app.annotation.errors import KeyReused
from app.annotation.models import AnswerValue
from app.campaigns.models import CampaignState
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
    right_value: AnswerValue | None = None  # a known picture was answered wrongly, and the campaign tells so


class Stored(NamedTuple):
    """An answer that is to be stored, and what follows from it."""

    answer: SubmittedAnswer
    question: rules.Asked
    slot: rules.Slot
    effect: rules.Effect | None  # None: a known picture


@dataclass(slots=True)
class Decision:
    """What to do with a batch."""

    submitted: Sequence[SubmittedAnswer]
    stored: list[Stored] = field(default_factory=list)
    refused: dict[UUID, str] = field(default_factory=dict)  # a sentence by key

    def outcomes(self, right: Mapping[UUID, AnswerValue]) -> list[Outcome]:
        """In the order of the batch, where a key that comes twice was stored once.

        Args:
            right: what is right, by the key of each answer whose person is to be told.
        """
        fresh = {item.answer.key for item in self.stored}
        found = []
        for item in self.submitted:
            if item.key in self.refused:
                found.append(Outcome(item.key, Status.REFUSED, self.refused[item.key]))
            elif item.key in fresh:
                fresh.remove(item.key)
                found.append(Outcome(item.key, Status.STORED, right_value=right.get(item.key)))
            else:
                found.append(Outcome(item.key, Status.REPEATED))
        return found


def decide(
    submitted: Sequence[SubmittedAnswer],
    known: Mapping[UUID, tuple[int, AnswerValue]],
    questions: Mapping[int, rules.Asked],
    *,
    state: CampaignState,
    confirm_yes: bool,
    is_paused: bool,
    by: UUID,
    now: datetime,
) -> Decision:
    """Which answers to store, and which to refuse.

    Args:
        submitted: one person's.
        known: question and value of this person's stored answers, by key.
        questions: those of the campaign that they are about, by id.
        state: of the campaign; a paused one takes answers, a closed one none.
        confirm_yes: its policy.
        is_paused: whether the person is; then none is taken.
        by: who answers.
        now: when.

    Raises:
        KeyReused: a key belongs to a different answer.
    """
    said = dict(known)
    decision = Decision(submitted)
    answered: set[int] = set()
    for item in _fresh(submitted, said):
        question = questions.get(item.question_id)
        is_twice = item.question_id in answered
        why = PAUSED_HERE if is_paused else _refusal(question, state, by, now, is_twice=is_twice)
        if why is not None:
            decision.refused[item.key] = why
            continue
        assert question is not None
        slot = question.slot_of(by)
        assert slot is not None  # without one it was refused
        answered.add(item.question_id)
        effect = rules.after_answer(question, item.value, by=by, now=now, confirm_yes=confirm_yes)
        decision.stored.append(Stored(item, question, slot, effect))
    return decision


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
