"""Whoever does not look is marked, paused, and what they alone said is asked again."""

import random
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.errors import PersonPaused
from app.annotation.models import Participant, PausedFor, Question
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.journal.models import Action, Entry
from app.quality import looking
from app.quality import service as quality
from app.quality.minding import Conduct, alone
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

SOON = NOW + timedelta(minutes=2)


def minded(session: Session, campaign: Campaign) -> None:
    """What the job does once a minute."""
    assert campaign.id in quality.waiting_figures(session, SOON)
    quality.keep_figures(session, quality.precompute(session, campaign, now=SOON), took_s=0.0)
    session.flush()
    session.refresh(campaign, ["classes"])


@pytest.fixture
def idler(session: Session) -> User:
    """Somebody who says no to everything."""
    return make_user(session)


@pytest.fixture
def worked(session: Session, idler: User) -> Campaign:
    """Three who look and one who does not, all of the questions between them."""
    campaign = make_campaign(session, examples=300, confirm_yes=True, consensus="dawid-skene")
    truth = dict(session.execute(select(Example.id, Example.true_class)).all())
    people = [idler, *(make_user(session) for _ in range(3))]
    chance = random.Random(1)
    for question in questions_of(session, campaign):
        chance.shuffle(people)
        first, second = people[:2]
        is_match = truth[question.example_id] == question.candidate_class
        said = ["yes" if is_match and person is not idler else "no" for person in (first, second)]
        answer(session, campaign, question.id, said[0], by=first)
        if said[0] == "yes":
            answer(session, campaign, question.id, said[1], by=second)
    session.refresh(campaign, ["classes"])
    return campaign


def part(session: Session, campaign: Campaign, user: User) -> Participant:
    return session.get_one(Participant, (campaign.id, user.id), populate_existing=True)


@pytest.mark.dialects
class TestTheJob:
    def test_pauses_who_does_not_look_and_asks_again_what_they_alone_said(
        self, session: Session, worked: Campaign, idler: User
    ) -> None:
        before = alone(session, worked, idler.id)
        (first, *others) = quality.people(session, worked)
        assert (first.user_id, first.marked_for, first.alone) == (idler.id, PausedFor.LOOKING, len(before))
        assert {person.marked_for for person in others} == {None}
        assert len(before) > 50

        minded(session, worked)

        found = part(session, worked, idler)
        assert (found.paused_at, found.paused_for, found.asked_again) == (SOON, "looking", len(before))
        assert service.paused_count(session, worked.id) == 1, "nobody else"
        with pytest.raises(PersonPaused):
            annotators.lease(session, worked, count=1, by=idler, now=SOON)
        waiting = set(
            session.scalars(select(Question.id).where(Question.campaign_id == worked.id, Question.is_waiting))
        )
        assert set(before) <= waiting
        assert alone(session, worked, idler.id) == []
        assert_sums(session, worked)
        told = session.scalars(select(Entry).where(Entry.campaign_id == worked.id).order_by(Entry.id)).all()
        assert [entry.action for entry in told[-2:]] == [Action.PERSON_PAUSED, Action.ASKED_AGAIN]
        assert told[-1].details.items() >= {"questions": len(before), "person": idler.name}.items()

    def test_twice_is_once(self, session: Session, worked: Campaign, idler: User) -> None:
        minded(session, worked)
        entries = session.query(Entry).count()

        quality.keep_figures(session, quality.precompute(session, worked, now=SOON), took_s=0.0)

        assert session.query(Entry).count() == entries
        assert part(session, worked, idler).paused_at == SOON

    def test_never_pauses_whom_an_admin_let_go_on(
        self, session: Session, worked: Campaign, idler: User, admin: User
    ) -> None:
        minded(session, worked)
        service.resume_person(session, worked, idler.id, by=admin)

        quality.keep_figures(session, quality.precompute(session, worked, now=SOON), took_s=0.0)

        assert part(session, worked, idler).paused_at is None

    def test_asks_nothing_again_where_the_campaign_says_so(
        self, session: Session, worked: Campaign, idler: User
    ) -> None:
        worked.asks_again = False

        minded(session, worked)

        assert part(session, worked, idler).paused_for is PausedFor.LOOKING
        assert part(session, worked, idler).asked_again is None
        assert alone(session, worked, idler.id)

    def test_asks_again_after_a_pause_by_known_pictures_and_not_after_an_admins(
        self, session: Session, worked: Campaign, idler: User, admin: User
    ) -> None:
        honest = next(
            person.user_id for person in quality.people(session, worked) if person.user_id != idler.id
        )
        service.pause_person(session, worked, honest, by=admin, now=NOW)
        service.pause_unreliable(session, worked, idler.id, why=PausedFor.KNOWN_PICTURES, now=NOW)

        minded(session, worked)

        assert part(session, worked, idler).asked_again
        assert session.get_one(Participant, (worked.id, honest)).asked_again is None
        assert alone(session, worked, honest)


def test_one_person_alone_is_compared_with_nobody(session: Session, idler: User) -> None:
    campaign = make_campaign(session, examples=200)
    for question in questions_of(session, campaign):
        answer(session, campaign, question.id, "no", by=idler)

    minded(session, campaign)

    assert quality.people(session, campaign)[0].marked_for is PausedFor.LOOKING
    assert service.paused_count(session, campaign.id) == 0


def test_the_admin_sees_what_asking_again_costs(
    client: TestClient, session: Session, worked: Campaign, idler: User
) -> None:
    worked.price = 0.5
    count = len(alone(session, worked, idler.id))
    session.commit()
    here = f"/campaigns/{worked.id}/quality"

    def page() -> str:
        return client.get(here, headers={"accept": "text/html"}).text

    assert f"to ask again what stands alone would cost {count} answers, {count * 0.5:.2f}" in page()
    minded(session, worked)
    session.commit()
    assert f"what stood alone is asked again: {count} answers, {count * 0.5:.2f}" in page()
    read = client.get(f"/api/v1{here}").json()
    assert (read["people"][0]["paused_for"], read["people"][0]["asked_again"]) == ("looking", count)
    assert 0 < read["claims"]["wrong_true"] < 0.2


class TestConduct:
    @pytest.mark.parametrize(
        ("conduct", "marked", "paused"),
        [
            (Conduct(400, 0, 20.0), None, None),
            (Conduct(400, 0, looking.MARKED - 0.1), "looking", None),
            (Conduct(400, 0, looking.PAUSED - 0.1), "looking", "looking"),
            (Conduct(looking.FEWEST - 1, 0, -50.0), None, None),  # too few answers to say
            (Conduct(100, 9, 5.0), None, None),
            (Conduct(100, 10, 5.0), "haste", None),
            (Conduct(1000, 30, 5.0), None, None),  # 3 % of all
            (Conduct(100, 30, 5.0), "haste", "haste"),
        ],
    )
    def test_bounds(self, conduct: Conduct, marked: str | None, paused: str | None) -> None:
        assert (conduct.marked_for, conduct.pause_for) == (marked, paused)
