"""Answers that nobody can have thought about."""

import random
from collections import Counter
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.haste import Look, ShortestLook, Told, looks
from app.annotation.models import Answer, AnswerValue
from app.campaigns.models import Campaign, Modes
from app.labels import service as labelling
from app.quality import service as quality
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, make_campaign, make_user, questions_of

USUAL = ShortestLook(card=200, page=300, picture=50)
YES, NO = AnswerValue.YES, AnswerValue.NO
LONG_AGO = NOW - timedelta(hours=1)


def told(ms: int | None, pictures: int = 1, *, since: datetime | None = LONG_AGO) -> Told:
    """A look, as the browser tells of it."""
    return Told(ms, pictures, since)


def after(ms: float) -> datetime:
    """So much later."""
    return NOW + timedelta(milliseconds=ms)


class TestPure:
    @pytest.mark.parametrize(
        ("ms", "pictures", "is_hasty"),
        [
            (9, 1, True),
            (199, 1, True),
            (200, 1, False),
            (None, 1, False),  # not known, and the server's clock says nothing against it
            (74, 12, True),  # a page of twelve needs 300 + 12 * 50 = 900 ms, 75 for each
            (75, 12, False),
            (175, 2, True),  # 400 / 2 = 200
        ],
    )
    def test_by_the_browsers_clock(self, ms: int | None, pictures: int, is_hasty: bool) -> None:
        [found], _, _ = looks([told(ms, pictures)], USUAL, until=None, now=NOW)

        assert found == Look(ms, is_hasty)

    @pytest.mark.parametrize("known", ["since", "until"])
    def test_a_request_that_came_much_too_soon_is_hasty_as_a_whole(self, known: str) -> None:
        # Five cards need 1,000 ms; in less than half of it nobody looked at five.
        since, until = (NOW, None) if known == "since" else (LONG_AGO, NOW)
        given = [told(200, since=since)] * 5

        soon, _, _ = looks(given, USUAL, until=until, now=after(499))
        later, _, _ = looks(given, USUAL, until=until, now=after(500))

        assert [look.is_hasty for look in soon] == [True] * 5
        assert [look.is_hasty for look in later] == [False, False, True, True, True]

    def test_looks_lie_one_after_the_other_in_the_time_that_there_was(self) -> None:
        given = [told(900, since=NOW)] * 6

        found, until, _ = looks(given, USUAL, until=None, now=after(3_000))

        assert found == [*[Look(900, is_hasty=False)] * 3, Look(300, is_hasty=False), *[Look(0, True)] * 2]
        assert until == after(3_000)

    def test_what_was_held_for_long_leaves_no_time_for_what_is_held_since_now(self) -> None:
        given = [told(900), *[told(900, since=NOW)] * 3]

        found, until, _ = looks(given, USUAL, until=None, now=after(1_000))

        assert [look.ms for look in found] == [900, 900, 100, 0]
        assert [look.is_hasty for look in found] == [False, False, True, True]
        assert until == after(1_000)

    def test_a_look_that_is_not_told_takes_the_shortest_time(self) -> None:
        found, until, _ = looks([told(None, since=NOW)] * 3, USUAL, until=None, now=after(500))

        assert found == [Look(None, False), Look(None, False), Look(None, True)]
        assert until == after(500)

    def test_time_that_was_used_up_is_not_used_again(self) -> None:
        first, until, _ = looks([told(900, since=NOW)], USUAL, until=None, now=after(1_000))
        second, later, _ = looks([told(900, since=NOW)], USUAL, until=until, now=after(1_050))

        assert (first, second) == ([Look(900, False)], [Look(150, True)])
        assert (until, later) == (after(900), after(1_050))

    def test_a_slip_of_the_finger_uses_up_no_more_time_than_it_took(self) -> None:
        _, until, _ = looks([told(50, since=NOW)], USUAL, until=None, now=after(60))
        [found], _, _ = looks([told(250, since=NOW)], USUAL, until=until, now=after(310))

        assert until == after(50)
        assert found == Look(250, is_hasty=False)

    def test_who_tells_the_truth_is_never_cut_whatever_waits_for_the_network(self) -> None:
        chance = random.Random(7)
        for _ in range(300):
            clock = heard = 0.0  # of the person, and of the server, in ms
            until: datetime | None = None
            waiting: list[Told] = []
            for _ in range(30):
                given_out = chance.uniform(max(0.0, clock - 30_000), clock)
                clock += chance.choice((0, 0, chance.uniform(0, 5_000)))  # a break
                ms = chance.randint(200, 4_000)
                clock += ms
                waiting.append(told(chance.choice((ms, ms, ms, None)), since=after(given_out)))
                if chance.random() < 1 / 3:  # the network is there
                    heard = max(heard, clock + chance.expovariate(1 / 200))
                    found, until, _ = looks(waiting, USUAL, until=until, now=after(heard))
                    assert found == [Look(one.ms, is_hasty=False) for one in waiting]
                    waiting = []

    def test_nothing_is_too_fast_where_nobody_says_so(self) -> None:
        given = [told(700, since=NOW), told(0, 30, since=NOW)]

        found, until, _ = looks(given, ShortestLook(0, 0, 0), until=None, now=NOW)

        assert (found, until) == ([Look(700, False), Look(0, False)], None)


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """One that takes its time."""
    made = make_campaign(session, examples=8, confirm_yes=True, consensus="dawid-skene")
    made.least_card_ms, made.least_page_ms, made.least_picture_ms = 200, 300, 50
    session.flush()
    return made


def give(
    session: Session,
    campaign: Campaign,
    by: User,
    value: AnswerValue,
    *,
    now: datetime,
    looked_ms: int | None = 900,
    after: timedelta = timedelta(seconds=2),
) -> int:
    """Lease one question and answer it; gives which."""
    [question] = annotators.lease(session, campaign, count=1, by=by, now=now)
    answer = service.SubmittedAnswer(question.id, value, looked_ms, uuid4())
    [outcome] = annotators.submit(session, campaign, [answer], by=by, now=now + after)
    assert outcome.status is service.Status.STORED
    return question.id


def hasty_of(session: Session) -> list[bool]:
    return list(session.scalars(select(Answer.is_hasty).order_by(Answer.id)))


@pytest.mark.dialects
class TestACampaign:
    def test_a_hasty_answer_is_kept_and_says_nothing_until_others_did(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        question_id = give(session, campaign, annotator, NO, now=NOW, looked_ms=9)

        assert hasty_of(session) == [True]
        assert list(labelling.labels(session, campaign)) == []
        assert service.progress(session, campaign, now=NOW).finished == 0
        other = make_user(session)
        asked = {give(session, campaign, other, NO, now=NOW + timedelta(minutes=n)) for n in range(8)}
        labels = list(labelling.labels(session, campaign))
        assert question_id in asked
        assert [label.answers for label in labels] == [1] * 8, "each the other's alone"
        assert_sums(session, campaign)

    def test_two_hasty_yes_are_no_confirmation(self, session: Session, campaign: Campaign) -> None:
        for _ in range(2):
            give(session, campaign, make_user(session), YES, now=NOW, after=timedelta(milliseconds=20))

        assert hasty_of(session) == [True, True]
        assert list(labelling.labels(session, campaign)) == []
        assert all(question.is_waiting for question in questions_of(session, campaign))

    def test_who_makes_the_time_up_is_seen_by_the_server(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        leased = annotators.lease(session, campaign, count=5, by=annotator, now=NOW)
        answers = [service.SubmittedAnswer(q.id, NO, 5_000, uuid4()) for q in leased]
        annotators.submit(session, campaign, answers[:4], by=annotator, now=NOW + timedelta(milliseconds=80))
        annotators.submit(session, campaign, answers[4:], by=annotator, now=NOW + timedelta(milliseconds=100))

        assert hasty_of(session) == [True] * 5

    def test_nobody_looks_longer_than_there_was_time(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        leased = annotators.lease(session, campaign, count=8, by=annotator, now=NOW)
        answers = [service.SubmittedAnswer(q.id, NO, 900, uuid4()) for q in leased]
        for place, at in ((0, 1_000), (4, 1_900)):  # two tabs, say
            annotators.submit(session, campaign, answers[place : place + 4], by=annotator, now=after(at))

        times = list(session.scalars(select(Answer.response_ms).order_by(Answer.id)))
        assert times == [900, 100, 0, 0, 900, 0, 0, 0]
        assert hasty_of(session) == [ms < 200 for ms in times if ms is not None]
        people = service.progress(session, campaign, now=NOW)
        assert people.counts.total == 8
        assert_sums(session, campaign)

    def test_taking_back_and_answering_again_uses_up_time_as_well(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        give(session, campaign, annotator, NO, now=NOW, after=timedelta(seconds=1))
        for turn in range(4):
            now = after(1_000 + 10 * turn)
            [(again, _)] = annotators.undo(session, campaign, by=annotator, now=now)
            answer = service.SubmittedAnswer(again.id, NO, 900, uuid4())
            annotators.submit(session, campaign, [answer], by=annotator, now=now)

        assert hasty_of(session) == [False, True, True, True, True]
        assert_sums(session, campaign)

    def test_holding_on_or_coming_back_takes_no_time_away(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        page = annotators.lease(session, campaign, count=8, by=annotator, now=NOW)
        annotators.renew(session, campaign, by=annotator, now=after(2_000))
        answers = [service.SubmittedAnswer(q.id, NO, 250, uuid4()) for q in page]
        annotators.submit(session, campaign, answers[:4], by=annotator, now=after(2_010))
        annotators.release(session, campaign, by=annotator, now=after(2_020))
        back = annotators.lease(session, campaign, count=4, by=annotator, now=after(2_030))

        assert {question.id for question in back} == {answer.question_id for answer in answers[4:]}
        annotators.submit(session, campaign, answers[4:], by=annotator, now=after(2_040))
        assert hasty_of(session) == [False] * 8

    def test_who_gets_what_another_gave_back_begins_anew(self, session: Session, campaign: Campaign) -> None:
        annotators.lease(session, campaign, count=8, by=(first := make_user(session)), now=NOW)
        annotators.release(session, campaign, by=first, now=after(60_000))

        give(session, campaign, make_user(session), NO, now=after(60_010), after=timedelta(milliseconds=90))

        assert hasty_of(session) == [True]

    def test_who_cannot_tell_has_looked_too(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        give(session, campaign, annotator, AnswerValue.UNSURE, now=NOW, looked_ms=9)

        assert hasty_of(session) == [True]

    @pytest.mark.usefixtures("each_execution")
    @pytest.mark.parametrize(("modes", "is_hasty"), [("card", True), ("grid", False), ("both", False)])
    def test_single_cards_are_no_page_where_the_campaign_has_none(
        self, session: Session, annotator: User, *, modes: str, is_hasty: bool
    ) -> None:
        campaign = make_campaign(session, examples=80, class_names=("cat", "dog"))
        campaign.least_card_ms, campaign.least_page_ms, campaign.least_picture_ms = 200, 300, 50
        campaign.modes = Modes(modes)
        session.flush()
        cards = annotators.lease(session, campaign, count=20, by=annotator, now=NOW)
        most = Counter(question.candidate_class for question in cards).most_common(1)[0][0]
        block = [question for question in cards if question.candidate_class == most]
        given = [service.SubmittedAnswer(q.id, NO, 100, uuid4(), page=len(block)) for q in block]

        annotators.submit(session, campaign, given, by=annotator, now=NOW + timedelta(seconds=9))

        assert hasty_of(session) == [is_hasty] * len(block)

    @pytest.mark.parametrize(("together", "is_hasty"), [(1, True), (2, True), (4, False)])
    def test_a_page_has_no_more_pictures_than_come_together(
        self, session: Session, annotator: User, *, together: int, is_hasty: bool
    ) -> None:
        campaign = make_campaign(session, examples=20, class_names=("cat", "dog"))
        campaign.least_card_ms, campaign.least_page_ms, campaign.least_picture_ms = 200, 300, 50
        session.flush()
        page = annotators.lease(session, campaign, count=4, by=annotator, now=NOW, one_class=True)
        assert len({question.candidate_class for question in page}) == 1
        told_ms = 300 // 4 + 50
        given = [service.SubmittedAnswer(q.id, NO, told_ms, uuid4(), page=100) for q in page]

        annotators.submit(session, campaign, given[:together], by=annotator, now=NOW + timedelta(seconds=9))

        assert hasty_of(session) == [is_hasty] * together

    def test_answers_that_waited_for_the_network_are_not_hasty(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        leased = annotators.lease(session, campaign, count=5, by=annotator, now=NOW)
        answers = [service.SubmittedAnswer(q.id, NO, 700, uuid4()) for q in leased]

        annotators.submit(session, campaign, answers, by=annotator, now=NOW + timedelta(minutes=5))

        assert hasty_of(session) == [False] * 5

    def test_undoing_one_leaves_the_sums_as_they_were(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        question_id = give(session, campaign, annotator, YES, now=NOW, looked_ms=9)

        [(again, value)] = annotators.undo(session, campaign, by=annotator, now=NOW + timedelta(seconds=3))

        assert (again.id, value) == (question_id, YES)
        assert service.progress(session, campaign, now=NOW).counts.total == 0
        assert_sums(session, campaign)
        give(session, campaign, annotator, NO, now=NOW + timedelta(seconds=4))
        assert len(list(labelling.labels(session, campaign))) == 1

    def test_programs_that_say_so_may_be_fast(
        self, session: Session, campaign: Campaign, annotator: User
    ) -> None:
        annotator.is_simulated = True

        give(session, campaign, annotator, NO, now=NOW, looked_ms=None, after=timedelta(0))

        assert hasty_of(session) == [False]

    def test_who_gives_many_is_marked_and_comes_first(self, session: Session) -> None:
        campaign = make_campaign(session, examples=60)
        campaign.least_card_ms = 200
        good, quick = make_user(session), make_user(session)
        for n in range(16):
            give(session, campaign, good, NO, now=NOW + timedelta(minutes=n))
        for n in range(12):
            give(session, campaign, quick, NO, now=NOW + timedelta(minutes=n), looked_ms=12)

        first, second = quality.people(session, campaign)

        assert (first.user_id, first.marked_for, first.hasty, first.alone) == (quick.id, "haste", 12, 0)
        assert (second.user_id, second.marked_for, second.hasty, second.alone) == (good.id, None, 0, 16)
