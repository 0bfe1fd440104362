"""A plan for a budget: from what a campaign measured, what was typed, and what its runs reached."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation.models import Tally
from app.campaigns.confirming import Confirming
from app.campaigns.models import Campaign, PricePer
from app.planning.minutes import Minutes, Point, minutes_of
from app.planning.offers import Offer, offers
from app.planning.paces import paces_of
from app.quality import service as quality
from app.runs import service, words
from app.runs.finding import Wanted, find_runs

MOST_RUNS = 200
ENOUGH = 5  # questions that several people answered, to tell how often people err
# Where nothing was measured: a quick person, crowd workers' error on CIFAR-10, ten classes, a cent.
ASSUMED_SECONDS, ASSUMED_ERROR, ASSUMED_CLASSES, ASSUMED_PRICE = 1.0, 0.177, 10, 0.01


@dataclass(frozen=True, slots=True)
class Basis:
    """A figure and where it comes from: given, measured or assumed."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What was typed; None where it was not."""

    budget: float
    price: float | None
    seconds: float | None
    error: float | None
    classes: int | None
    overlap: int | None
    kway_seconds: float
    page_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """What a run reached with the answers there were."""

    run_id: UUID
    number: int
    method: str
    setting: str
    called: str  # method and labels in words
    answers: int
    complementary: int
    true: int
    mean_accuracy: float
    std_accuracy: float | None
    lowest_accuracy: float | None
    highest_accuracy: float | None
    chance: float
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a budget buys."""

    budget: float
    kway_seconds: float
    price: Basis
    seconds: Basis
    error: Basis
    dependence: quality.Dependence  # how far people err together: measured with the error, or what is usual
    classes: Basis
    overlap: Basis
    card_seconds: Basis  # for a yes/no question alone, apart from those on pages
    page_seconds: Basis | None  # for one of several on a page; None: neither given nor measured
    offers: list[Offer]
    minutes: list[Minutes]
    runs: list[LearningPoint]
    simulated_share: float  # of the answers whose time was measured: programs gave them

    @property
    def confirms_part(self) -> bool:
        """Whether chance chooses the questions that are confirmed: between two classes."""
        return Confirming(True, int(self.overlap.value), int(self.classes.value)).of_part


@dataclass(frozen=True, slots=True)
class Measured:
    """What a campaign's answers tell; None where they do not."""

    seconds: float | None
    error: float | None
    dependence: quality.Dependence | None
    simulated_share: float = 0.0


def make_plan(
    session: Session, wishes: Wishes, *, campaign: Campaign | None, by: User, now: datetime
) -> Plan:
    """What a budget buys; with a campaign (and its classes), from its own figures.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    measured = measure(session, campaign) if campaign else Measured(None, None, None)
    seconds = _basis(wishes.seconds, measured.seconds, ASSUMED_SECONDS)
    price = _basis(wishes.price, _price(campaign, seconds.value), ASSUMED_PRICE)
    error = _basis(wishes.error, measured.error, ASSUMED_ERROR)
    classes = _basis(wishes.classes, campaign.num_classes if campaign else None, ASSUMED_CLASSES)
    overlap = _basis(wishes.overlap, campaign.overlap if campaign else None, 1)
    paces = paces_of(session, campaign) if campaign else None
    card = _basis(wishes.seconds, paces.card if paces else None, ASSUMED_SECONDS)
    page = None
    if wishes.page_seconds is not None or (paces and paces.page is not None):
        page = _basis(wishes.page_seconds, paces.page if paces else None, 0.0)
    runs = learning_points(session, campaign, by=by, now=now) if campaign else []
    dependence = measured.dependence or quality.usual(1 / classes.value)
    return Plan(
        budget=wishes.budget,
        kway_seconds=wishes.kway_seconds,
        price=price,
        seconds=seconds,
        error=error,
        dependence=dependence,
        classes=classes,
        overlap=overlap,
        card_seconds=card,
        page_seconds=page,
        minutes=minutes_of(
            card=card.value,
            page=page.value if page else None,
            kway=wishes.kway_seconds,
            runs=[_in_minutes(point, seconds.value) for point in runs],
            run_seconds=seconds.value,
        ),
        offers=offers(
            budget=wishes.budget,
            price=price.value,
            seconds=seconds.value,
            error=error.value,
            num_classes=int(classes.value),
            dependence=dependence,
            overlap=int(overlap.value),
            kway_seconds=wishes.kway_seconds,
        ),
        runs=runs,
        simulated_share=measured.simulated_share,
    )


def _in_minutes(point: LearningPoint, seconds: float) -> Point:
    """A run by the time that its answers took."""
    return Point(
        minutes=point.answers * seconds / 60,
        answers=point.answers,
        mean=point.mean_accuracy,
        lowest=point.mean_accuracy if point.lowest_accuracy is None else point.lowest_accuracy,
        highest=point.mean_accuracy if point.highest_accuracy is None else point.highest_accuracy,
        seeds=point.seeds,
        name=f"Run {point.number}, {point.called}",
    )


def _basis(given: float | None, measured: float | None, assumed: float) -> Basis:
    if given is not None:
        return Basis(given, "given")
    return Basis(assumed, "assumed") if measured is None else Basis(measured, "measured")


def _price(campaign: Campaign | None, seconds: float) -> float | None:
    """Of an answer, by what the campaign says."""
    if campaign is None or campaign.price is None:
        return None
    return campaign.price if campaign.price_per is PricePer.ANSWER else campaign.price * seconds / 3600


def measure(session: Session, campaign: Campaign) -> Measured:
    """Seconds per answer from the campaign's tallies; error and dependence as its labels are weighed by."""
    by_programs = case((User.is_simulated, Tally.timed), else_=0)
    sums = session.execute(
        select(*(func.coalesce(func.sum(what), 0) for what in (Tally.timed, Tally.active_ms, by_programs)))
        .join(User, User.id == Tally.user_id)
        .where(Tally.campaign_id == campaign.id)
    ).one()
    timed, active_ms, simulated = map(int, sums)
    share = simulated / timed if timed else 0.0
    seconds = max(active_ms / timed / 1000, 0.01) if timed else None
    claims = quality.claims(session, campaign)
    if claims is None or claims.several < ENOUGH:  # nobody was asked what somebody else had answered
        return Measured(seconds, None, None, share)
    return Measured(seconds, claims.error, quality.Dependence(claims.match, claims.other), share)


def learning_points(session: Session, campaign: Campaign, *, by: User, now: datetime) -> list[LearningPoint]:
    """Accuracy by number of answers, over the campaign's runs that ended well; fewest answers first."""
    runs, _ = find_runs(session, Wanted(campaign_id=campaign.id), by=by, limit=MOST_RUNS)
    summaries = service.summaries(session, runs, now=now)
    points = [
        LearningPoint(
            run_id=run.id,
            number=run.number,
            method=run.method,
            setting=run.setting,
            called=f"{words.method_of(run).words}, {words.LEARNS_FROM.get(run.setting, run.setting)}",
            answers=run.snapshot_facts["answers"],
            complementary=sum(run.snapshot_facts["complementary"]),
            true=sum(run.snapshot_facts["true"]),
            mean_accuracy=summary.mean,
            std_accuracy=summary.spread,
            lowest_accuracy=summary.lowest,
            highest_accuracy=summary.highest,
            chance=summary.chance,
            seeds=summary.seeds,
        )
        for run in runs
        if (summary := summaries[run.id]).is_final and summary.mean is not None
    ]
    return sorted(points, key=lambda point: (point.answers, point.number))
