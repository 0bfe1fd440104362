"""One person's turn in a campaign: who may know of it, and what a request needs of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.models import Lease, Question, Tally
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign, CampaignState
from app.campaigns.service import any_campaign, state_lock_key
from app.prepared import Given, Rows, together


@dataclass(frozen=True, slots=True)
class Turn:
    """A campaign while one person's request runs; its state stays as it is until the transaction ends."""

    id: UUID
    dataset_id: UUID
    state: CampaignState
    seed: str
    question_count: int
    confirm_yes: bool
    gold_share: float
    gold_bound: float
    gold_feedback: bool
    is_paused: bool  # the person, before what this request does
    has_gold: bool


def take_turn(session: Session, campaign_id: UUID, *, by: User) -> Turn:
    """Let one request of this person in this campaign run at a time: two tabs get the same questions.

    Gives the campaign as it is then. Closing it waits, and so no answer lands after it.

    Raises:
        CampaignNotFound: as for `campaign_to_answer`.
    """
    return take_turn_with(session, campaign_id, (), by=by)[0]


def take_turn_with(
    session: Session, campaign_id: UUID, more: Sequence[Given], *, by: User
) -> tuple[Turn, list[Rows]]:
    """The same, and what statements give that run as soon as it is this person's turn.

    Raises:
        CampaignNotFound: as for `campaign_to_answer`.
    """
    locks = []
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer anyway
        key = (by.id.int ^ campaign_id.int) % 2**63
        locks = [statements.TAKE_TURN.given(turn=key, state=state_lock_key(campaign_id))]
    # The state is read in a statement of its own: one that waits for a lock still sees what was before.
    find = statements.TURN.given(campaign=campaign_id, me=by.id)
    rows, *others = together(session, *locks, find, *more)[len(locks) :]
    if not rows:
        raise CampaignNotFound
    turn = Turn(*rows[0])
    _require_may_know(session, turn.id, turn.state, by)
    return turn, others


def campaign_to_answer(session: Session, campaign_id: UUID, *, by: User) -> Campaign:
    """The campaign with its classes, for somebody who answers or has answered questions of it.

    Raises:
        CampaignNotFound: there is none that this person may know of; whoever took part may know that it is
            paused or closed.
    """
    campaign = any_campaign(session, campaign_id)
    _require_may_know(session, campaign.id, campaign.state, by)
    return campaign


def _require_may_know(session: Session, campaign_id: UUID, state: CampaignState, user: User) -> None:
    if state is CampaignState.OPEN or user.is_admin:
        return
    answered = exists().where(Tally.campaign_id == campaign_id, Tally.user_id == user.id)
    holds = exists().where(
        Lease.user_id == user.id, Lease.question_id == Question.id, Question.campaign_id == campaign_id
    )
    if not session.scalar(select(answered)) and not session.scalar(select(holds)):
        raise CampaignNotFound
