"""The fast execution and the plain one: the same requests give the same answers and leave the same rows."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid5

import pytest
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import gold, locking, service
from app.annotation.models import Answer, AnswerValue, Lease, Participant, Question, Tally, UsedTime
from app.campaigns.models import CampaignState
from app.db import Database
from app.errors import AppError
from app.fast.answering import FAST
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, make_campaign, make_user

pytestmark = [pytest.mark.long, pytest.mark.dialects]

EXAMPLES, PEOPLE, STEPS = 18, 5, 90
# What happens, and how often.
ACTIONS = {
    "lease": 7,
    "page": 2,
    "submit": 13,
    "undo": 6,
    "release": 1,
    "renew": 1,
    "run_out": 2,
    "pause": 1,
    "ask_again": 1,
    "change": 3,
    "review": 1,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """What a campaign asks for."""

    confirm_yes: bool
    overlap: int = 1
    gold_share: float = 0.0
    class_names: Sequence[str] = ("cat", "dog", "owl")


POLICIES = {
    "one answer": Policy(confirm_yes=False),
    "yes confirmed": Policy(confirm_yes=True),
    "two classes": Policy(confirm_yes=True, class_names=("cat", "dog")),
    "overlap": Policy(confirm_yes=True, overlap=2),
    "gold": Policy(confirm_yes=True, gold_share=0.4),
    "gold, a yes stands alone": Policy(confirm_yes=False, gold_share=0.5),
}


@dataclass(frozen=True, slots=True)
class Submission:
    """An answer by places, which mean the same on both sides."""

    place: int
    value: AnswerValue
    response_ms: int | None
    key: int


class Side:
    """A campaign that one execution serves; what it tells has places in place of ids."""

    def __init__(
        self, session: Session, people: list[User], policy: Policy, execution: service.Execution
    ) -> None:
        self.session, self.people, self.execution = session, people, execution
        self.used: list[dict[str, object]] = []
        self.campaign = make_campaign(
            session,
            examples=EXAMPLES,
            confirm_yes=policy.confirm_yes,
            overlap=policy.overlap,
            class_names=policy.class_names,
        )
        self.campaign.gold_share, self.campaign.gold_bound = policy.gold_share, 0.6
        self.campaign.least_card_ms = 500  # more than some tell
        mine = select(Question.id).where(Question.campaign_id == self.campaign.id).order_by(Question.id)
        if policy.gold_share:
            examples = select(Question.example_id).where(Question.campaign_id == self.campaign.id)
            known = [
                service.KnownPicture(id_, place % 3)
                for place, id_ in enumerate(sorted(session.scalars(examples)))
            ]
            service.mark_known(session, self.campaign, known, by=people[0])
        self.ids = list(session.scalars(mine))

    @contextmanager
    def own_time(self) -> Iterator[None]:
        """The people of both sides are the same; they have used up time on this one alone."""
        self.session.execute(delete(UsedTime))
        if self.used:
            self.session.execute(insert(UsedTime), self.used)
        yield
        self.session.flush()
        rows = self.session.execute(select(UsedTime.user_id, UsedTime.spans).order_by(UsedTime.user_id))
        self.used = [dict(row._mapping) for row in rows]

    def told(self, leased: list[service.LeasedQuestion]) -> list[object]:
        return [
            (self.ids.index(item.id), item.candidate_class, item.class_name, item.expires_at)
            for item in leased
        ]

    def _leased(self, leased: service.Leased | None) -> object:
        return leased and (self.told(leased.questions), leased.standing)

    def lease(self, person: int, now: datetime, *, count: int, one_class: bool) -> object:
        _, leased = self.execution.lease(
            self.session, self.campaign.id, count=count, one_class=one_class, by=self.people[person], now=now
        )
        return self._leased(leased)

    def submit(
        self, person: int, now: datetime, *, batch: list[Submission], count: int, one_class: bool
    ) -> object:
        submitted = [
            service.SubmittedAnswer(
                self.ids[item.place], item.value, item.response_ms, uuid5(self.campaign.id, str(item.key))
            )
            for item in batch
        ]
        _, outcomes, leased = self.execution.answer(
            self.session,
            self.campaign.id,
            submitted,
            count=count,
            one_class=one_class,
            by=self.people[person],
            now=now,
        )
        return [(item.status, item.detail) for item in outcomes], self._leased(leased)

    def undo(self, person: int, now: datetime, *, count: int) -> object:
        undone = annotators.undo(self.session, self.campaign, count=count, by=self.people[person], now=now)
        return self.told([question for question, _ in undone]), [value for _, value in undone]

    def release(self, person: int, now: datetime) -> None:
        annotators.release(self.session, self.campaign, by=self.people[person], now=now)

    def renew(self, person: int, now: datetime) -> object:
        return annotators.renew(self.session, self.campaign, by=self.people[person], now=now)

    def ask_again(self, person: int, now: datetime, *, places: list[int]) -> object:
        ids = [self.ids[place] for place in places]
        return service.wait_again(self.session, self.campaign, ids, by=self.people[person], now=now)

    def change(self, person: int, now: datetime, *, place: int, value: AnswerValue, key: int) -> object:
        locked = service.lock_campaign(self.session, self.campaign.id, by=self.people[person])
        return service.change_answer(
            self.session,
            locked,
            self.ids[place],
            value,
            key=uuid5(self.campaign.id, str(key)),
            by=self.people[person],
            now=now,
        )

    def review(self, person: int, now: datetime, *, place: int, is_kept: bool) -> object:
        example_id = self.session.get_one(Question, self.ids[place]).example_id
        return service.review_picture(
            self.session, self.campaign, example_id, is_kept=is_kept, by=self.people[person], now=now
        )

    def pause(self, person: int, now: datetime) -> None:  # noqa: ARG002
        is_open = self.campaign.state is CampaignState.OPEN
        self.campaign.state = CampaignState.PAUSED if is_open else CampaignState.OPEN
        self.session.flush()

    def rows(self) -> dict[str, list[Any]]:
        """All that answers change, in the order in which it was written first."""
        person: dict[object, object] = {user.id: number for number, user in enumerate(self.people)}
        questions: dict[object, object] = {id_: place for place, id_ in enumerate(self.ids)}
        places = person | questions | {self.campaign.id: "campaign"}

        def of(model: type, *leave_out: str) -> list[Any]:
            columns = [column for column in model.__table__.c if column.name not in leave_out]  # type: ignore[attr-defined]
            query = select(*columns).order_by(*model.__table__.primary_key)  # type: ignore[attr-defined]
            query = query.where(
                model.campaign_id == self.campaign.id
                if hasattr(model, "campaign_id")
                else model.question_id.in_(self.ids)  # type: ignore[attr-defined]
            )
            return [
                {
                    name: places.get(value, value) if name.endswith("_id") else value
                    for name, value in row._mapping.items()
                }
                for row in self.session.execute(query)
            ]

        return {
            "question": of(Question, "id", "example_id"),
            "lease": of(Lease, "id"),
            "answer": of(Answer, "id", "key"),
            "tally": of(Tally),
            "participant": of(Participant),
            "used_time": self.used,
        }


class Walk:
    """A random sequence of requests, each to both sides."""

    def __init__(self, session: Session, policy: Policy, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chance, self.monkeypatch = random.Random(seed), monkeypatch
        people = [make_user(session, role="admin") for _ in range(PEOPLE)]
        self.now = NOW
        self.keys = 0
        self.sent: list[tuple[int, Submission]] = []
        self.seen: set[str] = set()  # what came of requests
        self.sides = []
        for execution in (FAST, service.PLAIN):
            self.monkeypatch.setattr(gold, "_chance", random.Random(seed))
            self.sides.append(Side(session, people, policy, execution))

    def step(self) -> None:
        """One request, at least a second after the last: so long the fast execution may remember."""
        self.now += timedelta(seconds=self.chance.randint(1, 90))
        [action] = self.chance.choices(list(ACTIONS), list(ACTIONS.values()))
        person = self.chance.randrange(PEOPLE)
        if self.sides[0].campaign.state is CampaignState.PAUSED and self.chance.random() < 1 / 2:
            action = "pause"  # or rather its end
        if action == "run_out":
            self.now += timedelta(minutes=11)
        elif action in ("lease", "page"):
            count = self.chance.randint(1, 7)
            self.ask("lease", person, count=count, one_class=action == "page")
        elif action == "submit":
            count = self.chance.choice([0, 0, 1, 4, 6])
            one_class = self.chance.random() < 0.3
            self.ask("submit", person, batch=self.batch(person), count=count, one_class=one_class)
        elif action == "undo":
            self.ask("undo", person, count=self.chance.randint(1, 4))
        elif action == "ask_again":
            self.ask("ask_again", person, places=self.chance.sample(range(EXAMPLES), 4))
        elif action == "change":
            self.keys += 1
            value = self.chance.choice(list(AnswerValue))
            self.ask("change", person, place=self.answered(person), value=value, key=self.keys)
        elif action == "review":
            is_kept = self.chance.random() < 1 / 2
            self.ask("review", person, place=self.chance.randrange(EXAMPLES), is_kept=is_kept)
        else:
            self.ask(action, person)

    def answered(self, person: int) -> int:
        """A question that this person answered, or any."""
        mine = [
            row["question_id"]
            for row in self.sides[0].rows()["answer"]
            if row["user_id"] == person and row["superseded_at"] is None
        ]
        return int(self.chance.choice(mine or range(EXAMPLES)))

    def batch(self, person: int) -> list[Submission]:
        """Answers to what this person holds, and some that are wrong, late, or sent before."""
        held = [
            row["question_id"]
            for row in self.sides[0].rows()["lease"]
            if row["user_id"] == person and row["expires_at"] is not None
        ]
        places = self.chance.sample(held, min(len(held), self.chance.randint(1, 5)))
        if not places or self.chance.random() < 0.15:
            places.append(self.chance.randrange(len(self.sides[0].ids)))
        batch = []
        for place in places:
            self.keys += 1
            value = self.chance.choice([AnswerValue.NO, *AnswerValue])
            batch.append(Submission(place, value, self.chance.choice([None, 400, 1_200]), self.keys))
        mine = [item for number, item in self.sent if number == person]
        if mine and self.chance.random() < 0.2:
            again = self.chance.choice(mine)
            value = AnswerValue.YES if self.chance.random() < 0.2 else again.value  # perhaps another answer
            batch.append(Submission(again.place, value, again.response_ms, again.key))
        self.sent += [(person, item) for item in batch]
        return batch

    def ask(self, what: str, person: int, **details: object) -> None:
        """Ask both sides; what they tell and what they keep is the same."""
        seed = self.chance.random()
        told = []
        for side in self.sides:
            self.monkeypatch.setattr(gold, "_chance", random.Random(seed))
            told.append(self._outcome(side, getattr(side, what), person, details))
        assert told[0] == told[1], (what, person, details)
        fast, plain = (side.rows() for side in self.sides)
        for table in fast:
            assert fast[table] == plain[table], (what, person, details, table)

    def _outcome(
        self, side: Side, act: Callable[..., object], person: int, details: dict[str, Any]
    ) -> object:
        try:
            with side.session.begin_nested(), side.own_time():
                given = act(person, self.now, **details)
        except AppError as error:
            self.seen.add(type(error).__name__)
            side.session.expire_all()
            return type(error), {**error.facts, "key": None}
        self.seen.add(f"{act.__name__}")
        return given


@pytest.mark.parametrize("policy", POLICIES)
def test_a_random_walk_ends_alike(
    session: Session, monkeypatch: pytest.MonkeyPatch, policy: str, engine: Database
) -> None:
    seed = int(engine.engine.name == "postgresql")  # another walk on each database
    # Of two classes chance chooses questions by their ids, which differ between the sides.
    monkeypatch.setattr(locking, "chance_of_confirming", lambda _, question_id: question_id % 9 / 9)
    walk = Walk(session, POLICIES[policy], seed, monkeypatch)

    for _ in range(STEPS):
        walk.step()

    if not POLICIES[policy].gold_share:
        for side in walk.sides:
            assert_sums(session, side.campaign)
    answers = walk.sides[0].rows()["answer"]
    assert len(answers) > 15
    assert {"lease", "submit", "undo"} <= walk.seen
