"""Any order of leases, answers, undos, pauses and time keeps the promises."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.annotation import service
from app.annotation.consensus import MAX_SLOTS, UNSURE_LIMIT, answers_needed
from app.annotation.models import Answer, AnswerValue, Lease, Question
from app.campaigns.models import CampaignState
from app.db import Database
from app.errors import Conflict
from app.fast.answering import FAST
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, make_campaign, make_user

pytestmark = [pytest.mark.long, pytest.mark.dialects]

PEOPLE = st.integers(0, 3)
VALUES = st.sampled_from(list(AnswerValue))


@pytest.fixture(autouse=True, params=[FAST, service.PLAIN], ids=["fast", "plain"])
def _execution(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here holds for both executions."""
    monkeypatch.setattr(annotators, "execution", request.param)


class Answering(RuleBasedStateMachine):
    """Four people in a campaign of five pictures."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.session: Session = self.database.write()
        self.campaign = make_campaign(self.session, examples=5, confirm_yes=True)
        # Admins, because only they may know of a paused campaign before they took part.
        self.people = [make_user(self.session, role="admin") for _ in range(4)]
        self.now = NOW
        self.drawn = self.classes()
        self.acknowledged: dict[service.SubmittedAnswer, int] = {}

    def classes(self) -> dict[int, int]:
        """What each question asks about."""
        rows = self.session.execute(
            select(Question.id, Question.candidate_class).where(Question.campaign_id == self.campaign.id)
        )
        return {row.id: row.candidate_class for row in rows}

    def teardown(self) -> None:
        self.session.rollback()
        self.session.close()

    def send(self, person: int, given: service.SubmittedAnswer) -> service.Status:
        [outcome] = annotators.submit(
            self.session, self.campaign, [given], by=self.people[person], now=self.now
        )
        if outcome.status is service.Status.STORED:
            self.acknowledged[given] = person
        return outcome.status

    @rule(person=PEOPLE, count=st.integers(1, 4))
    def lease(self, person: int, count: int) -> None:
        try:
            leased = annotators.lease(
                self.session, self.campaign, count=count, by=self.people[person], now=self.now
            )
        except Conflict:
            assert self.campaign.state is not CampaignState.OPEN
            return
        answered = self.session.scalars(
            select(Answer.question_id).where(
                Answer.user_id == self.people[person].id, Answer.superseded_at.is_(None)
            )
        ).all()
        assert not {question.id for question in leased} & set(answered)

    @rule(person=PEOPLE, value=VALUES, which=st.integers(0, 4))
    def answer(self, person: int, value: AnswerValue, which: int) -> None:
        given = service.SubmittedAnswer(sorted(self.drawn)[which], value, 700, uuid4())
        live = self.session.scalar(
            select(Lease.id).where(
                Lease.question_id == given.question_id,
                Lease.user_id == self.people[person].id,
                Lease.expires_at > self.now,
            )
        )
        status = self.send(person, given)
        if live is not None and self.campaign.state is not CampaignState.CLOSED:
            assert status is service.Status.STORED, "a live lease is a promise"

    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        if self.acknowledged:
            given = data.draw(st.sampled_from(list(self.acknowledged)))
            assert self.send(self.acknowledged[given], given) is service.Status.REPEATED

    @rule(person=PEOPLE)
    def undo(self, person: int) -> None:
        try:
            annotators.undo(self.session, self.campaign, by=self.people[person], now=self.now)
        except Conflict:
            return

    @rule(person=PEOPLE)
    def release(self, person: int) -> None:
        annotators.release(self.session, self.campaign, by=self.people[person], now=self.now)

    @rule(person=PEOPLE)
    def renew(self, person: int) -> None:
        annotators.renew(self.session, self.campaign, by=self.people[person], now=self.now)

    @rule(minutes=st.sampled_from([1, 11]))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule()
    def pause_or_resume(self) -> None:
        is_open = self.campaign.state is CampaignState.OPEN
        self.campaign.state = CampaignState.PAUSED if is_open else CampaignState.OPEN
        self.session.flush()

    @invariant()
    def nothing_is_drawn_again(self) -> None:
        assert self.classes() == self.drawn

    @invariant()
    def slots_hold(self) -> None:
        counts: dict[int, dict[AnswerValue, int]] = {id_: dict.fromkeys(AnswerValue, 0) for id_ in self.drawn}
        for question_id, value in self.session.execute(
            select(Answer.question_id, Answer.value).where(
                Answer.superseded_at.is_(None), Answer.question_id.in_(self.drawn)
            )
        ):
            counts[question_id][value] += 1
        rows = self.session.execute(
            select(Lease.question_id, func.count().label("held"))
            .where(
                Lease.question_id.in_(self.drawn),
                Lease.expires_at.is_(None) | (Lease.expires_at > self.now),
            )
            .group_by(Lease.question_id)
        )
        held = {row.question_id: row.held for row in rows}
        questions = self.session.scalars(
            select(Question)
            .where(Question.campaign_id == self.campaign.id)
            .execution_options(populate_existing=True)
        )
        for question in questions:
            yes, no = counts[question.id][AnswerValue.YES], counts[question.id][AnswerValue.NO]
            needed = answers_needed(yes, no, confirm_yes=True)
            assert yes + no <= question.slots <= MAX_SLOTS
            assert held.get(question.id, 0) <= question.slots
            assert question.slots >= needed
            if not question.is_waiting:
                assert yes + no >= needed or counts[question.id][AnswerValue.UNSURE] >= UNSURE_LIMIT

    @invariant()
    def sums_hold(self) -> None:
        assert_sums(self.session, self.campaign)

    @invariant()
    def every_acknowledged_answer_is_kept(self) -> None:
        keys = set(self.session.scalars(select(Answer.key)))
        assert {given.key for given in self.acknowledged} <= keys


@pytest.fixture
def machine(database: Database) -> Iterator[type[Answering]]:
    """The machine on one of the databases; each example leaves nothing behind."""
    Answering.database = database
    yield Answering
    del Answering.database


def test_promises_hold_in_any_order(machine: type[Answering]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
