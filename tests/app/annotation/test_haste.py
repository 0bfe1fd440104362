"""Answers that nobody can have thought about."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.haste import ShortestLook, hasty
from app.annotation.models import Answer, AnswerValue
from app.campaigns.models import Campaign
from app.labels import service as labelling
from app.quality import service as quality
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, make_campaign, make_user, questions_of

USUAL = ShortestLook(card=200, page=300, picture=50)
YES, NO = AnswerValue.YES, AnswerValue.NO
LONG_AGO = NOW - timedelta(hours=1)


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
        assert hasty([(ms, pictures)], USUAL, since=LONG_AGO, now=NOW) == [is_hasty]

    @pytest.mark.parametrize(("passed_ms", "is_hasty"), [(499, True), (500, False)])
    def test_by_the_servers_clock_whatever_the_browser_says(self, passed_ms: int, is_hasty: bool) -> None:
        # Five cards need 1,000 ms; in less than half of it nobody looked at five.
        since = NOW - timedelta(milliseconds=passed_ms)

        assert hasty([(60_000, 1), (None, 1)] * 2 + [(900, 1)], USUAL, since=since, now=NOW) == [is_hasty] * 5

    def test_nothing_is_too_fast_where_nobody_says_so(self) -> None:
        assert hasty([(0, 1), (0, 30)], ShortestLook(0, 0, 0), since=NOW, now=NOW) == [False, False]


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
