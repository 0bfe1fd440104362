"""Known pictures cost hardly a question, and what they cost is told: nothing waits for ever as "to do"."""

from datetime import timedelta

import pytest
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import Answer, Lease, Purpose, Question
from app.annotation.service import KnownPicture
from app.campaigns.models import Campaign, CampaignState
from app.quality import service as quality
from tests.app.annotation.test_gold import TEN, fixed_chance, golden
from tests.app.annotation.test_gold_tells import everything
from tests.factories import NOW, answer, asked_again, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects

__all__ = ["fixed_chance"]  # a fixture that every test here uses


@pytest.mark.usefixtures("each_execution")
@pytest.mark.parametrize("one_class", [False, True])
def test_no_question_is_lost_to_known_pictures(session: Session, admin: User, *, one_class: bool) -> None:
    campaign = golden(session, admin, examples=60, per_class=3, gold_share=0.4, gold_bound=0.0)
    people = [make_user(session) for _ in range(3)]

    asked = everything(session, campaign, people, one_class=one_class)

    assert sum(is_known for mine in asked.values() for *_, is_known in mine) > 20
    has_answer = exists().where(Answer.question_id == Question.id)
    never = select(Question.id).where(Question.purpose == Purpose.LABELLING, ~has_answer)
    assert session.scalars(never).all() == []
    assert service.progress(session, campaign, now=NOW).waiting == 0


@pytest.fixture
def campaign(session: Session, admin: User) -> Campaign:
    """Its first picture is a known one."""
    made = make_campaign(session, examples=12, class_names=TEN, confirm_yes=True)
    first = questions_of(session, made)[0]
    service.mark_known(session, made, [KnownPicture(first.example_id, first.candidate_class)], by=admin)
    session.flush()
    return made


def test_what_everybody_met_as_a_known_picture_is_not_told_as_to_do(
    session: Session, campaign: Campaign
) -> None:
    first, *others = drawn_of(session, campaign)
    one, two = make_user(session), make_user(session)
    answer(session, campaign, others[0].id, by=one)
    answer(session, campaign, others[1].id, by=two)
    meet(session, first, one)
    before = service.progress(session, campaign, now=NOW)

    meet(session, first, two)

    found = service.progress(session, campaign, now=NOW)
    assert (before.waiting, before.left_over) == (10, 0)
    assert (found.waiting, found.left_over, found.finished) == (9, 1, 2)
    answer(session, campaign, others[2].id, by=make_user(session), now=NOW + timedelta(hours=1))
    again = service.progress(session, campaign, now=NOW)
    assert (again.waiting, again.left_over) == (9, 0), "somebody new may be asked"
    campaign.state = CampaignState.CLOSED
    session.flush()
    closed = service.progress(session, campaign, now=NOW)
    assert (closed.waiting, closed.left_over, closed.finished) == (0, 0, 3)


def test_a_yes_that_nobody_may_confirm_goes_to_the_review(
    session: Session, campaign: Campaign, admin: User
) -> None:
    first, second, third, *_ = drawn_of(session, campaign)
    one, two = make_user(session), make_user(session)
    answer(session, campaign, first.id, "yes", by=one)
    answer(session, campaign, second.id, "yes", by=one)
    answer(session, campaign, third.id, by=two)
    assert quality.open_questions(session, campaign) == []

    meet(session, first, two)

    [found] = quality.open_questions(session, campaign)
    assert (found.id, found.may_be_asked) == (first.id, False)
    assert asked_again(session, campaign, count=10, by=admin) == 0
    assert service.progress(session, campaign, now=NOW).left_over == 1


def drawn_of(session: Session, campaign: Campaign) -> list[Question]:
    return [one for one in questions_of(session, campaign) if one.purpose is Purpose.LABELLING]


def meet(session: Session, drawn: Question, person: User) -> None:
    """Show somebody the picture of a drawn question as a known one."""
    known = session.scalars(
        select(Question).where(Question.example_id == drawn.example_id, Question.purpose == Purpose.GOLD)
    ).first()
    assert known is not None
    taken = session.scalars(select(Lease.slot).where(Lease.question_id == known.id)).all()
    session.add(Lease(question_id=known.id, slot=len(taken), user_id=person.id, expires_at=None, turn=1))
    session.flush()
