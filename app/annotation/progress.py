"""How far a campaign is, who answers, and how fast: sums of few rows, whatever the number of questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.beside_classes import beside_classes
from app.annotation.left_to_ask import left_over
from app.annotation.models import Answer, Question, Tally
from app.annotation.naming import naming_ms
from app.annotation.setting_aside import pictures_set_aside
from app.campaigns.by_belief import by_belief_numbers
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
    confirmed: int = 0  # second answers to a first yes that are yes, too
    denied: int = 0  # and that are no

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
        """Share of yes among the second answers to a first yes."""
        seconds = self.confirmed + self.denied
        return self.confirmed / seconds if seconds else None

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
    active_ms: int  # of the answers whose time is known, and of naming what a picture shows after them
    mean_ms: float | None  # per such answer
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Cost:
    """In the currency of the campaign's price."""

    so_far: float
    # Expected; None while nobody's time is known and hours are paid, or nobody knows how many yes come.
    to_go: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a campaign is."""

    questions: int
    finished: int  # questions that need no more answers
    set_aside: int  # pictures that give no label, because people said that they cannot be used
    counts: Counts
    simulated_answers: int
    # None of an evaluation: it is what people are asked for. None, too, where a round followed a model's
    # belief: how often that is right is not known before.
    expected_yes_rate: float | None
    classes: tuple[ClassProgress, ...]
    annotators: tuple[AnnotatorProgress, ...]  # most answers first
    answers_per_minute: float | None  # now; None while nobody answers
    seconds_left: float | None
    agreement: float | None  # how often a yes is confirmed; None where not that alone is asked
    cost: Cost | None  # None without a price
    is_closed: bool = False
    beside_classes: int = 0  # further questions that nobody is asked: their pictures stand beside a class
    to_go: float | None = 0.0  # expected answers until nothing waits; None where nobody can know
    # Questions that wait, but nobody at work may be asked them: all answered, or met the picture as a known
    # one.
    left_over: int = 0

    @property
    def waiting(self) -> int:
        """Questions still to be answered: none once it is closed, whatever was left."""
        return 0 if self.is_closed else self.questions - self.finished - self.left_over

    @property
    def unfinished(self) -> int:
        """Questions without all answers that they need; once it is closed they stay so."""
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
    func.sum(getattr(Tally, name))
    for name in ("yes", "no", "unsure", "first_yes", "first_no", "unusable", "confirmed", "denied")
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
    beside, beside_pictures = beside_classes(
        session, campaign.id
    )  # nobody is asked them: neither to do nor done
    counts = Counts(
        yes=sum(c.yes for c in by_class.values()),
        no=sum(c.no for c in by_class.values()),
        unsure=sum(c.unsure for c in by_class.values()),
        first_yes=sum(c.first_yes for c in by_class.values()),
        first_no=sum(c.first_no for c in by_class.values()),
        unusable=sum(c.unusable for c in by_class.values()),
        confirmed=sum(c.confirmed for c in by_class.values()),
        denied=sum(c.denied for c in by_class.values()),
    )
    by_belief = bool(by_belief_numbers(session, campaign.id))
    expected = None if campaign.is_evaluation or by_belief else 1 / campaign.num_classes
    pace = _answers_per_minute(session, campaign, now=now)
    is_closed = campaign.state is CampaignState.CLOSED
    over = 0 if is_closed else left_over(session, campaign, answers=counts.total, now=now)
    over = min(over, campaign.question_count - int(finished))  # it may be of a moment ago
    to_go = answers_to_go(campaign, counts, finished=int(finished) + over, by_belief=by_belief)
    return Progress(
        questions=campaign.question_count - beside,
        finished=int(finished) - beside,
        set_aside=(
            session.scalar(select(func.count()).select_from(pictures_set_aside(campaign.id).subquery())) or 0
        )
        - beside_pictures,
        beside_classes=beside,
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
        agreement=counts.agreement if campaign.confirming.of_yes and campaign.overlap == 1 else None,
        cost=cost_of(campaign, annotators, to_go=to_go),
        is_closed=is_closed,
        to_go=to_go,
        left_over=over,
    )


def cost_of(
    campaign: Campaign, annotators: Sequence[AnnotatorProgress], *, to_go: float | None
) -> Cost | None:
    """What the answers cost so far, and those to come: by the answer, or by the time that was measured.

    Simulated annotators are paid nothing; what is to go is for people.
    """
    if campaign.price is None:
        return None
    people = [person for person in annotators if not person.is_simulated]
    if campaign.price_per is PricePer.ANSWER:
        so_far = campaign.price * sum(person.counts.total for person in people)
        return Cost(so_far, None if to_go is None else campaign.price * to_go)
    means = [(person.mean_ms, person.counts.total) for person in people if person.mean_ms is not None]
    answers = sum(count for _, count in means)
    mean_ms = sum(mean * count for mean, count in means) / answers if answers else None
    return Cost(
        campaign.price * sum(person.active_ms for person in people) / HOUR_MS,
        None if mean_ms is None or to_go is None else campaign.price * to_go * mean_ms / HOUR_MS,
    )


def answers_to_go(
    campaign: Campaign, counts: Counts, *, finished: int, by_belief: bool = False
) -> float | None:
    """Expected number of answers until nothing waits: one per open question, and what new ones are to bring.

    These are asked of several people, or confirmed. None where each yes is and some questions are by a
    model's belief: more are yes than one in K.
    """
    if campaign.state is CampaignState.CLOSED:
        return 0.0
    waiting = campaign.question_count - finished
    # Those that were set aside, or that nobody could tell, wait no more although nobody said yes or no.
    untouched = max(0, min(waiting, campaign.question_count - counts.first_yes - counts.first_no))
    if by_belief and untouched and campaign.confirming.of_yes:
        return None
    return waiting + untouched * (campaign.overlap - 1 + campaign.confirming.share)


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
    naming = naming_ms(session, campaign.id) if campaign.asks_which else {}
    counted = [(*row[:6], Counts(*map(int, row[6:]))) for row in rows]
    people = [
        AnnotatorProgress(
            user_id=id_,
            name=name,
            is_simulated=is_simulated,
            counts=counts,
            active_ms=(active_ms := int(answering_ms) + naming.get(id_, 0)),
            mean_ms=active_ms / int(timed) if timed else None,
            last_at=last_at,
        )
        for id_, name, is_simulated, timed, answering_ms, last_at, counts in counted
        if counts.total  # an admin who had questions asked again has a row without answers
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
