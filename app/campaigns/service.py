"""A campaign's life: drafted, opened once its questions are drawn, paused, closed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, true
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, selectinload

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.admission import visible_to
from app.campaigns.classes import ClassDetails, checked_classes
from app.campaigns.draws import new_seed
from app.campaigns.errors import (
    CampaignInUse,
    CampaignNameTaken,
    CampaignNotFound,
    EvaluationIsFixed,
    NotADraft,
    SourceNotReady,
    WrongCampaignState,
)
from app.campaigns.models import (
    CHOSEN,
    Campaign,
    CampaignState,
    Consensus,
    FurtherDrawing,
    Modes,
    PricePer,
)
from app.campaigns.noting import changed_facts, draft_facts, edited_facts, note, policy_facts
from app.datasets.models import Dataset, DatasetState
from app.journal.models import Action
from app.uses import evaluations_that_use, itself, named, uses_of

MAX_OVERLAP = 3


@dataclass(frozen=True, slots=True)
class CampaignDetails:
    """Everything that can be chosen while a campaign is a draft."""

    name: str
    dataset_id: UUID
    classes: tuple[ClassDetails, ...] = ()  # none: the dataset's own
    instructions: str = ""
    confirm_yes: bool = True
    overlap: int = 1
    consensus: Consensus = Consensus.DAWID_SKENE
    gold_share: float = 0.05
    gold_bound: float = 0.7
    least_card_ms: int = 200
    least_page_ms: int = 300
    least_picture_ms: int = 50
    asks_again: bool = True
    skip_twins: bool = False
    class_language: str = ""  # a tag as in `lang` attributes
    tells_others: bool = False
    rounds: int = 1
    modes: Modes = Modes.BOTH

    def chosen(self) -> dict[str, Any]:
        """Instructions and policy, by the names of the columns."""
        return {name: getattr(self, name) for name in CHOSEN}


def create_campaign(session: Session, details: CampaignDetails, *, by: User, now: datetime) -> Campaign:
    """A draft with its own secret seed.

    Raises:
        NotAllowed: `by` is no admin.
        SourceNotReady, InvalidClasses, CampaignNameTaken: nothing was made.
    """
    accounts.require_admin(by)
    classes = checked_classes(session, details.dataset_id, details.classes, rounds=details.rounds)
    campaign = Campaign(
        name=details.name,
        dataset_id=details.dataset_id,
        state=CampaignState.DRAFT,
        **details.chosen(),
        seed=new_seed(),
        created_by_id=by.id,
        created_at=now,
        classes=classes,
    )
    add_campaign(session, campaign)
    note(session, Action.CAMPAIGN_CREATED, campaign, by=by, details=draft_facts(campaign))
    return campaign


def add_campaign(session: Session, campaign: Campaign) -> None:
    """Keep a draft under its name; raises CampaignNameTaken."""
    name = campaign.name
    try:
        with session.begin_nested():
            session.add(campaign)
    except IntegrityError as error:
        raise CampaignNameTaken(name, named(session, Campaign, name)) from error


def edit_campaign(session: Session, campaign: Campaign, details: CampaignDetails, *, by: User) -> None:
    """Change a draft.

    Raises:
        NotAllowed: `by` is no admin.
        NotADraft: its opening was asked for already.
        EvaluationIsFixed: of an evaluation, what follows from its predictions.
        SourceNotReady, InvalidClasses, CampaignNameTaken: nothing was changed.
    """
    accounts.require_admin(by)
    lock_state(session, campaign)
    if campaign.state is not CampaignState.DRAFT or campaign.is_opening:
        raise NotADraft(campaign.name, campaign.question_count, itself(campaign))
    classes = checked_classes(session, details.dataset_id, details.classes, rounds=details.rounds)
    if campaign.is_evaluation:
        _require_the_same_questions(campaign, details, [item.name for item in classes])
    before = edited_facts(campaign)
    try:
        with session.begin_nested():
            campaign.classes = []
            session.flush()  # the old classes leave before new ones take their keys
            campaign.classes = classes
            campaign.dataset_id = details.dataset_id
            campaign.name = details.name
            for name, value in details.chosen().items():
                setattr(campaign, name, value)
    except IntegrityError as error:
        raise CampaignNameTaken(details.name, named(session, Campaign, details.name)) from error
    changed = changed_facts(before, edited_facts(campaign))
    if "dataset" in changed:
        changed["dataset"] = session.get_one(Dataset, campaign.dataset_id).name
    note(session, Action.CAMPAIGN_CHANGED, campaign, by=by, details=changed)


def _require_the_same_questions(campaign: Campaign, details: CampaignDetails, names: list[str]) -> None:
    asked = details.dataset_id, names, details.rounds, details.confirm_yes, details.skip_twins
    same = asked == (campaign.dataset_id, campaign.class_names, campaign.rounds, False, False)
    if not same or (campaign.asks_which and details.modes is not Modes.CARD):
        raise EvaluationIsFixed


def delete_campaign(session: Session, campaign: Campaign, *, by: User) -> None:
    """Delete a draft, or a closed campaign that no run rests on, with its questions, answers and imports.

    Raises:
        NotAllowed: `by` is no admin.
        WrongCampaignState: people may answer in it, or its opening was asked for.
        CampaignInUse: a run needs its labels.
    """
    accounts.require_admin(by)
    lock_state(session, campaign)
    if campaign.is_opening or campaign.state in (CampaignState.OPEN, CampaignState.PAUSED):
        raise WrongCampaignState(
            step="deleted", state=campaign.shown_state, needs="a draft or a closed", used_by=uses_of(campaign)
        )
    if used := evaluations_that_use(session, campaign.id):
        raise CampaignInUse(campaign.name, used)
    facts = {"questions": campaign.question_count, "commitment": campaign.commitment}
    try:
        with session.begin_nested():
            session.execute(delete(Campaign).where(Campaign.id == campaign.id))  # all of it goes with it
    except IntegrityError as error:
        raise CampaignInUse(campaign.name, uses_of(campaign)) from error
    note(session, Action.CAMPAIGN_DELETED, campaign, by=by, details=facts if campaign.commitment else None)


def archive_campaign(session: Session, campaign: Campaign, *, by: User, now: datetime | None) -> None:
    """Hide a campaign in which nobody answers from lists; None shows it again. All else about it stays.

    Raises:
        NotAllowed: `by` is no admin.
        WrongCampaignState: people may answer in it, or its opening was asked for.
    """
    accounts.require_admin(by)
    if (campaign.archived_at is None) == (now is None):
        return
    lock_state(session, campaign)
    if campaign.is_opening or campaign.state in (CampaignState.OPEN, CampaignState.PAUSED):
        raise WrongCampaignState(step="archived", state=campaign.shown_state, needs="a draft or a closed")
    campaign.archived_at = now
    note(session, Action.CAMPAIGN_RESTORED if now is None else Action.CAMPAIGN_ARCHIVED, campaign, by=by)
    session.flush()


def list_campaigns(
    session: Session,
    *,
    by: User,
    dataset_id: UUID | None = None,
    archived: bool = False,
    after: UUID | None = None,
    limit: int = 50,
) -> Sequence[Campaign]:
    """The campaigns this person may know of, with their classes, newest first, that follow `after`.

    `dataset_id`: only those over this dataset; `archived`: those that are archived, in place of the others.

    Raises:
        CampaignNotFound: `after` is none of them.
    """
    query = select(Campaign).where(visible_to(by)).options(selectinload(Campaign.classes))
    if not by.may_review:
        query = query.where(Campaign.state == CampaignState.OPEN)
    query = query.where(Campaign.archived_at.is_not(None) if archived else Campaign.archived_at.is_(None))
    if dataset_id is not None:
        query = query.where(Campaign.dataset_id == dataset_id)
    if after is not None:
        last = find_campaign(session, after, by=by)
        same_time = and_(Campaign.created_at == last.created_at, Campaign.id < last.id)
        query = query.where(or_(Campaign.created_at < last.created_at, same_time))
    return session.scalars(query.order_by(Campaign.created_at.desc(), Campaign.id.desc()).limit(limit)).all()


def find_campaign(session: Session, campaign_id: UUID, *, by: User) -> Campaign:
    """The campaign with its classes.

    Raises:
        CampaignNotFound: there is none that `by` may know of, or it is not open and they only answer.
    """
    campaign = visible_campaign(session, campaign_id, by=by)
    if campaign.state is not CampaignState.OPEN and not by.may_review:
        raise CampaignNotFound
    return campaign


def visible_campaign(session: Session, campaign_id: UUID, *, by: User) -> Campaign:
    """The campaign with its classes, in whatever state; see `admission`.

    Raises:
        CampaignNotFound: there is none, or `by` is no member.
    """
    return _one(session, campaign_id, visible_to(by))


def any_campaign(session: Session, campaign_id: UUID) -> Campaign:
    """The campaign with its classes, whoever asks.

    Raises:
        CampaignNotFound: there is none.
    """
    return _one(session, campaign_id, true())


def _one(session: Session, campaign_id: UUID, which: ColumnElement[bool]) -> Campaign:
    campaign = session.scalar(
        select(Campaign).where(Campaign.id == campaign_id, which).options(selectinload(Campaign.classes))
    )
    if campaign is None:
        raise CampaignNotFound
    return campaign


def open_campaign(session: Session, campaign: Campaign, *, by: User, now: datetime) -> None:
    """Ask for a draft's questions to be drawn, or let a paused campaign go on. Asking twice is asking once.

    Raises:
        NotAllowed: `by` is no admin.
        SourceNotReady: the dataset is not there any more.
        WrongCampaignState: open already, or closed.
    """
    accounts.require_admin(by)
    lock_state(session, campaign)
    if campaign.state is CampaignState.PAUSED:
        campaign.state = CampaignState.OPEN
        note(session, Action.CAMPAIGN_RESUMED, campaign, by=by)
        return
    if campaign.state is not CampaignState.DRAFT:
        raise WrongCampaignState(step="opened", state=campaign.state, needs="a draft or a paused")
    if not campaign.is_opening:
        dataset = session.get(Dataset, campaign.dataset_id)
        if dataset is None or dataset.state is not DatasetState.READY:
            raise SourceNotReady
        campaign.ask_to_open(now)
        campaign.archived_at = None
        campaign.opening_failure = None
        campaign.attempts = 0
        note(session, Action.CAMPAIGN_OPENED, campaign, by=by, details=policy_facts(campaign))
    jobs.enqueue(session, jobs.OPEN_CAMPAIGN, campaign.id)


def pause_campaign(session: Session, campaign: Campaign, *, by: User) -> None:
    """Ask no more questions for now; answers to questions that people hold still count.

    Raises:
        NotAllowed: `by` is no admin.
        WrongCampaignState: it is not open.
    """
    accounts.require_admin(by)
    lock_state(session, campaign)
    if campaign.state is not CampaignState.OPEN:
        raise WrongCampaignState(step="paused", state=campaign.state, needs="an open")
    campaign.state = CampaignState.PAUSED
    note(session, Action.CAMPAIGN_PAUSED, campaign, by=by)


def close_campaign(session: Session, campaign: Campaign, *, by: User, now: datetime) -> None:
    """End the campaign for good: no more answers, and the seeds of its draws become public.

    Raises:
        NotAllowed: `by` is no admin.
        WrongCampaignState: never opened, or closed already.
    """
    accounts.require_admin(by)
    lock_state(session, campaign)
    if campaign.state not in (CampaignState.OPEN, CampaignState.PAUSED):
        raise WrongCampaignState(step="closed", state=campaign.state, needs="an open or a paused")
    campaign.state = CampaignState.CLOSED
    campaign.closed_at = now
    # What is still being drawn is not asked any more; a job takes its questions away.
    unfinished = FurtherDrawing.campaign_id == campaign.id, FurtherDrawing.drawn_at.is_(None)
    if session.scalars(delete(FurtherDrawing).where(*unfinished).returning(FurtherDrawing.id)).all():
        jobs.enqueue(session, jobs.DRAW_FURTHER, campaign.id)
    note(session, Action.CAMPAIGN_CLOSED, campaign, by=by)
    jobs.enqueue(session, jobs.CHECK_DRAWS, campaign.id)


def set_price(session: Session, campaign: Campaign, *, price: float | None, per: PricePer, by: User) -> None:
    """Say what an answer or an hour costs, at any time; None: nothing. It only changes what pages show.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    campaign.price, campaign.price_per = price, per
    note(session, Action.CAMPAIGN_CHANGED, campaign, by=by, details={"price": price, "price_per": per})
    session.flush()


def state_lock_key(campaign_id: UUID) -> int:
    """PostgreSQL's advisory lock on a campaign's state: shared by those who answer, taken whole to change it.

    Locking the row would do the same, but each answer would have to write that into the row.
    """
    return campaign_id.int % 2**63


def lock_state(session: Session, campaign: Campaign) -> None:
    """Hold the state against other changes, wait for answers under way, and see the newest state.

    Classes stay loaded. The row comes after the advisory lock: whoever answers may need the row as well.
    """
    session.flush()  # a refresh would undo what is not written yet
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(state_lock_key(campaign.id))))
    changing = ["state", "opening_requested_at", "asking_requested_at", "attempts"]
    session.refresh(campaign, changing, with_for_update=True)
