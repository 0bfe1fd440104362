"""Taking back answers: one's own last ones, while nobody else builds on them."""

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.errors import CampaignNotOpen, NothingToUndo
from app.annotation.models import Answer, AnswerValue
from app.annotation.service import UNDO_LIMIT
from tests import annotators
from tests.app.annotation.test_answering import (
    LATER,
    REFUSED,
    REPEATED,
    STORED,
    given,
    lease,
    statuses,
    stored,
)
from tests.app.annotation.test_gold import fixed_chance, golden
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = [pytest.mark.dialects, pytest.mark.usefixtures("each_execution")]

__all__ = ["fixed_chance"]  # a fixture that every test here uses


class TestUndo:
    def test_the_last_answer_is_superseded_and_its_question_mine_again(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session)
        ids = lease(session, campaign, annotator, 3)
        statuses(session, campaign, [given(ids[0], "yes"), given(ids[1], "no")], annotator)

        [(question, value)] = annotators.undo(session, campaign, by=annotator, now=NOW)

        assert (question.id, value) == (ids[1], AnswerValue.NO)
        again = annotators.lease(session, campaign, count=3, by=annotator, now=NOW)
        assert [q.id for q in again][:2] == [ids[1], ids[2]]
        assert statuses(session, campaign, [given(ids[1], "yes")], annotator) == [STORED]
        live = session.execute(
            select(Answer.question_id, Answer.value).where(Answer.superseded_at.is_(None)).order_by(Answer.id)
        ).all()
        assert [tuple(row) for row in live] == [(ids[0], AnswerValue.YES), (ids[1], AnswerValue.YES)]
        assert stored(session) == 3

    def test_an_undone_question_comes_before_what_is_held(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        ids = lease(session, campaign, annotator, 3)
        statuses(session, campaign, [given(ids[0], "unsure")], annotator)

        annotators.undo(session, campaign, by=annotator, now=NOW)

        assert lease(session, campaign, annotator, 3) == ids

    def test_a_page_back_and_no_further(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=UNDO_LIMIT + 2)
        ids = lease(session, campaign, annotator, UNDO_LIMIT + 2)
        for id_ in ids:
            statuses(session, campaign, [given(id_)], annotator)

        [(last, value)] = annotators.undo(session, campaign, by=annotator, now=NOW)
        page = annotators.undo(session, campaign, count=100, by=annotator, now=NOW)

        assert (last.id, value) == (ids[-1], "no")
        assert [question.id for question, _ in page] == ids[2:-1], "in the order of the page"
        assert lease(session, campaign, annotator, UNDO_LIMIT) == ids[2:], "and held again in that order"
        with pytest.raises(NothingToUndo):
            annotators.undo(session, campaign, by=annotator, now=NOW)

    def test_only_my_own_answers_of_this_campaign(self, session: Session, annotator: User) -> None:
        campaign, other = make_campaign(session), make_campaign(session)
        answer(session, campaign, questions_of(session, campaign)[0].id)
        answer(session, other, questions_of(session, other)[0].id, by=annotator)

        with pytest.raises(NothingToUndo):
            annotators.undo(session, campaign, by=annotator, now=NOW)

    def test_an_undone_answer_sent_again_stays_undone(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session)
        item = given(lease(session, campaign, annotator, 1)[0])
        statuses(session, campaign, [item], annotator)
        annotators.undo(session, campaign, by=annotator, now=NOW)

        assert statuses(session, campaign, [item], annotator) == [REPEATED]
        assert service.standing(session, campaign, by=annotator).answered_by_me == 0

    def test_a_confirmed_yes_taken_back_waits_for_me_alone(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, confirm_yes=True)
        question = questions_of(session, campaign)[0]
        first = answer(session, campaign, question.id, "yes")
        answer(session, campaign, question.id, "yes")

        annotators.undo(session, campaign, by=first, now=NOW)

        session.refresh(question)
        assert (question.slots, question.is_waiting) == (2, True)
        assert lease(session, campaign, make_user(session)) == []
        assert statuses(session, campaign, [given(question.id, "no")], first) == [STORED]
        session.refresh(question)
        assert (question.slots, question.is_waiting) == (3, True)

    def test_while_somebody_confirms_both_may_still_answer(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, confirm_yes=True)
        question = questions_of(session, campaign)[0]
        first = answer(session, campaign, question.id, "yes")
        second = make_user(session)
        lease(session, campaign, second)

        annotators.undo(session, campaign, by=first, now=NOW)

        assert lease(session, campaign, make_user(session)) == []
        assert statuses(session, campaign, [given(question.id)], first) == [STORED]
        assert statuses(session, campaign, [given(question.id)], second) == [STORED]
        session.refresh(question)
        assert (question.slots, question.is_waiting) == (2, False)

    def test_cannot_tell_can_be_undone_while_nobody_has_the_question(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=1)
        question = questions_of(session, campaign)[0]
        answer(session, campaign, question.id, "unsure", by=annotator)

        [(again, value)] = annotators.undo(session, campaign, by=annotator, now=NOW)

        assert (again.id, value) == (question.id, AnswerValue.UNSURE)
        assert statuses(session, campaign, [given(question.id)], annotator) == [STORED]

    def test_over_a_lease_that_ran_out_as_well(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=1)
        question = questions_of(session, campaign)[0]
        answer(session, campaign, question.id, "unsure", by=annotator)
        other = make_user(session)
        lease(session, campaign, other)

        annotators.undo(session, campaign, by=annotator, now=LATER)

        assert statuses(session, campaign, [given(question.id)], other, LATER) == [REFUSED]
        assert statuses(session, campaign, [given(question.id)], annotator, LATER) == [STORED]

    @pytest.mark.parametrize("answered", [True, False])
    @pytest.mark.parametrize("said", ["unsure", "unusable"])
    def test_once_somebody_has_it_too_and_they_keep_it(
        self, session: Session, annotator: User, answered: bool, said: str
    ) -> None:
        campaign = make_campaign(session, examples=1)
        question = questions_of(session, campaign)[0]
        answer(session, campaign, question.id, said, by=annotator)
        other = make_user(session)
        lease(session, campaign, other)
        if answered:
            statuses(session, campaign, [given(question.id)], other)

        [(again, value)] = annotators.undo(session, campaign, by=annotator, now=NOW)

        assert (again.id, value) == (question.id, AnswerValue(said))
        session.refresh(question)
        assert (question.slots, question.is_waiting) == (1, not answered), "it waits for nobody more"
        assert lease(session, campaign, make_user(session)) == []
        if not answered:
            assert statuses(session, campaign, [given(question.id)], other) == [STORED]
        assert statuses(session, campaign, [given(question.id)], annotator) == [STORED]
        session.refresh(question)
        assert not question.is_waiting
        assert service.progress(session, campaign, now=NOW).finished == 1

    def test_a_hasty_answer_can_be_undone_as_one_to_a_known_picture_can(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        campaign = golden(session, admin, examples=40, per_class=3, least_card_ms=200)
        held = [item.id for item in annotators.lease(session, campaign, count=12, by=annotator, now=NOW)]
        statuses(session, campaign, [given(id_) for id_ in held], annotator)
        assert session.scalar(select(func.count()).where(Answer.is_hasty)), "of all at once some are"
        others = lease(session, campaign, make_user(session), 100)
        assert set(others) & set(held)

        undone = annotators.undo(session, campaign, count=12, by=annotator, now=NOW)

        assert [question.id for question, _ in undone] == held

    def test_the_last_of_three_cannot_tell_opens_the_question_again(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1)
        question = questions_of(session, campaign)[0]
        people = [answer(session, campaign, question.id, "unsure") for _ in range(3)]

        annotators.undo(session, campaign, by=people[2], now=NOW)

        session.refresh(question)
        assert question.is_waiting
        assert statuses(session, campaign, [given(question.id)], people[2]) == [STORED]

    @pytest.mark.parametrize("state", ["draft", "closed"])
    def test_not_in_a_closed_campaign(self, session: Session, admin: User, state: str) -> None:
        campaign = make_campaign(session, state=state)

        with pytest.raises(CampaignNotOpen):
            annotators.undo(session, campaign, by=admin, now=NOW)
