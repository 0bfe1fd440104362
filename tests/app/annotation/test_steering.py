"""Whoever has much to confirm about one class gets that class's block of the turn."""

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Question
from app.annotation.service import PLAIN, Execution
from app.annotation.steering import FEW_HOLDS, FEWEST, MOST_PEOPLE
from app.campaigns.draws import MIN_BLOCK
from app.campaigns.models import Campaign
from app.fast.answering import FAST
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

pytestmark = pytest.mark.dialects

TURN = 3 * MIN_BLOCK  # three classes


@pytest.fixture
def campaign(session: Session) -> Campaign:
    return make_campaign(session, examples=250, confirm_yes=True)


def confirmable(session: Session, campaign: Campaign, class_: int, count: int) -> list[Question]:
    """Somebody answers the first turn, and says yes to so many about one class; gives the queue behind it."""
    somebody = make_user(session)
    queue = questions_of(session, campaign)
    for question in queue[:TURN]:
        is_yes = question.candidate_class == class_ and count > 0
        count -= is_yes
        answer(session, campaign, question.id, "yes" if is_yes else "no", by=somebody)
    return queue[TURN:]


@pytest.mark.parametrize("execution", [PLAIN, FAST], ids=["plain", "fast"])
@pytest.mark.parametrize("one_class", [False, True], ids=["cards", "page"])
def test_much_to_confirm_brings_its_class(
    session: Session, campaign: Campaign, annotator: User, execution: Execution, one_class: bool
) -> None:
    class_ = questions_of(session, campaign)[TURN + 2 * MIN_BLOCK].candidate_class  # the last of the turn
    queue = confirmable(session, campaign, class_, 6)
    block = [question.id for question in queue[:TURN] if question.candidate_class == class_]

    _, leased = execution.lease(session, campaign.id, count=8, one_class=one_class, by=annotator, now=NOW)

    assert {question.candidate_class for question in leased.questions} == {class_}
    firsts = [question.id for question in leased.questions if question.id in block]
    assert firsts == block[: len(firsts)], "of the turn, in its order"
    assert firsts


@pytest.mark.parametrize("execution", [PLAIN, FAST], ids=["plain", "fast"])
@pytest.mark.parametrize("count", [0, FEWEST - 1])
def test_little_to_confirm_leaves_the_queue_as_it_is(
    session: Session, campaign: Campaign, annotator: User, execution: Execution, count: int
) -> None:
    class_ = questions_of(session, campaign)[TURN + 2 * MIN_BLOCK].candidate_class
    queue = confirmable(session, campaign, class_, count)

    _, leased = execution.lease(session, campaign.id, count=8, by=annotator, now=NOW)

    assert [question.id for question in leased.questions] == [question.id for question in queue[:8]]


@pytest.mark.parametrize("execution", [PLAIN, FAST], ids=["plain", "fast"])
def test_whoever_said_yes_is_not_steered(session: Session, campaign: Campaign, execution: Execution) -> None:
    class_ = questions_of(session, campaign)[TURN + 2 * MIN_BLOCK].candidate_class
    somebody = make_user(session)
    queue = questions_of(session, campaign)
    for question in queue[:TURN]:
        value = "yes" if question.candidate_class == class_ else "no"
        answer(session, campaign, question.id, value, by=somebody)

    _, leased = execution.lease(session, campaign.id, count=8, by=somebody, now=NOW)

    assert [question.id for question in leased.questions] == [question.id for question in queue[TURN:][:8]]


@pytest.mark.parametrize("execution", [PLAIN, FAST], ids=["plain", "fast"])
@pytest.mark.parametrize("people", [MOST_PEOPLE, MOST_PEOPLE + 1])
def test_among_many_people_nobody_is_steered(
    session: Session, campaign: Campaign, annotator: User, execution: Execution, people: int
) -> None:
    """What returns goes to the others, and a look at it at each lease would take longer than the lease."""
    class_ = questions_of(session, campaign)[TURN + 2 * MIN_BLOCK].candidate_class
    queue = questions_of(session, campaign)
    crowd = [make_user(session) for _ in range(people)]
    for number, question in enumerate(queue[:TURN]):
        value = "yes" if question.candidate_class == class_ else "no"
        answer(session, campaign, question.id, value, by=crowd[number % people])

    later = NOW + FEW_HOLDS
    _, leased = execution.lease(session, campaign.id, count=8, by=annotator, now=later)

    assert ({question.candidate_class for question in leased.questions} == {class_}) == (
        people == MOST_PEOPLE
    )
