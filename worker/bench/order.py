"""In which order people are asked: how many of their answers are yes, from the first question to the last.

Simulated people answer a whole campaign in this process, by the execution that serves them otherwise. Each
sees one class per image, the true one or with the error rate another, and says yes if it is the one asked
about. Every yes is confirmed by a second person; between two classes, four of nine questions are.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import mean
from uuid import UUID, uuid4

from sqlalchemy import select

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import AnswerValue, Question
from app.campaigns.confirming import TWO
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.fast.answering import FAST
from worker.bench.rows import add_campaign, add_dataset, add_people, fresh_context
from worker.context import Context
from worker.drawing import open_campaign

PARTS = 10
STRETCH = 100  # answers of one person in a row
HELD, ANSWERED = 20, 8  # cards that a browser holds, and how many it answers until it asks for more
ANSWER = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who answers, and what they see."""

    speeds: Sequence[float] = (1.0, 1.0, 1.0)  # of each person; as often do they take a turn
    error: float = 0.0  # share of images seen as another class
    page: int = 0  # questions of one class on a page; 0: single cards
    joins: Sequence[
        float
    ] = ()  # when each person comes, in answers of all per question; at once if not given
    leaves: Sequence[float] = ()  # when each goes for good, likewise; never if not given
    seed: int = 0

    def is_here(self, person: int, answers: float) -> bool:
        """Whether somebody works when there are so many answers per question."""
        came = person >= len(self.joins) or answers >= self.joins[person]
        return came and (person >= len(self.leaves) or answers < self.leaves[person])


@dataclass(slots=True)
class Order:
    """What was asked and said."""

    classes: int
    questions: int
    answers: int = 0
    yes_by_part: list[float] = field(default_factory=list)  # share of yes in each tenth of all answers
    stretches: list[list[float]] = field(default_factory=list)  # of each person, the share in each stretch
    expected_yes: float = (
        0.0  # in the stretch, of all persons and places, where it is most over several seeds
    )
    most_yes: float = 0.0  # in any stretch of STRETCH answers of one person
    last_yes: float = 0.0  # in everybody's last stretch, on average
    confirmations: float = 0.0  # per question: one for each first yes; of two classes, each second answer
    others: float = 0.0  # per question: beyond the first answers and these
    waiting: int = 0  # questions about which nobody is left to ask


def measure_order(
    classes: int, examples: int, crowd: Crowd, *, say: Callable[[str], None] = lambda _: None
) -> Order:
    """Let a crowd answer a campaign of so many classes and examples until nobody is asked any more."""
    with fresh_context("") as context:
        with context.unit_of_work() as session:
            admin, people = add_people(session, len(crowd.speeds))
            names = [f"class {number}" for number in range(classes)]
            dataset_id = add_dataset(session, admin, examples, class_names=names)
            campaign_id = add_campaign(session, admin, dataset_id)
            session.get_one(Campaign, campaign_id).seed = f"{crowd.seed:064x}"
        open_campaign(context, campaign_id)
        say(f"{classes} classes, {examples} examples, {len(people)} people")
        return _Work(context, campaign_id, classes, crowd, people).done()


def measure_orders(
    classes: int, examples: int, crowd: Crowd, seeds: int, *, say: Callable[[str], None] = lambda _: None
) -> Order:
    """The same with so many seeds from the crowd's on: means, and the largest of `most_yes` and `waiting`."""
    found = [
        measure_order(classes, examples, replace(crowd, seed=crowd.seed + number), say=say)
        for number in range(seeds)
    ]
    return Order(
        classes=classes,
        questions=found[0].questions,
        answers=round(mean(one.answers for one in found)),
        yes_by_part=[mean(shares) for shares in zip(*(one.yes_by_part for one in found), strict=True)],
        expected_yes=max(map(mean, _by_place(found)), default=0.0),
        most_yes=max(one.most_yes for one in found),
        last_yes=mean(one.last_yes for one in found),
        confirmations=mean(one.confirmations for one in found),
        others=mean(one.others for one in found),
        waiting=max(one.waiting for one in found),
    )


def _by_place(orders: Sequence[Order]) -> list[list[float]]:
    """Shares of yes in one person's stretches as far from their last answer, where all orders have them."""
    found: list[list[float]] = []
    for person in zip(*(one.stretches for one in orders), strict=True):
        shortest = min(len(shares) for shares in person)
        found += [[shares[-1 - back] for shares in person] for back in range(shortest)]
    return found


class _Work:
    """People at work in a campaign."""

    def __init__(
        self, context: Context, campaign_id: UUID, classes: int, crowd: Crowd, people: Sequence[User]
    ) -> None:
        self.context, self.campaign_id, self.classes = context, campaign_id, classes
        self.crowd, self.people = crowd, people
        self.now: datetime = utc_now()
        self.said: list[tuple[int, bool]] = []  # person, whether yes
        self.asked: Counter[int] = Counter()  # answers of each question
        with context.reading() as session:
            rows = session.scalars(select(Question.example_id).where(Question.campaign_id == campaign_id))
            chance = random.Random(f"{crowd.seed}/truth")
            self.truth = {example_id: chance.randrange(classes) for example_id in rows}

    def done(self) -> Order:
        """What came of it."""
        chance = random.Random(f"{self.crowd.seed}/turns")
        at_work = everybody = set(range(len(self.people)))
        while at_work:
            share = len(self.said) / len(self.truth)
            here = [person for person in sorted(at_work) if self.crowd.is_here(person, share)]
            if not here:
                break
            [person] = chance.choices(here, [self.crowd.speeds[person] for person in here])
            at_work = everybody if self._turn(person) else at_work - {person}
        with self.context.reading() as session:
            campaign = annotation.campaign_to_answer(session, self.campaign_id, by=self.people[0])
            counted = annotation.progress(session, campaign, now=self.now)
        total, firsts = len(self.said), counted.counts.first_yes + counted.counts.first_no
        confirmations = counted.counts.first_yes
        if self.classes == TWO:  # there chance says which are confirmed
            confirmations = sum(answers > 1 for answers in self.asked.values())
        bounds = [len(self.said) * part // PARTS for part in range(PARTS + 1)]
        parts = [self.said[start:end] for start, end in pairwise(bounds)]
        stretches = [self._stretches(person) for person in range(len(self.people))]
        return Order(
            classes=self.classes,
            questions=counted.questions,
            answers=total,
            yes_by_part=[mean(is_yes for _, is_yes in part) for part in parts],
            stretches=stretches,
            expected_yes=max(max(found, default=0.0) for found in stretches),
            most_yes=max(max(found, default=0.0) for found in stretches),
            last_yes=mean(found[-1] for found in stretches if found),
            confirmations=confirmations / counted.questions,
            others=(total - firsts - confirmations) / counted.questions,
            waiting=counted.waiting + counted.left_over,
        )

    def _turn(self, person: int) -> bool:
        """Ask for questions and answer some; False where there were none."""
        self.now += ANSWER
        by, page = self.people[person], self.crowd.page
        count = page or HELD
        with self.context.unit_of_work() as session:
            _, leased = FAST.lease(
                session, self.campaign_id, count=count, one_class=page > 0, by=by, now=self.now
            )
            asked = leased.questions[: page or ANSWERED]
            given = [self._answer(person, question) for question in asked]
            if given:
                FAST.answer(session, self.campaign_id, given, by=by, now=self.now)
        self.said += [(person, answer.value is AnswerValue.YES) for answer in given]
        self.asked.update(question.id for question in asked)
        return bool(given)

    def _answer(self, person: int, question: annotation.LeasedQuestion) -> annotation.SubmittedAnswer:
        seen = self.truth[question.example_id]
        chance = random.Random(f"{self.crowd.seed}/{person}/{question.example_id}")
        if chance.random() < self.crowd.error:
            seen = (seen + chance.randrange(1, self.classes)) % self.classes
        value = AnswerValue.YES if seen == question.candidate_class else AnswerValue.NO
        return annotation.SubmittedAnswer(question.id, value, 900, uuid4())

    def _stretches(self, person: int) -> list[float]:
        """The share of yes in each stretch of this person's answers."""
        mine = [is_yes for who, is_yes in self.said if who == person]
        found = sum(mine[:STRETCH])
        shares = [found / STRETCH] if len(mine) >= STRETCH else []
        for before, after in zip(mine, mine[STRETCH:], strict=False):
            found += after - before
            shares.append(found / STRETCH)
        return shares


def as_row(order: Order) -> dict[str, object]:
    """For a program."""
    return {name: value for name, value in asdict(order).items() if name != "stretches"}


def as_text(order: Order) -> str:
    """For a person: shares in %, as a row of Markdown."""
    shares = [*order.yes_by_part, order.last_yes, order.expected_yes, order.most_yes]
    shares += [order.confirmations, order.others]
    figures = " | ".join(f"{100 * share:.1f}" for share in shares)
    return f"| {order.classes} | {order.questions:,} | {figures} | {order.waiting} |"


HEADER = (
    "| K | questions | "
    + " | ".join(f"{part}" for part in range(1, PARTS + 1))
    + f" | last {STRETCH} | expected | any {STRETCH} | confirmations | others | waiting |"
)
