"""Answers: exactly once each, and only by who holds the question."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.errors import KeyReused
from app.annotation.models import Answer, AnswerValue, Lease, Question
from app.annotation.service import LEASE, Status, SubmittedAnswer
from app.campaigns.models import Campaign, CampaignState
from tests import annotators
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = [pytest.mark.dialects, pytest.mark.usefixtures("each_execution")]

LATER = NOW + LEASE + timedelta(seconds=1)
STORED, REPEATED, REFUSED = Status.STORED, Status.REPEATED, Status.REFUSED


def given(question_id: int, value: str = "no") -> SubmittedAnswer:
    """An answer under a new key."""
    return SubmittedAnswer(question_id, AnswerValue(value), 800, uuid4())


def lease(session: Session, campaign: Campaign, by: User, count: int = 5) -> list[int]:
    """Ids of newly held questions."""
    return [q.id for q in annotators.lease(session, campaign, count=count, by=by, now=NOW)]


def statuses(
    session: Session, campaign: Campaign, answers: list[SubmittedAnswer], by: User, now: object = NOW
) -> list[Status]:
    """What becomes of answers."""
    outcomes = annotators.submit(session, campaign, answers, by=by, now=now)  # type: ignore[arg-type]
    assert [outcome.key for outcome in outcomes] == [item.key for item in answers]
    for outcome in outcomes:
        assert (outcome.detail is not None) == (outcome.status is REFUSED)
    return [outcome.status for outcome in outcomes]


def stored(session: Session) -> int:
    """How many answers there are."""
    return session.scalar(select(func.count()).select_from(Answer)) or 0


class TestExactlyOnce:
    def test_the_same_batch_twice_is_the_same_answers(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        batch = [
            given(id_, value)
            for id_, value in zip(
                lease(session, campaign, annotator, 3), ["yes", "no", "unsure"], strict=True
            )
        ]

        assert statuses(session, campaign, batch, annotator) == [STORED] * 3
        assert statuses(session, campaign, batch, annotator) == [REPEATED] * 3
        assert stored(session) == 3

    def test_a_key_twice_in_one_batch_counts_once(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        item = given(lease(session, campaign, annotator)[0])

        assert statuses(session, campaign, [item, item], annotator) == [STORED, REPEATED]
        assert stored(session) == 1

    @pytest.mark.parametrize("change", ["value", "question"])
    def test_a_key_with_another_answer_stores_nothing_of_the_batch(
        self, session: Session, annotator: User, change: str
    ) -> None:
        campaign = make_campaign(session)
        ids = lease(session, campaign, annotator)
        first = given(ids[0])
        statuses(session, campaign, [first], annotator)
        other = (
            SubmittedAnswer(ids[0], AnswerValue.YES, 800, first.key)
            if change == "value"
            else SubmittedAnswer(ids[1], AnswerValue.NO, 800, first.key)
        )

        with pytest.raises(KeyReused):
            annotators.submit(session, campaign, [given(ids[2]), other], by=annotator, now=NOW)

        assert stored(session) == 1

    def test_a_key_with_two_answers_in_one_batch_is_refused_too(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session)
        ids = lease(session, campaign, annotator)
        one = given(ids[0])

        with pytest.raises(KeyReused):
            annotators.submit(
                session,
                campaign,
                [one, SubmittedAnswer(ids[1], AnswerValue.NO, 1, one.key)],
                by=annotator,
                now=NOW,
            )

        assert stored(session) == 0

    def test_keys_of_two_people_do_not_meet(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        other = make_user(session)
        mine, theirs = lease(session, campaign, annotator, 1)[0], lease(session, campaign, other, 1)[0]
        key = uuid4()

        assert statuses(session, campaign, [SubmittedAnswer(mine, AnswerValue.NO, 1, key)], annotator) == [
            STORED
        ]
        assert statuses(session, campaign, [SubmittedAnswer(theirs, AnswerValue.YES, 1, key)], other) == [
            STORED
        ]

    def test_a_second_answer_to_a_question_is_refused(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        id_ = lease(session, campaign, annotator)[0]

        assert statuses(session, campaign, [given(id_), given(id_, "yes")], annotator) == [STORED, REFUSED]
        assert statuses(session, campaign, [given(id_, "yes")], annotator) == [REFUSED]


class TestLeaseIsCheckedAgain:
    def test_without_a_lease_nothing_is_taken(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        other = make_campaign(session)
        foreign = lease(session, other, annotator, 1)[0]
        ids = [questions_of(session, campaign)[0].id, foreign, 10**12]

        assert statuses(session, campaign, [given(id_) for id_ in ids], annotator) == [REFUSED] * 3
        assert stored(session) == 0

    def test_a_late_answer_counts_while_nobody_took_the_slot(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        ids = lease(session, campaign, annotator, 2)
        annotators.release(session, campaign, by=annotator, now=NOW)

        assert statuses(session, campaign, [given(ids[0])], annotator, NOW) == [STORED]
        assert statuses(session, campaign, [given(ids[1])], annotator, LATER) == [STORED]

    def test_but_not_once_somebody_has_it(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=2)
        ids = lease(session, campaign, annotator, 2)
        other = make_user(session)
        taken = annotators.lease(session, campaign, count=1, by=other, now=LATER)[0].id

        outcomes = dict(
            zip(ids, statuses(session, campaign, [given(id_) for id_ in ids], annotator, LATER), strict=True)
        )

        assert outcomes.pop(taken) is REFUSED
        assert list(outcomes.values()) == [STORED]
        assert statuses(session, campaign, [given(taken)], other, LATER) == [STORED]

    def test_a_paused_campaign_takes_what_is_held(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        id_ = lease(session, campaign, annotator, 1)[0]
        campaign.state = CampaignState.PAUSED

        assert statuses(session, campaign, [given(id_)], annotator) == [STORED]

    def test_a_closed_one_takes_nothing_but_knows_what_it_has(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session)
        ids = lease(session, campaign, annotator, 2)
        before = given(ids[0])
        statuses(session, campaign, [before], annotator)
        campaign.state = CampaignState.CLOSED

        assert statuses(session, campaign, [before, given(ids[1])], annotator) == [REPEATED, REFUSED]
        assert stored(session) == 1


class TestSlots:
    def test_a_yes_and_a_no_end_after_the_third(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, confirm_yes=True)
        question = questions_of(session, campaign)[0]

        seen = []
        for value in ("yes", "no", "yes", "yes"):
            answer(session, campaign, question.id, value)
            session.refresh(question)
            seen.append((question.slots, question.is_waiting))

        assert seen == [(2, True), (3, True), (4, True), (4, False)]

    def test_an_overlap_asks_as_many_people(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, overlap=2)
        question = questions_of(session, campaign)[0]

        seen = []
        for value in ("no", "yes", "no"):
            answer(session, campaign, question.id, value)
            session.refresh(question)
            seen.append((question.slots, question.is_waiting))

        assert seen == [(2, True), (3, True), (3, False)]

    def test_two_yes_are_enough(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, confirm_yes=True)
        question = questions_of(session, campaign)[0]

        answer(session, campaign, question.id, "yes")
        answer(session, campaign, question.id, "yes")

        session.refresh(question)
        assert (question.slots, question.is_waiting) == (2, False)

    @pytest.mark.parametrize("value", ["yes", "no"])
    def test_without_confirmation_one_answer_ends_it(self, session: Session, value: str) -> None:
        campaign = make_campaign(session, examples=1)
        question = questions_of(session, campaign)[0]

        answer(session, campaign, question.id, value)

        session.refresh(question)
        assert (question.slots, question.is_waiting) == (1, False)

    def test_unsure_frees_the_slot(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1)
        question = questions_of(session, campaign)[0]

        answer(session, campaign, question.id, "unsure")

        session.refresh(question)
        assert (question.slots, question.is_waiting) == (1, True)
        assert session.scalar(select(func.count()).select_from(Lease)) == 0


def test_finished_questions_leave_the_queue_and_unfinished_ones_stay(session: Session) -> None:
    campaign = make_campaign(session, examples=4, confirm_yes=True)
    queue = questions_of(session, campaign)
    answer(session, campaign, queue[0].id, "yes")
    answer(session, campaign, queue[1].id, "no")
    answer(session, campaign, queue[2].id, "unsure")

    waiting = session.scalars(
        select(Question.id)
        .where(Question.campaign_id == campaign.id, Question.is_waiting)
        .order_by(Question.rank)
    ).all()

    assert list(waiting) == [queue[3].id, queue[0].id, queue[2].id]
