"""The time of one person is one, over all their campaigns."""

import random
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.haste import Look, ShortestLook, Told, looks
from app.annotation.models import Answer, AnswerValue, UsedTime
from app.annotation.used_time import MOST, Span, after_using, free_ms, read_spans, with_used, written
from app.campaigns.models import Campaign
from tests import annotators
from tests.factories import NOW, make_campaign, make_user

NO = AnswerValue.NO


def after(ms: float) -> datetime:
    """So much later."""
    return NOW + timedelta(milliseconds=ms)


def span(begin: float, end: float) -> Span:
    """Of these ms after NOW."""
    return after(begin), after(end)


class TestPure:
    def test_what_is_used_up_is_not_free(self) -> None:
        spans = [span(-50, 100), span(300, 400), span(900, 2_000)]

        assert free_ms(spans, NOW, after(1_000)) == 700
        assert free_ms(spans, after(350), after(380)) == 0
        assert after_using(spans, NOW, 150) == after(250)
        assert after_using(spans, NOW, 250) == after(450)
        assert after_using(spans, after(950), 10) == after(2_010)

    def test_spans_that_meet_become_one_and_old_ones_go(self) -> None:
        day_ms = 24 * 3_600_000
        spans = with_used([span(-day_ms - 9, -day_ms - 1), span(0, 10)], [span(20, 30), span(10, 20)], NOW)

        assert spans == [span(0, 30)]
        assert read_spans(written(spans)) == spans
        assert read_spans(None) == read_spans(written([])) == []

    def test_of_too_many_the_closest_become_one(self) -> None:
        spans = [span(100 * n, 100 * n + 50) for n in range(MOST)]

        assert with_used(spans, [span(10_060, 10_070), span(10_075, 10_080)], after(20_000))[-1] == span(
            10_060, 10_080
        )
        assert len(with_used(spans, [span(10_060, 10_070), span(10_075, 10_080)], after(20_000))) == MOST

    def test_who_tells_the_truth_in_several_campaigns_is_never_cut(self) -> None:
        """In whichever order what waited for the network comes."""
        chance, usual = random.Random(11), ShortestLook(card=200, page=300, picture=50)
        for _ in range(200):
            clock = heard = 0.0
            until: dict[int, datetime | None] = {}
            used: list[Span] = []
            waiting: dict[int, list[Told]] = {0: [], 1: [], 2: []}
            for _ in range(40):
                campaign = chance.randrange(3)
                given_out = chance.uniform(max(0.0, clock - 30_000), clock)
                clock += chance.choice((0, 0, chance.uniform(0, 5_000)))  # a break
                ms = chance.randint(200, 4_000)
                clock += ms
                waiting[campaign].append(Told(ms, 1, after(given_out)))
                if chance.random() < 1 / 3:  # one of them has the network
                    heard = max(heard, clock + chance.expovariate(1 / 200))
                    sent = chance.randrange(3)
                    told, waiting[sent] = waiting[sent], []
                    now = after(heard)
                    found, until[sent], more = looks(told, usual, until=until.get(sent), now=now, used=used)
                    assert found == [Look(one.ms, is_hasty=False) for one in told]
                    used = with_used(used, more, now)


@pytest.fixture
def campaigns(session: Session) -> list[Campaign]:
    """Three that take their time."""
    made = [make_campaign(session, examples=8) for _ in range(3)]
    for campaign in made:
        campaign.least_card_ms = 1_000
    session.flush()
    return made


def give(session: Session, campaign: Campaign, ids: list[int], *, by: User, now: datetime) -> None:
    """A second's look at each."""
    answers = [service.SubmittedAnswer(id_, NO, 1_000, uuid4()) for id_ in ids]
    annotators.submit(session, campaign, answers, by=by, now=now)


def hasty(session: Session, by: User) -> list[bool]:
    rows = select(Answer.is_hasty).where(Answer.user_id == by.id).order_by(Answer.id)
    return list(session.scalars(rows))


@pytest.mark.dialects
@pytest.mark.usefixtures("each_execution")
class TestCampaigns:
    def test_nobody_looks_at_the_cards_of_three_at_once(
        self, session: Session, campaigns: list[Campaign], annotator: User
    ) -> None:
        held = [
            [item.id for item in annotators.lease(session, campaign, count=8, by=annotator, now=NOW)]
            for campaign in campaigns
        ]
        for campaign, ids in zip(campaigns, held, strict=True):
            give(session, campaign, ids, by=annotator, now=after(8_300))

        assert hasty(session, annotator) == [False] * 8 + [True] * 16
        assert len(session.scalars(select(UsedTime.user_id)).all()) == 1

    def test_what_waited_for_the_network_finds_its_time(
        self, session: Session, campaigns: list[Campaign], annotator: User
    ) -> None:
        first, second, _ = campaigns
        waiting = [item.id for item in annotators.lease(session, first, count=8, by=annotator, now=NOW)]
        now = after(9_000)  # eight seconds of which went into what waits
        sent = [item.id for item in annotators.lease(session, second, count=8, by=annotator, now=now)]
        give(session, second, sent, by=annotator, now=after(17_100))
        give(session, first, waiting, by=annotator, now=after(17_200))

        assert hasty(session, annotator) == [False] * 16

    def test_the_time_of_others_is_theirs(
        self, session: Session, campaigns: list[Campaign], annotator: User
    ) -> None:
        people = [annotator, make_user(session)]
        for person, campaign in zip(people, campaigns, strict=False):
            held = [item.id for item in annotators.lease(session, campaign, count=8, by=person, now=NOW)]
            give(session, campaign, held, by=person, now=after(8_300))

        assert [hasty(session, person) for person in people] == [[False] * 8] * 2
