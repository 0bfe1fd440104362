"""Leases and answers."""

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from tests.factories import NOW, answer, make_campaign, questions_of


def test_held_questions_come_again_first_and_in_the_same_order(session: Session, annotator: User) -> None:
    campaign = make_campaign(session, examples=40)

    first = service.lease_questions(session, campaign, count=3, by=annotator, now=NOW)
    again = service.lease_questions(session, campaign, count=5, by=annotator, now=NOW)

    assert [q.id for q in first] == [q.id for q in questions_of(session, campaign)[:3]]
    assert again[:3] == first
    assert len({q.id for q in again}) == 5

def test_x(session: Session) -> None:
    campaign = make_campaign(session)
    for q in questions_of(session, campaign):
        answer(session, campaign, q.id, "yes")
