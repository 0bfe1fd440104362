"""How far a campaign is, who answers, and how fast: sums of few rows, whatever the number of questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Answer, Question, Tally
from app.annotation.setting_aside import pictures_set_aside
from app.campaigns.models import Campaign, CampaignState, PricePer

PACE_ANSWERS = 500  # latest answers that the pace is taken from
PACE_WINDOW = timedelta(minutes=5)
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Counts:
    """Live answers, and those among them that were a question's first."""

    yes: int = 0
    no: int = 0
    unsure: int = 0
    first_yes: int = 0
    first_no: int = 0
    unusable: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.yes + self.no + self.unsure + self.unusable

    @property
    def yes_rate(self) -> float | None:
        """Share of yes among first answers: confirmations are asked after a yes and would raise it."""
        first = self.first_yes + self.first_no
        return self.first_yes / first if first else None

    @property
    def agreement(self) -> float | None:
        """Share of yes among the answers after a question's first."""
        later_yes, later_no = self.yes - self.first_yes, self.no - self.first_no
        return later_yes / (later_yes + later_no) if later_yes + later_no else None

    @property
    def unsure_rate(self) -> float | None:
        """Share of "can't tell"."""
        return self.unsure / self.total if self.total else None

    @property
    def unusable_rate(self) -> float | None:
        """Share of "this picture cannot be used"."""
        return self.unusable / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class ClassProgress:
    """Answers about one class."""

    position: int
    name: str
    drawn: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """Answers by one person."""

    user_id: UUID
    name: str
    is_simulated: bool
    counts: Counts
    active_ms: int  # of the answers whose time is known
    mean_ms: float | None  # per such answer
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Cost:
    """In the currency of the campaign's price."""

    so_far: float
    to_go: float | None  # expected; None while nobody's time is known and hours are paid


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a campaign is."""

    questions: int
    finished: int  # questions that need no more answers
    set_aside: int  # pictures that give no label, because people said that they cannot be used
    counts: Counts
    simulated_answers: int
    expected_yes_rate: float | None  # None of an evaluation: it is what people are asked for
    classes: tuple[ClassProgress, ...]
    annotators: tuple[AnnotatorProgress, ...]  # most answers first
    answers_per_minute: float | None  # now; None while nobody answers
    seconds_left: float | None
    agreement: float | None  # how often a yes is confirmed; None where that was not asked alone
    cost: Cost | None  # None without a price

    @property
    def waiting(self) -> int:
        """Questions still to be answered."""
        return self.questions - self.finished

    @property
    def fresh(self) -> int:
        """Of these, which nobody has answered; what was set aside or nobody could tell is none of them."""
        return min(self.waiting, self.questions - self.counts.first_yes - self.counts.first_no)

    @property
    def share(self) -> float:
        """Done, as a fraction."""
        return self.finished / self.questions if self.questions else 0.0


_SUMS = tuple(
    func.sum(getattr(Tally, name)) for name in ("yes", "no", "unsure", "first_yes", "first_no", "unusable")
)


def progress(session: Session, campaign: Campaign, *, now: datetime) -> Progress:
    """How far the campaign is; `campaign` has its classes."""
    by_class = {
        class_: Counts(*map(int, sums))
        for class_, *sums in session.execute(
            select(Tally.candidate_class, *_SUMS)
            .where(Tally.campaign_id == campaign.id)
            .group_by(Tally.candidate_class)
        )
    }
    annotators = tuple(_annotators(session, campaign))
    finished = session.scalar(select(func.sum(Tally.finished)).where(Tally.campaign_id == campaign.id)) or 0
    counts = Counts(
        yes=sum(c.yes for c in by_class.values()),
        no=sum(c.no for c in by_class.values()),
        unsure=sum(c.unsure for c in by_class.values()),
        first_yes=sum(c.first_yes for c in by_class.values()),
        first_no=sum(c.first_no for c in by_class.values()),
        unusable=sum(c.unusable for c in by_class.values()),
    )
    expected = None if campaign.is_evaluation else 1 / campaign.num_classes
    pace = _answers_per_minute(session, campaign, now=now)
    to_go = answers_to_go(campaign, counts, finished=int(finished))
    return Progress(
        questions=campaign.question_count,
        finished=int(finished),
        set_aside=session.scalar(select(func.count()).select_from(pictures_set_aside(campaign.id).subquery()))
        or 0,
        counts=counts,
        simulated_answers=sum(person.counts.total for person in annotators if person.is_simulated),
        expected_yes_rate=expected,
        classes=tuple(
            ClassProgress(c.position, c.name, c.question_count, by_class.get(c.position, Counts()))
            for c in campaign.classes
        ),
        annotators=annotators,
        answers_per_minute=pace,
        seconds_left=60 * to_go / pace if pace and to_go else None,
        agreement=counts.agreement if campaign.confirm_yes and campaign.overlap == 1 else None,
        cost=cost_of(campaign, annotators, to_go=to_go),
    )


def cost_of(campaign: Campaign, annotators: Sequence[AnnotatorProgress], *, to_go: float) -> Cost | None:
    """What the answers cost so far, and those to come: by the answer, or by the time that was measured.

    Simulated annotators are paid nothing; what is to go is for people.
    """
    if campaign.price is None:
        return None
    people = [person for person in annotators if not person.is_simulated]
    if campaign.price_per is PricePer.ANSWER:
        return Cost(campaign.price * sum(person.counts.total for person in people), campaign.price * to_go)
    means = [(person.mean_ms, person.counts.total) for person in people if person.mean_ms is not None]
    answers = sum(count for _, count in means)
    mean_ms = sum(mean * count for mean, count in means) / answers if answers else None
    return Cost(
        campaign.price * sum(person.active_ms for person in people) / HOUR_MS,
        None if mean_ms is None else campaign.price * to_go * mean_ms / HOUR_MS,
    )


def answers_to_go(campaign: Campaign, counts: Counts, *, finished: int) -> float:
    """Expected number of answers until nothing waits: one per open question, and confirmations of new yes."""
    waiting = campaign.question_count - finished
    # Those that were set aside, or that nobody could tell, wait no more although nobody said yes or no.
    untouched = max(0, min(waiting, campaign.question_count - counts.first_yes - counts.first_no))
    return waiting + (untouched / campaign.num_classes if campaign.confirm_yes else 0.0)


def _annotators(session: Session, campaign: Campaign) -> list[AnnotatorProgress]:
    rows = session.execute(
        select(
            User.id,
            User.name,
            User.is_simulated,
            func.sum(Tally.timed),
            func.sum(Tally.active_ms),
            func.max(Tally.last_at),
            *_SUMS,
        )
        .join(Tally, Tally.user_id == User.id)
        .where(Tally.campaign_id == campaign.id)
        .group_by(User.id, User.name, User.is_simulated)
    )
    people = [
        AnnotatorProgress(
            user_id=id_,
            name=name,
            is_simulated=is_simulated,
            counts=Counts(*map(int, sums)),
            active_ms=int(active_ms),
            mean_ms=int(active_ms) / int(timed) if timed else None,
            last_at=last_at,
        )
        for id_, name, is_simulated, timed, active_ms, last_at, *sums in rows
        if any(sums)  # an admin who had questions asked again has a row without answers
    ]
    return sorted(people, key=lambda person: (-person.counts.total, person.name))


def _answers_per_minute(session: Session, campaign: Campaign, *, now: datetime) -> float | None:
    """From the latest answers of the installation, so that its cost does not grow with the campaign."""
    if campaign.state is not CampaignState.OPEN:
        return None
    latest = (
        select(Answer.question_id, Answer.created_at)
        .order_by(Answer.id.desc())
        .limit(PACE_ANSWERS)
        .subquery()
    )
    count, oldest = session.execute(
        select(func.count(), func.min(latest.c.created_at))
        .join(Question, Question.id == latest.c.question_id)
        .where(Question.campaign_id == campaign.id, latest.c.created_at > now - PACE_WINDOW)
    ).one()
    if count < 2:  # noqa: PLR2004 - one answer has no pace
        return None
    seconds: float = max((now - oldest).total_seconds(), 1.0)
    return 60 * int(count) / seconds


def finished_questions(session: Session, campaign_ids: list[UUID]) -> dict[UUID, int]:
    """How many questions of each campaign need no more answers; campaigns without answers are missing."""
    rows = session.execute(
        select(Tally.campaign_id, func.sum(Tally.finished))
        .where(Tally.campaign_id.in_(campaign_ids))
        .group_by(Tally.campaign_id)
    )
    return {campaign_id: int(finished) for campaign_id, finished in rows}
