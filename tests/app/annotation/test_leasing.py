"""Who holds which question, until when."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.errors import CampaignNotOpen
from app.annotation.models import AnswerValue, Lease
from app.annotation.service import LEASE, SubmittedAnswer
from app.campaigns.draws import MIN_BLOCK
from app.campaigns.errors import CampaignNotFound
from app.campaigns.models import CampaignState
from app.fast.answering import FAST
from app.fast.queue import LOOK_AGAIN, leasing_now
from tests import annotators
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects

LATER = NOW + LEASE + timedelta(seconds=1)


class TestLease:
    def test_questions_come_in_asking_order(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=40)
        queue = questions_of(session, campaign)

        leased = annotators.lease(session, campaign, count=7, by=annotator, now=NOW)

        assert [q.id for q in leased] == [q.id for q in queue[:7]]
        assert [q.class_name for q in leased] == [campaign.class_names[q.candidate_class] for q in queue[:7]]
        assert {q.expires_at for q in leased} == {NOW + LEASE}

    def test_held_questions_come_first_and_in_the_same_order(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=40)

        first = annotators.lease(session, campaign, count=3, by=annotator, now=NOW)
        more = annotators.lease(session, campaign, count=5, by=annotator, now=NOW)
        fewer = annotators.lease(session, campaign, count=2, by=annotator, now=NOW)

        assert more[:3] == first
        assert len({q.id for q in more}) == 5
        assert fewer == first[:2]

    def test_questions_taken_over_come_after_those_on_the_screen(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=8, confirm_yes=True)
        annotators.lease(session, campaign, count=3, by=make_user(session), now=NOW)
        mine = annotators.lease(session, campaign, count=2, by=annotator, now=LATER - LEASE / 2)

        annotators.renew(session, campaign, by=annotator, now=LATER)
        more = annotators.lease(session, campaign, count=5, by=annotator, now=LATER)

        assert [q.id for q in more] == [
            q.id for q in questions_of(session, campaign)[3:5] + questions_of(session, campaign)[:3]
        ]
        assert [q.id for q in more[:2]] == [q.id for q in mine]
        assert annotators.lease(session, campaign, count=5, by=annotator, now=LATER) == more

    def test_what_others_let_run_out_is_found_within_a_second(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=40)
        queue = [q.id for q in questions_of(session, campaign)]
        others = [make_user(session) for _ in range(2)]
        annotators.lease(session, campaign, count=3, by=annotator, now=NOW)
        annotators.lease(session, campaign, count=3, by=others[0], now=LATER - 2 * LOOK_AGAIN)

        found = annotators.lease(session, campaign, count=3, by=others[1], now=LATER)

        assert [q.id for q in found] == queue[:3]

    def test_a_short_memory_of_the_queue_hides_nothing_for_long(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=8)
        queue = [q.id for q in questions_of(session, campaign)]
        annotators.lease(session, campaign, count=3, by=annotator, now=NOW)
        annotators.lease(session, campaign, count=3, by=make_user(session), now=NOW)
        # As another process gives back what the first one holds: this one does not hear of it.
        session.execute(update(Lease).where(Lease.user_id == annotator.id).values(expires_at=NOW))

        other = make_user(session)
        first = annotators.lease(session, campaign, count=1, by=other, now=NOW)
        session.execute(update(Lease).where(Lease.user_id == other.id).values(expires_at=NOW))
        rest = annotators.lease(session, campaign, count=10, by=other, now=NOW)

        assert first[0].id in (queue[0], queue[6])
        assert {q.id for q in rest} == set(queue[:3]) | set(queue[6:])

    def test_what_one_person_passes_by_is_there_for_the_next(self, session: Session) -> None:
        campaign = make_campaign(session, examples=4)
        queue = [q.id for q in questions_of(session, campaign)]
        one = make_user(session)
        for number, question_id in enumerate(queue):  # each goes to the end of the queue
            answer(session, campaign, question_id, "unsure", by=one if number < 2 else None)

        [theirs] = annotators.lease(session, campaign, count=1, by=one, now=NOW)
        [found] = annotators.lease(session, campaign, count=1, by=make_user(session), now=NOW)

        assert [theirs.id, found.id] == [queue[2], queue[0]]

    def test_a_clock_that_goes_back_hides_nothing(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=8)
        queue = [q.id for q in questions_of(session, campaign)]
        annotators.lease(session, campaign, count=2, by=make_user(session), now=NOW)
        annotators.lease(session, campaign, count=1, by=annotator, now=NOW)
        session.execute(update(Lease).values(expires_at=NOW - timedelta(hours=2)))

        found = annotators.lease(session, campaign, count=1, by=annotator, now=NOW - timedelta(hours=1))

        assert [q.id for q in found] == queue[:1]

    def test_who_comes_while_others_take_begins_behind_them(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=10)
        queue = [q.id for q in questions_of(session, campaign)]
        for _ in range(2):
            annotators.lease(session, campaign, count=1, by=make_user(session), now=NOW)

        with leasing_now(campaign.id, 1), leasing_now(campaign.id, 2):
            mine = annotators.lease(session, campaign, count=2, by=annotator, now=NOW)
        passed_by = annotators.lease(session, campaign, count=2, by=make_user(session), now=NOW + LOOK_AGAIN)
        with leasing_now(campaign.id, 100):  # and where nothing is behind them, finds what is before
            rest = annotators.lease(session, campaign, count=9, by=make_user(session), now=NOW + LOOK_AGAIN)

        is_remembered = session.get_bind().dialect.name == "postgresql"
        assert [q.id for q in mine] == (queue[4:6] if is_remembered else queue[2:4])
        assert [q.id for q in passed_by] == (queue[2:4] if is_remembered else queue[4:6])
        assert [q.id for q in rest] == queue[6:]

    def test_a_page_is_the_rest_of_one_block(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=200)
        queue = questions_of(session, campaign)
        block = [q.id for q in queue[:30] if q.candidate_class == queue[0].candidate_class]
        annotators.lease(session, campaign, count=3, by=make_user(session), now=NOW)

        page = annotators.lease(session, campaign, count=30, one_class=True, by=annotator, now=NOW)
        again = annotators.lease(session, campaign, count=30, one_class=True, by=annotator, now=NOW)

        assert [q.id for q in page] == block[3:]
        assert len(page) >= MIN_BLOCK - 3
        assert again[: len(page)] == page, "what is held comes first"
        assert len({q.candidate_class for q in again[len(page) :]}) == 1, "and the next block after it"

    def test_a_page_of_questions_asked_again_comes_from_all_blocks(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=300, confirm_yes=True)
        other = make_user(session)
        while leased := annotators.lease(session, campaign, count=100, by=other, now=NOW):
            given = [SubmittedAnswer(q.id, AnswerValue.YES, None, uuid4()) for q in leased]
            annotators.submit(session, campaign, given, by=other, now=NOW)

        page = annotators.lease(session, campaign, count=30, one_class=True, by=annotator, now=NOW)

        assert len(page) == 30
        assert len({q.candidate_class for q in page}) == 1

    def test_no_page_when_nothing_is_left(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=4)
        annotators.lease(session, campaign, count=4, by=make_user(session), now=NOW)

        assert annotators.lease(session, campaign, count=30, one_class=True, by=annotator, now=NOW) == []

    def test_two_people_never_hold_the_same_question(self, session: Session) -> None:
        campaign = make_campaign(session, examples=10)

        held = [
            q.id
            for _ in range(3)
            for q in annotators.lease(session, campaign, count=4, by=make_user(session), now=NOW)
        ]

        assert len(held) == len(set(held)) == 10

    def test_a_lease_that_ran_out_goes_to_somebody_else(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=2)
        mine = annotators.lease(session, campaign, count=2, by=annotator, now=NOW)
        other = make_user(session)

        assert annotators.lease(session, campaign, count=2, by=other, now=NOW) == []
        theirs = annotators.lease(session, campaign, count=2, by=other, now=LATER)

        assert {q.id for q in theirs} == {q.id for q in mine}
        assert annotators.lease(session, campaign, count=2, by=annotator, now=LATER) == []
        assert session.scalar(select(func.count()).select_from(Lease)) == 2

    def test_my_own_lease_that_ran_out_is_mine_again(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=2)
        mine = annotators.lease(session, campaign, count=2, by=annotator, now=NOW)

        again = annotators.lease(session, campaign, count=2, by=annotator, now=LATER)

        assert [q.id for q in again] == [q.id for q in mine]

    def test_answered_questions_do_not_come_again(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=4)
        queue = questions_of(session, campaign)
        answer(session, campaign, queue[0].id, "no", by=annotator)
        answer(session, campaign, queue[1].id, "yes")

        left = annotators.lease(session, campaign, count=9, by=annotator, now=NOW)

        assert [q.id for q in left] == [q.id for q in queue[2:]]

    @pytest.mark.parametrize("state", ["draft", "paused", "closed"])
    def test_only_open_campaigns_hand_out_questions(self, session: Session, admin: User, state: str) -> None:
        campaign = make_campaign(session, state=state)

        with pytest.raises(CampaignNotOpen):
            annotators.lease(session, campaign, count=1, by=admin, now=NOW)

    def test_campaigns_do_not_mix(self, session: Session, annotator: User) -> None:
        one, other = make_campaign(session, examples=3), make_campaign(session, examples=3)
        held = annotators.lease(session, one, count=3, by=annotator, now=NOW)

        more = annotators.lease(session, other, count=3, by=annotator, now=NOW)

        assert len(more) == 3
        assert not {q.id for q in held} & {q.id for q in more}


class TestConfirmation:
    def test_a_yes_is_asked_of_a_second_person_and_never_of_the_first(self, session: Session) -> None:
        campaign = make_campaign(session, examples=5, confirm_yes=True)
        queue = questions_of(session, campaign)
        first = answer(session, campaign, queue[0].id, "yes")
        second = make_user(session)

        mine = annotators.lease(session, campaign, count=9, by=first, now=NOW)
        annotators.release(session, campaign, by=first, now=NOW)
        theirs = annotators.lease(session, campaign, count=9, by=second, now=NOW)

        assert [q.id for q in mine] == [q.id for q in queue[1:]]
        assert {q.id for q in theirs} == {q.id for q in queue}
        assert [q.id for q in theirs if q.id != queue[0].id] == [q.id for q in queue[1:]]

    def test_a_no_is_not_asked_again(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, confirm_yes=True)
        answer(session, campaign, questions_of(session, campaign)[0].id, "no")

        assert annotators.lease(session, campaign, count=1, by=make_user(session), now=NOW) == []

    def test_a_third_person_decides_and_then_it_is_over(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1, confirm_yes=True)
        question_id = questions_of(session, campaign)[0].id

        for value in ("yes", "no", "no"):
            person = make_user(session)
            leased = annotators.lease(session, campaign, count=1, by=person, now=NOW)
            assert [q.id for q in leased] == [question_id]
            answer(session, campaign, question_id, value, by=person)

        assert annotators.lease(session, campaign, count=1, by=make_user(session), now=NOW) == []


class TestCannotTell:
    def test_goes_to_others_at_the_end_and_never_to_the_same_person(
        self, session: Session, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=3)
        queue = questions_of(session, campaign)
        answer(session, campaign, queue[0].id, "unsure", by=annotator)

        mine = annotators.lease(session, campaign, count=9, by=annotator, now=NOW)
        annotators.release(session, campaign, by=annotator, now=NOW)
        theirs = annotators.lease(session, campaign, count=9, by=make_user(session), now=NOW)

        assert [q.id for q in mine] == [q.id for q in queue[1:]]
        assert [q.id for q in theirs] == [q.id for q in [*queue[1:], queue[0]]]

    def test_of_three_people_ends_the_question(self, session: Session) -> None:
        campaign = make_campaign(session, examples=1)
        question_id = questions_of(session, campaign)[0].id
        for _ in range(3):
            person = make_user(session)
            assert annotators.lease(session, campaign, count=1, by=person, now=NOW)
            answer(session, campaign, question_id, "unsure", by=person)

        assert annotators.lease(session, campaign, count=1, by=make_user(session), now=NOW) == []
        assert service.standing(session, campaign, by=make_user(session)).waiting == 0


class TestRenewAndRelease:
    def test_renewed_leases_hold_longer(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=2)
        annotators.lease(session, campaign, count=2, by=annotator, now=NOW)

        until = annotators.renew(session, campaign, by=annotator, now=NOW + LEASE / 2)

        assert until == NOW + LEASE / 2 + LEASE
        assert annotators.lease(session, campaign, count=2, by=make_user(session), now=LATER) == []

    def test_nothing_held_is_nothing_renewed(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=2)
        annotators.lease(session, campaign, count=1, by=make_user(session), now=NOW)

        assert annotators.renew(session, campaign, by=annotator, now=NOW) is None

    def test_released_questions_are_free_at_once(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=2)
        mine = annotators.lease(session, campaign, count=2, by=annotator, now=NOW)

        annotators.release(session, campaign, by=annotator, now=NOW)

        theirs = annotators.lease(session, campaign, count=2, by=make_user(session), now=NOW)
        assert [q.id for q in theirs] == [q.id for q in mine]

    def test_answered_slots_are_neither_renewed_nor_released(self, session: Session, annotator: User) -> None:
        campaign = make_campaign(session, examples=1)
        answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=annotator)

        annotators.release(session, campaign, by=annotator, now=NOW)

        assert annotators.renew(session, campaign, by=annotator, now=NOW) is None
        assert annotators.lease(session, campaign, count=2, by=make_user(session), now=NOW) == []


class TestWhoMayAnswer:
    @pytest.mark.parametrize("state", ["draft", "paused", "closed"])
    def test_strangers_do_not_find_a_campaign_that_is_not_open(
        self, session: Session, annotator: User, state: str
    ) -> None:
        campaign = make_campaign(session, state=state)

        with pytest.raises(CampaignNotFound):
            service.campaign_to_answer(session, campaign.id, by=annotator)

    @pytest.mark.parametrize("state", ["paused", "closed"])
    def test_whoever_took_part_does(self, session: Session, state: str) -> None:
        campaign = make_campaign(session)
        answered = answer(session, campaign, questions_of(session, campaign)[0].id)
        holding = make_user(session)
        annotators.lease(session, campaign, count=1, by=holding, now=NOW)
        campaign.state = CampaignState(state)
        session.flush()

        for person in (answered, holding):
            assert service.campaign_to_answer(session, campaign.id, by=person) is campaign


class TestStanding:
    def test_of_many_questions_is_counted_again_after_a_second(
        self, session: Session, annotator: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.fast.leasing.FEW", 8)
        campaign = make_campaign(session, examples=10)
        asked = questions_of(session, campaign)
        soon = NOW + LOOK_AGAIN

        def seen(now: datetime) -> tuple[int, int]:
            _, leased = FAST.lease(session, campaign.id, count=1, by=annotator, now=now)
            return leased.standing.answered_by_me, leased.standing.waiting

        found = []
        for number, now in zip(
            (9, 8, 7, 6), (NOW, soon - timedelta(milliseconds=1), soon, soon), strict=True
        ):
            found.append(seen(now))
            answer(session, campaign, asked[number].id, "no")

        assert found == [(0, 10), (0, 10), (0, 8), (0, 7)]  # few are counted each time
        assert service.standing(session, campaign, by=annotator).waiting == 6

    def test_what_is_asked_of_nobody_makes_no_many(
        self, session: Session, annotator: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.fast.leasing.FEW", 8)
        monkeypatch.setattr("app.fast.leasing.never_asked", lambda *_: 2)
        campaign = make_campaign(session, examples=10)
        found = []
        for question in questions_of(session, campaign)[::-1][:2]:
            _, leased = FAST.lease(session, campaign.id, count=1, by=annotator, now=NOW)
            found.append(leased.standing.waiting)
            answer(session, campaign, question.id, "no")

        _, leased = FAST.lease(session, campaign.id, count=1, by=annotator, now=NOW)

        assert [*found, leased.standing.waiting] == [8, 7, 6]
