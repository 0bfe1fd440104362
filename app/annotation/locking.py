"""What a request locks before it changes anything: the person's place in the campaign, and questions."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, BindParameter, Boolean, Uuid, bindparam, exists, func, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import flag_modified

from app.accounts.models import User
from app.annotation import rules
from app.annotation.errors import CampaignNotOpen
from app.annotation.mixing import chance_of_confirming
from app.annotation.models import Answer, Lease, Participant, Purpose, Question, Tally, UsedTime
from app.campaigns.admission import admitted
from app.campaigns.confirming import Confirming
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import Campaign, CampaignClass, CampaignState, Modes
from app.campaigns.service import state_lock_key, visible_campaign


@dataclass(frozen=True, slots=True)
class LockedCampaign:
    """A campaign while one person's request runs; its state stays as it is until the transaction ends."""

    id: UUID
    dataset_id: UUID
    state: CampaignState
    seed: str
    question_count: int
    rank_step: int
    confirm_yes: bool
    confirm_law: int
    gold_share: float
    gold_bound: float
    least_card_ms: int
    least_page_ms: int
    least_picture_ms: int
    looked_until: datetime | None  # the person, by their answers so far; see `haste`
    used: str | None  # their time, in all campaigns; see `used_time`
    is_paused: bool  # the person, before what this request does
    has_gold: bool
    overlap: int
    num_classes: int
    is_admitted: bool  # the person, as far as being a member goes
    rounds: int
    believed_count: int
    believed_yes: float
    modes: Modes

    @property
    def confirming(self) -> Confirming:
        """What a second person is asked."""
        return Confirming(self.confirm_yes, self.overlap, self.num_classes, self.confirm_law)

    @property
    def goes_on(self) -> bool:
        """Whether more may be asked of the person, as of before what this request does."""
        return self.state is CampaignState.OPEN and not self.is_paused

    def lead(self, question_id: int) -> int:
        """As `Confirming.lead`, of a question; nobody is told."""
        return self.confirming.lead(chance_of_confirming(self.seed, question_id))


_CAMPAIGN, _ME = bindparam("campaign", type_=Uuid()), bindparam("me", type_=Uuid())
_TAKE_LOCKS = select(
    func.pg_advisory_xact_lock(bindparam("person", type_=BigInteger())),
    func.pg_advisory_xact_lock_shared(bindparam("state", type_=BigInteger())),
)
_FIND = select(
    Campaign.id,
    Campaign.dataset_id,
    Campaign.state,
    Campaign.seed,
    Campaign.question_count,
    Campaign.rank_step,
    Campaign.confirm_yes,
    Campaign.confirm_law,
    Campaign.gold_share,
    Campaign.gold_bound,
    Campaign.least_card_ms,
    Campaign.least_page_ms,
    Campaign.least_picture_ms,
    select(func.max(Tally.looked_until))
    .where(Tally.campaign_id == _CAMPAIGN, Tally.user_id == _ME)
    .scalar_subquery()
    .label("looked_until"),
    select(UsedTime.spans).where(UsedTime.user_id == _ME).scalar_subquery().label("used"),
    exists()
    .where(
        Participant.campaign_id == _CAMPAIGN,
        Participant.user_id == _ME,
        Participant.paused_at.is_not(None),
    )
    .label("is_paused"),
    exists().where(Question.campaign_id == _CAMPAIGN, Question.purpose == Purpose.GOLD).label("has_gold"),
    Campaign.overlap,
    select(func.max(CampaignClass.position) + 1)
    .where(CampaignClass.campaign_id == _CAMPAIGN)
    .scalar_subquery()
    .label("num_classes"),
    admitted(_ME, bindparam("outside", type_=Boolean())).label("is_admitted"),
    Campaign.rounds,
    Campaign.believed_count,
    Campaign.believed_yes,
    Campaign.modes,
).where(Campaign.id == _CAMPAIGN)
_IDS: BindParameter[int] = bindparam("ids", expanding=True)
# In the order of their ids, so that two requests cannot wait for each other.
_LOCK_QUESTIONS = (
    select(Question)
    .where(Question.campaign_id == _CAMPAIGN, Question.id.in_(_IDS))
    .order_by(Question.id)
    .with_for_update(key_share=True)
    .execution_options(populate_existing=True)
)
_SLOTS = select(
    Lease.question_id, Lease.id, Lease.slot, Lease.user_id, Lease.expires_at, Lease.held_since
).where(Lease.question_id.in_(_IDS))
_ANSWERS = select(Answer.question_id, Answer.user_id, Answer.value, Answer.is_hasty).where(
    Answer.question_id.in_(_IDS), Answer.superseded_at.is_(None)
)


def lock_campaign(session: Session, campaign_id: UUID, *, by: User) -> LockedCampaign:
    """Let one request of this person run at a time: two tabs get the same questions, and time is used once.

    Gives the campaign as it is then. Closing it waits, and so no answer lands after it.

    Raises:
        CampaignNotFound: as for `campaign_to_answer`.
    """
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer anyway
        person, state = lock_keys(campaign_id, by)
        session.execute(_TAKE_LOCKS, {"person": person, "state": state})
    # A statement of its own: one that waits for a lock still sees what was before.
    row = session.execute(
        _FIND, {"campaign": campaign_id, "me": by.id, "outside": by.is_outside}
    ).one_or_none()
    if row is None:
        raise CampaignNotFound
    campaign = LockedCampaign(**row._mapping)
    require_admitted(session, campaign, by)
    return campaign


def require_admitted(session: Session, campaign: LockedCampaign, user: User) -> None:
    """Raises CampaignNotFound as `campaign_to_answer`."""
    if not campaign.is_admitted and not user.may_review:
        raise CampaignNotFound
    _require_may_know(session, campaign.id, campaign.state, user)


def lock_keys(campaign_id: UUID, by: User) -> tuple[int, int]:
    """Of PostgreSQL's advisory locks: the person, and the campaign's state."""
    return by.id.int % 2**63, state_lock_key(campaign_id)


def lock_questions(
    session: Session, campaign_id: UUID, ids: Collection[int]
) -> tuple[dict[int, Question], dict[int, rules.Asked]]:
    """Questions of the campaign, locked until the transaction ends, and all that bears on them."""
    found = session.scalars(_LOCK_QUESTIONS, {"campaign": campaign_id, "ids": list(ids)})
    questions = {question.id: question for question in found}
    asked = {id_: rules.Asked(_state(question)) for id_, question in questions.items()}
    # In statements of their own, for the same reason as above.
    for question_id, *slot in session.execute(_SLOTS, {"ids": list(asked)}):
        asked[question_id].slots.append(rules.Slot._make(slot))
    for question_id, user_id, value, is_hasty in session.execute(_ANSWERS, {"ids": list(asked)}):
        asked[question_id].answers.append((user_id, None if is_hasty else value))
    return questions, asked


def _state(question: Question) -> rules.QuestionState:
    return rules.QuestionState(*(getattr(question, name) for name in rules.QuestionState._fields))


def apply_effect(question: Question, effect: rules.Effect | None, campaign: LockedCampaign) -> None:
    """Let a question stand as the rules say. A known picture stands as before, and takes as long to write."""
    flag_modified(question, "is_waiting")  # so that it is
    if effect is None:
        return
    question.slots, question.is_waiting = effect.slots, effect.is_waiting
    question.rank += effect.moved(campaign.rank_step)


def campaign_to_answer(session: Session, campaign_id: UUID, *, by: User) -> Campaign:
    """The campaign with its classes, for somebody who answers or has answered questions of it.

    Raises:
        CampaignNotFound: there is none that this person may know of; whoever took part may know that it is
            paused or closed.
    """
    campaign = visible_campaign(session, campaign_id, by=by)
    _require_may_know(session, campaign.id, campaign.state, by)
    return campaign


def require_asking(campaign: Campaign | LockedCampaign) -> None:
    """Raises CampaignNotOpen where nothing more can be asked: in a draft, and once it is closed."""
    if campaign.state not in (CampaignState.OPEN, CampaignState.PAUSED):
        raise CampaignNotOpen(state=campaign.state, asking=True)


def _require_may_know(session: Session, campaign_id: UUID, state: CampaignState, user: User) -> None:
    if state is CampaignState.OPEN or user.may_review:
        return
    answered = exists().where(Tally.campaign_id == campaign_id, Tally.user_id == user.id)
    holds = exists().where(
        Lease.user_id == user.id, Lease.question_id == Question.id, Question.campaign_id == campaign_id
    )
    if not session.scalar(select(answered)) and not session.scalar(select(holds)):
        raise CampaignNotFound
