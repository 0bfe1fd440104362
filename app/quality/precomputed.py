"""Figures that grow with the answers: a job works them out and minds people; pages of large ones tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import delete, exists, func, insert, or_, select
from sqlalchemy.orm import Session

from app.annotation.models import Tally
from app.campaigns.models import Campaign, CampaignState
from app.datasets.models import Dataset
from app.journal.models import Action, Entry
from app.quality.claims import Claims
from app.quality.doubts import OpenQuestion, open_questions
from app.quality.judging import Reliability, reliability
from app.quality.minding import alone_by_belief, mind_people
from app.quality.models import Decision, DoubtfulQuestion, KeptFigures
from app.quality.seeing import seen_classes

# Questions of a large campaign. What a smaller one takes, a fifth of a second, each visit takes anew.
LARGE = 20_000
KEPT = 10_000  # questions in doubt, at least: as many as one request may have asked again
EVERY = timedelta(minutes=1)  # at most
REST = 20  # times as long as the last time took, until the next
# What is done carries the time at which it began, and can be seen only once its transaction has ended.
LATE = timedelta(minutes=1)
# What the journal tells that changes figures, beside answers.
CHANGES = (
    Action.PERSON_LEFT_OUT,
    Action.PERSON_COUNTED,
    Action.KNOWN_MARKED,
    Action.ASKED_AGAIN,
    Action.QUESTION_DECIDED,
    Action.DECISION_TAKEN_BACK,
    Action.PICTURE_REVIEWED,
)


@dataclass(frozen=True, slots=True)
class Precomputed:
    """What a job found; not stored yet."""

    figures: KeptFigures
    doubtful: list[OpenQuestion]


def is_large(campaign: Campaign) -> bool:
    """Whether pages tell what a job kept, instead of reading all answers at each visit."""
    return campaign.question_count >= LARGE


def figures_at(session: Session, campaign: Campaign, *, now: datetime) -> datetime | None:
    """As of when pages tell its figures; None where a job has yet to work them out."""
    if not is_large(campaign):
        return now
    return session.scalar(select(KeptFigures.computed_at).where(KeptFigures.campaign_id == campaign.id))


def precompute(session: Session, campaign: Campaign, *, now: datetime) -> Precomputed:
    """A campaign's figures as they are; reads all its answers. `campaign` has its classes.

    Args:
        session: a reading one; what it sees must not be older than `now`.
        campaign: one that was opened.
        now: the moment the figures are told as of.
    """
    fitted = reliability(session, campaign, num_classes=campaign.num_classes)
    if not is_large(campaign):  # its pages look for themselves; people are minded everywhere
        figures = KeptFigures(
            campaign_id=campaign.id,
            computed_at=now,
            rates=_rates(session, campaign, fitted),
            claims=_claims(fitted),
            unlisted_count=0,
        )
        return Precomputed(figures, [])
    found = open_questions(session, campaign, fitted=fitted)
    # About which nobody more may be asked: these come first, and must not keep the others out.
    askable = [question for question in found if question.may_be_asked][:KEPT]
    listed = {question.id for question in (*found[:KEPT], *askable)}
    dataset = session.get_one(Dataset, campaign.dataset_id)
    seen = seen_classes(session, campaign, dataset)
    figures = KeptFigures(
        campaign_id=campaign.id,
        computed_at=now,
        yes_by_true_class=seen and [list(row) for row in seen],
        rates=_rates(session, campaign, fitted),
        claims=_claims(fitted),
        unlisted_count=len(found) - len(listed),
    )
    return Precomputed(figures, [question for question in found if question.id in listed])


def _rates(session: Session, campaign: Campaign, fitted: Reliability) -> dict[str, list[float]]:
    """`Reliability.rates`, and with what stands alone there that by a model's belief."""
    by_belief = alone_by_belief(session, campaign)
    return {by: [*rates[:4], rates[4] + by_belief.get(UUID(by), 0)] for by, rates in fitted.rates().items()}


def _claims(fitted: Reliability) -> dict[str, float] | None:
    return None if fitted.claims is None else fitted.claims._asdict()


def claims(session: Session, campaign: Campaign) -> Claims | None:
    """What the campaign's answers say of its labels; None before anybody answered, or a job looked."""
    return fitted_or_kept(session, campaign)[1]


def fitted_or_kept(
    session: Session, campaign: Campaign
) -> tuple[Mapping[str, Sequence[float]], Claims | None]:
    """Rates as `_rates` has them, and claims: from all answers, or of a large campaign as a job last found
    them."""
    if not is_large(campaign):
        fitted = reliability(session, campaign, num_classes=campaign.num_classes)
        return _rates(session, campaign, fitted), fitted.claims
    kept = session.get(KeptFigures, campaign.id)
    if kept is None:
        return {}, None
    return kept.rates, None if kept.claims is None else Claims(**kept.claims)  # type: ignore[arg-type]  # JSON has one kind of number


def keep_figures(session: Session, found: Precomputed, *, took_s: float) -> None:
    """Store figures in the place of the campaign's last ones, unless those are newer; and mind its people.

    Questions that were settled since they were in doubt stay listed: a decision may be taken back.
    """
    campaign_id = found.figures.campaign_id
    one = select(Campaign.id).where(Campaign.id == campaign_id)
    if session.scalar(one.with_for_update(key_share=True)) is None:  # another job of this campaign waits here
        return  # deleted meanwhile
    kept_at = session.scalar(select(KeptFigures.computed_at).where(KeptFigures.campaign_id == campaign_id))
    if kept_at is not None and kept_at > found.figures.computed_at:
        return
    found.figures.took_s = took_s
    session.merge(found.figures)
    session.flush()
    mind_people(session, campaign_id, found.figures.rates, now=found.figures.computed_at)
    settled = exists().where(
        Decision.question_id == DoubtfulQuestion.question_id, Decision.superseded_at.is_(None)
    )
    of_campaign = DoubtfulQuestion.campaign_id == campaign_id
    session.execute(
        delete(DoubtfulQuestion).where(of_campaign, ~settled),
        execution_options={"synchronize_session": False},
    )
    kept = set(session.scalars(select(DoubtfulQuestion.question_id).where(of_campaign)))
    rows = [
        {
            "question_id": question.id,
            "campaign_id": campaign_id,
            "position": question.position,
            "yes": question.yes,
            "no": question.no,
            "kind": question.kind,
            "weight": question.weight,
        }
        for question in found.doubtful
        if question.id not in kept
    ]
    if rows:
        session.execute(insert(DoubtfulQuestion), rows)


def waiting_figures(session: Session, now: datetime) -> list[UUID]:
    """Campaigns that changed since their figures were worked out, if that is long enough ago.

    Of small ones only those that are not closed and have answers, to mind people: their pages work figures
    out by themselves.
    """
    last_answer = select(func.max(Tally.last_at)).where(Tally.campaign_id == Campaign.id).scalar_subquery()
    last_act = (
        select(func.max(Entry.at))
        .where(Entry.campaign_id == Campaign.id, Entry.action.in_(CHANGES))
        .scalar_subquery()
    )
    rows = session.execute(
        select(Campaign.id, KeptFigures.computed_at, KeptFigures.took_s, last_answer, last_act)
        .outerjoin(KeptFigures, KeptFigures.campaign_id == Campaign.id)
        .where(
            Campaign.opened_at.is_not(None),
            or_(
                Campaign.question_count >= LARGE,
                Campaign.state.in_((CampaignState.OPEN, CampaignState.PAUSED)) & last_answer.is_not(None),
            ),
            or_(KeptFigures.computed_at.is_(None), KeptFigures.computed_at <= now - EVERY),
        )
        .order_by(Campaign.opened_at)
    )
    return [
        id_
        for id_, computed_at, took_s, *changed_at in rows
        if computed_at is None
        or (
            computed_at + timedelta(seconds=REST * took_s) <= now
            and any(at is not None and at > computed_at - LATE for at in changed_at)
        )
    ]
