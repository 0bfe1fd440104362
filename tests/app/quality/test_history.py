"""What is known of one example."""

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import AnswerValue
from app.datasets.errors import ExampleNotFound
from app.quality import service as quality
from app.quality.history import EventKind
from tests import annotators
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

HTML = {"accept": "text/html"}


def test_tells_who_answered_took_back_settled_and_holds(session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=1, confirm_yes=True)
    question = questions_of(session, campaign)[0]
    first = answer(session, campaign, question.id, "no", now=NOW)
    annotators.undo(session, campaign, by=first, now=NOW + timedelta(seconds=5))
    answer(session, campaign, question.id, "yes", by=first, now=NOW + timedelta(seconds=9))
    holder = make_user(session)
    annotators.lease(session, campaign, count=1, by=holder, now=NOW + timedelta(seconds=10))

    found = quality.history(session, campaign, question.example_id, by=admin)

    assert [(event.kind, event.by_name, event.value) for event in found.events] == [
        (EventKind.ANSWERED, first.name, AnswerValue.NO),
        (EventKind.TAKEN_BACK, first.name, AnswerValue.NO),
        (EventKind.ANSWERED, first.name, AnswerValue.YES),
        (EventKind.HELD, holder.name, None),
    ]
    assert found.events[-1].at == NOW + timedelta(seconds=10) + service.LEASE


def test_decisions_are_part_of_it(session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=1, confirm_yes=True)
    question = questions_of(session, campaign)[0]
    for value in ("yes", "no", "yes", "no"):
        answer(session, campaign, question.id, value)
    decision = quality.decide(session, campaign, question.id, AnswerValue.NO, by=admin, now=NOW)
    quality.take_back_decision(session, campaign, decision.id, by=admin, now=NOW + timedelta(seconds=1))

    events = quality.history(session, campaign, question.example_id, by=admin).events

    assert [event.kind for event in events[-2:]] == [EventKind.DECIDED, EventKind.DECISION_TAKEN_BACK]


def test_of_another_campaigns_example_there_is_none(session: Session, admin: User) -> None:
    campaign, other = make_campaign(session), make_campaign(session)

    with pytest.raises(ExampleNotFound):
        quality.history(session, campaign, questions_of(session, other)[0].example_id, by=admin)


def test_the_page_and_the_api_show_it_to_admins(
    client: TestClient, annotator_client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session)
    quiet, asked = questions_of(session, campaign)[:2]
    who = answer(session, campaign, asked.id, "unsure")
    session.commit()
    here = f"/campaigns/{campaign.id}/examples"

    page = client.get(f"{here}/{asked.example_id}", headers=HTML).text
    assert who.name in page
    assert "answered “can&#39;t tell”" in page
    assert "Nobody was asked" in client.get(f"{here}/{quiet.example_id}", headers=HTML).text
    read = client.get(f"/api/v1{here}/{asked.example_id}/history").json()
    assert [event["kind"] for event in read["events"]] == ["answered"]
    assert annotator_client.get(f"/api/v1{here}/{asked.example_id}/history").status_code == 403
