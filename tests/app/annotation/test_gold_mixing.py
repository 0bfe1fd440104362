"""Known pictures between the questions: how many, where, and at nobody's cost."""

from collections.abc import Collection
from itertools import pairwise
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.holding import held_questions
from app.annotation.models import AnswerValue, Lease, Purpose, Question
from tests import annotators
from tests.app.annotation.test_gold import fixed_chance, gold_of, golden
from tests.factories import NOW, answer, make_user, questions_of

pytestmark = pytest.mark.dialects

__all__ = ["fixed_chance"]  # a fixture that every test here uses


def pictures_of(session: Session, ids: Collection[int]) -> set[int]:
    """What these questions are about."""
    return set(session.scalars(select(Question.example_id).where(Question.id.in_(ids))))


class TestMixing:
    def test_gold_stands_behind_questions_of_its_class_and_half_of_it_matches(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        campaign = golden(session, admin, per_class=30)

        annotators.lease(session, campaign, count=60, by=annotator, now=NOW)
        leased = annotators.lease(session, campaign, count=100, by=annotator, now=NOW)

        known = gold_of(session, [q.id for q in leased])
        assert len(known) >= 30
        assert 0.3 < sum(known.values()) / len(known) < 0.7
        for before, question in pairwise(leased):
            if question.id in known and before.id not in known:
                assert question.candidate_class == before.candidate_class
        assert not set(known) & set(gold_of(session, [leased[0].id]))

    def test_nobody_gets_the_same_twice_and_everybody_gets_them(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        campaign = golden(session, admin, examples=400, per_class=1, overlap=1)
        seen: list[int] = []
        for _ in range(4):
            leased = annotators.lease(session, campaign, count=50, by=annotator, now=NOW)
            known = gold_of(session, [q.id for q in leased])
            seen += known
            said = {id_: AnswerValue.YES for id_, is_match in known.items() if is_match}
            answers = [
                service.SubmittedAnswer(q.id, said.get(q.id, AnswerValue.NO), 5, uuid4()) for q in leased
            ]
            annotators.submit(session, campaign, answers, by=annotator, now=NOW)

        assert len(seen) == len(set(seen)) > 5
        # With a third at work somebody is left to be asked about what two met as a known picture.
        third = annotators.lease(session, campaign, count=1, by=(somebody := make_user(session)), now=NOW)
        answer(session, campaign, third[0].id, by=somebody)
        other = make_user(session)
        leased = annotators.lease(session, campaign, count=90, by=other, now=NOW)
        theirs = gold_of(session, [q.id for q in leased])
        assert pictures_of(session, theirs) & pictures_of(session, seen)

    def test_a_page_leaves_nothing_behind(self, session: Session, admin: User, annotator: User) -> None:
        campaign = golden(session, admin, examples=600, per_class=30)

        def page() -> list[service.LeasedQuestion]:
            return annotators.lease(session, campaign, count=12, by=annotator, now=NOW, one_class=True)

        first = page()
        assert len(first) == 12
        assert 0 < len(gold_of(session, [question.id for question in first])) < 12
        locked = service.lock_campaign(session, campaign.id, by=annotator)
        assert held_questions(session, locked, by=annotator, now=NOW) == first
        given = [service.SubmittedAnswer(question.id, AnswerValue.NO, 500, uuid4()) for question in first]
        annotators.submit(session, campaign, given, by=annotator, now=NOW)
        assert len(page()) == 12

    def test_a_page_takes_no_slot_that_it_does_not_keep(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        """Somebody's slots that ran out still take a late answer, as long as nobody else has taken them."""
        campaign = golden(session, admin, examples=60, per_class=30)
        slow = make_user(session)
        annotators.lease(session, campaign, count=60, by=slow, now=NOW)
        later = NOW + 2 * service.LEASE

        page = annotators.lease(session, campaign, count=12, by=annotator, now=later, one_class=True)

        known = gold_of(session, [question.id for question in page])
        slots = select(Lease).join(Question).where(Question.purpose != Purpose.GOLD)
        holders = {lease.question_id: lease.user_id for lease in session.scalars(slots)}
        assert known
        assert {id_ for id_, user_id in holders.items() if user_id == annotator.id} == {
            question.id for question in page if question.id not in known
        }
        assert len(holders) == 60, "nobody's slot is gone"

    @pytest.mark.long(but=["sqlite-12", "postgresql-12"])
    @pytest.mark.parametrize("per_block", [12, 30])
    def test_pages_have_their_share_whatever_is_left_of_a_block(
        self, session: Session, admin: User, annotator: User, per_block: int
    ) -> None:
        """Pages of thirty, of which a block may fill few: gold follows the questions, not the places."""
        share = 0.2
        campaign = golden(session, admin, examples=480, per_class=48, gold_share=share, gold_bound=0.0)
        questions = [q for q in questions_of(session, campaign) if q.purpose is not Purpose.GOLD]
        for place, question in enumerate(questions):  # blocks of one class, one after another
            question.candidate_class = place // per_block % 10
        session.flush()
        served = known = 0
        while page := annotators.lease(session, campaign, count=30, by=annotator, now=NOW, one_class=True):
            assert len(page) <= 30
            served, known = served + len(page), known + len(gold_of(session, [q.id for q in page]))
            given = [service.SubmittedAnswer(q.id, AnswerValue.NO, 9, uuid4()) for q in page]
            annotators.submit(session, campaign, given, by=annotator, now=NOW)

        assert served == 480, "each picture once, as a known one or as a drawn question"
        spread = (share * (1 - share) / served) ** 0.5
        assert abs(known / served - share) < 4 * spread

    def test_few_have_their_share_until_they_are_spent(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        """They do not crowd at the beginning, and do not spare themselves for the end."""
        share = 0.1
        campaign = golden(session, admin, examples=600, per_class=2, gold_share=share, gold_bound=0.0)
        lasts = service.gold_lasts(campaign, 20)
        assert lasts == 200
        is_known: list[bool] = []
        for _ in range(25):
            page = annotators.lease(session, campaign, count=20, by=annotator, now=NOW)
            known = gold_of(session, [q.id for q in page])
            is_known += [q.id in known for q in page]
            given = [service.SubmittedAnswer(q.id, AnswerValue.NO, 9, uuid4()) for q in page]
            annotators.submit(session, campaign, given, by=annotator, now=NOW)

        for length in (60, 100, 140):
            spread = (share * (1 - share) * length) ** 0.5
            assert abs(sum(is_known[:length]) - share * length) < 4 * spread
        assert 10 < sum(is_known) <= 20
        assert sum(is_known[:lasts]) > 2 / 3 * sum(is_known)
        assert sum(is_known[2 * lasts :]) <= 2

    def test_what_has_no_end_is_not_told(self, session: Session, admin: User) -> None:
        campaign = golden(session, admin, examples=100, per_class=1, gold_share=0.1)

        assert service.gold_lasts(campaign, 10) is None, "all 100 questions can have their share"
        assert service.gold_lasts(campaign, 9) == 90
        assert service.gold_lasts(campaign, 0) is None
        campaign.gold_share = 0.0
        assert service.gold_lasts(campaign, 9) is None

    def test_without_a_share_there_is_none(self, session: Session, admin: User, annotator: User) -> None:
        campaign = golden(session, admin, gold_share=0.0)

        leased = annotators.lease(session, campaign, count=60, by=annotator, now=NOW)

        assert not gold_of(session, [q.id for q in leased])
