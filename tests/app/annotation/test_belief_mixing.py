"""How confirmations come in a round by a model's belief, where more answers are yes than one in K."""

from datetime import timedelta
from random import Random
from statistics import mean
from uuid import uuid4

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.annotation import service
from app.annotation.belief_mixing import mixture_by_belief
from app.annotation.leasing import answers_to_come
from app.annotation.mixing import mixture
from app.annotation.models import AnswerValue, Question
from app.campaigns.models import Campaign
from tests import annotators
from tests.factories import NOW, make_campaign, make_user

CLASSES = [f"class {number}" for number in range(4)]
QUESTIONS = 500


@pytest.mark.parametrize("expected", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_as_many_return_among_first_questions_as_arise(expected: float) -> None:
    law = mixture_by_belief(expected)

    assert expected < law.returning <= 1
    assert law.answers == pytest.approx(1 + expected + 0.05)


@pytest.mark.usefixtures("each_execution")
def test_no_block_of_confirmations_stands_at_the_end_of_a_round_by_belief(session: Session) -> None:
    campaign = make_round_by_belief(session, 0.6)

    is_second, is_yes = asked_until_the_end(session, campaign, 0.6)

    fifth = len(is_second) // 5
    assert sum(is_second) > 0.8 * 0.6 * QUESTIONS
    assert mean(is_second[-fifth:]) < 0.72  # by the law of uniform questions more than 0.85
    assert mean(is_yes[-fifth:]) < mean(is_yes) + 0.1


def test_people_are_told_as_many_answers_to_come_as_such_a_round_takes(session: Session) -> None:
    campaign = make_round_by_belief(session, 0.6)
    to_come = answers_to_come(campaign)

    is_second, _ = asked_until_the_end(session, campaign, 0.6)

    assert len(is_second) <= to_come < 1.1 * len(is_second)
    campaign.believed_count, campaign.believed_yes = QUESTIONS // 2, 0.6 * QUESTIONS // 2
    uniform = mixture(1 / len(CLASSES)).answers
    assert answers_to_come(campaign) == round(QUESTIONS / 2 * (uniform + 1.65))


def make_round_by_belief(session: Session, expected: float) -> Campaign:
    """A campaign of which each question was drawn by a belief: as many yes are expected."""
    campaign = make_campaign(session, examples=QUESTIONS, class_names=CLASSES, confirm_yes=True)
    session.execute(update(Question).where(Question.campaign_id == campaign.id).values(probability=expected))
    campaign.believed_count, campaign.believed_yes = QUESTIONS, expected * QUESTIONS
    session.commit()
    return campaign


def asked_until_the_end(
    session: Session, campaign: Campaign, expected: float
) -> tuple[list[bool], list[bool]]:
    """Of each answer of three people whether it was a question's second one, and whether it was yes."""
    people = [make_user(session) for _ in range(3)]
    chance, now = Random("turns"), NOW
    asked: set[int] = set()
    is_second, is_yes = [], []
    at_work = set(range(3))
    while at_work:
        person = chance.choice(sorted(at_work))
        now += timedelta(seconds=20)
        held = annotators.lease(session, campaign, count=12, by=people[person], now=now)[:6]
        given = [(one.id, Random(f"truth/{one.rank % QUESTIONS}").random() < expected) for one in held]
        said = [
            service.SubmittedAnswer(id_, AnswerValue.YES if yes else AnswerValue.NO, 900, uuid4())
            for id_, yes in given
        ]
        annotators.submit(session, campaign, said, by=people[person], now=now)
        is_second += [id_ in asked for id_, _ in given]
        is_yes += [yes for _, yes in given]
        asked |= {id_ for id_, _ in given}
        at_work = set(range(3)) if held else at_work - {person}
    return is_second, is_yes
