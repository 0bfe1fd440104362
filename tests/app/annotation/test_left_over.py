"""Questions that are left over are counted anew in small campaigns, and seldom in large ones."""

import random
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import left_to_ask, service
from app.annotation.left_to_ask import (
    HOLDS,
    SAME_HOLDS,
    count_left_over,
    is_asked_of_all,
    left_over,
    people_at_work,
)
from app.annotation.models import AnswerValue, Question
from app.annotation.service import KnownPicture
from app.campaigns.confirming import Confirming
from app.campaigns.models import Campaign, PricePer
from app.labels.deriving import derive
from app.quality import service as quality
from tests import annotators
from tests.app.annotation.test_gold_sparing import drawn_of, meet
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects


@pytest.fixture
def campaign(session: Session, admin: User) -> Iterator[Campaign]:
    """Its first two pictures are known ones; somebody has met the first and answered another question."""
    left_to_ask._COUNTED.clear()
    made = make_campaign(session, examples=12)
    known = [KnownPicture(one.example_id, one.candidate_class) for one in questions_of(session, made)[:2]]
    service.mark_known(session, made, known, by=admin)
    session.flush()
    one = make_user(session)
    first, _, third, *_ = drawn_of(session, made)
    answer(session, made, third.id, by=one)
    meet(session, first, one)
    yield made
    left_to_ask._COUNTED.clear()


def counted(session: Session, campaign: Campaign, *, answers: int = 1, seconds: float = 0) -> int:
    return left_over(session, campaign, answers=answers, now=NOW + timedelta(seconds=seconds))


def second(session: Session, campaign: Campaign) -> Question:
    return drawn_of(session, campaign)[1]


def test_a_small_campaign_is_counted_each_time(session: Session, campaign: Campaign) -> None:
    before = counted(session, campaign)
    [at_work] = left_to_ask.people_at_work(session, campaign.id)
    meet(session, second(session, campaign), session.get_one(User, at_work))

    assert (before, counted(session, campaign)) == (1, 2)


def test_a_large_one_is_counted_again_after_a_while_or_when_somebody_comes(
    session: Session, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_to_ask, "LARGE", 10)
    [at_work] = left_to_ask.people_at_work(session, campaign.id)
    before = counted(session, campaign)
    meet(session, second(session, campaign), session.get_one(User, at_work))
    holds, same = HOLDS.total_seconds(), SAME_HOLDS.total_seconds()

    assert before == 1
    assert counted(session, campaign, answers=2, seconds=holds - 1) == 1
    assert counted(session, campaign, answers=1, seconds=same - 1) == 1, "nobody answered"
    assert counted(session, campaign, answers=2, seconds=holds) == 2

    answer(session, campaign, drawn_of(session, campaign)[3].id, by=make_user(session))
    assert counted(session, campaign, answers=3, seconds=holds + 1) == 0, "somebody new may be asked"


@pytest.mark.parametrize("classes", [("cat", "dog"), ("cat", "dog", "owl")])
def test_what_all_at_work_differ_about_is_left_to_the_review(
    session: Session, monkeypatch: pytest.MonkeyPatch, classes: tuple[str, ...]
) -> None:
    """Three people, and a fourth is needed: nothing is to do, and the review has it."""
    monkeypatch.setattr(Confirming, "lead", lambda *_: 2)  # of two classes the first question is of those
    campaign = make_campaign(session, examples=3, class_names=classes, confirm_yes=True)
    campaign.price, campaign.price_per = 1.0, PricePer.ANSWER
    first, *others = questions_of(session, campaign)
    people = [make_user(session) for _ in range(3)]
    for person, value in zip(people, ("yes", "no", "yes"), strict=True):
        answer(session, campaign, first.id, value, by=person)
    session.refresh(first)
    assert first.is_waiting
    for person in people[:2]:
        for other in others:
            session.refresh(other)
            if other.is_waiting:
                answer(session, campaign, other.id, "no", by=person)

    found = service.progress(session, campaign, now=NOW)

    assert (found.finished, found.waiting, found.left_over) == (2, 0, 1)
    assert found.to_go == 0
    assert found.cost is not None
    assert found.cost.to_go == 0
    assert derive(session, campaign.id).is_unfinished, "its weights make up for what is left over"
    in_review = [(one.id, one.may_be_asked) for one in quality.open_questions(session, campaign)]
    # Between two classes the majority of three is a label; else nothing follows yet.
    assert in_review == ([] if len(classes) == 2 else [(first.id, False)])


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_to_tell_what_is_left_over_agree(session: Session, seed: int) -> None:
    """Of small campaigns in which people of chance say things of chance, some without a look."""
    chance = random.Random(seed)
    campaign = make_campaign(
        session,
        examples=4,
        class_names=("cat", "dog", "owl")[: chance.choice((2, 3))],
        confirm_yes=chance.random() < 1 / 2,
        overlap=chance.choice((1, 1, 2)),
    )
    campaign.least_card_ms = 200
    session.flush()
    people = [make_user(session) for _ in range(chance.randint(1, 4))]
    for now in (NOW + timedelta(minutes=minute) for minute in range(5 * len(people))):
        person = chance.choice(people)
        held = annotators.lease(session, campaign, count=1, by=person, now=now)
        value = AnswerValue(chance.choice(("yes", "no", "no", "unsure", "unusable")))
        given = [
            service.SubmittedAnswer(one.id, value, chance.choice((10, 10, 900)), uuid4()) for one in held
        ]
        annotators.submit(session, campaign, given, by=person, now=now + timedelta(seconds=2))
        session.expire_all()

        at_work = people_at_work(session, campaign.id)
        by_question = select(Question.id).where(
            Question.campaign_id == campaign.id, Question.is_waiting, is_asked_of_all(Question.id, at_work)
        )
        if at_work:
            assert count_left_over(session, campaign, at_work) == len(session.scalars(by_question).all())


def test_what_everybody_answered_without_a_look_is_left_over(session: Session) -> None:
    campaign = make_campaign(session, examples=2)
    campaign.least_card_ms = 200
    session.flush()
    for _ in range(3):
        person = make_user(session)
        for question in questions_of(session, campaign):
            answer(session, campaign, question.id, by=person, response_ms=10)

    found = service.progress(session, campaign, now=NOW)

    assert (found.waiting, found.left_over) == (0, 2)


def test_what_one_of_two_at_work_could_not_tell_waits_for_the_other(
    client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session, examples=2)
    first, second_one = questions_of(session, campaign)
    one = answer(session, campaign, first.id, "unsure")
    two = answer(session, campaign, second_one.id)
    before = service.progress(session, campaign, now=NOW)

    answer(session, campaign, first.id, "unsure", by=two)

    found = service.progress(session, campaign, now=NOW)
    assert one != two
    assert (before.waiting, before.left_over) == (1, 0)
    assert (found.waiting, found.left_over) == (0, 1)
    session.commit()
    page = client.get(f"/campaigns/{campaign.id}", headers={"accept": "text/html"}).text
    told = page[page.index("1 more question can be asked of nobody at work") :][:400]
    assert f"/campaigns/{campaign.id}/review" in told
    assert "Answer questions" in page, "who looks may be somebody new"
