"""Who did what: written with what is done, and never changed."""

from collections.abc import Sequence
from html import unescape
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, select, update
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import AnswerValue
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.journal import service
from app.journal.models import Action, Entry
from app.journal.service import ShownEntry
from app.quality import service as quality
from app.quality.errors import AlreadyDecided
from app.stores.folder import FolderStorage
from tests.factories import NOW, answer, asked_again, make_campaign, make_run, questions_of

pytestmark = pytest.mark.dialects

HTML = {"accept": "text/html"}


def of(session: Session, campaign: Campaign, admin: User) -> Sequence[ShownEntry]:
    """A campaign's lines, oldest first."""
    return service.entries(session, by=admin, campaign_id=campaign.id, limit=100)[::-1]


def test_a_campaigns_life_is_written_down(session: Session, admin: User) -> None:
    draft = make_campaign(session, state="draft")
    details = campaigns.CampaignDetails(name=draft.name, dataset_id=draft.dataset_id, overlap=2)
    campaigns.edit_campaign(session, draft, details, by=admin)
    campaigns.open_campaign(session, draft, by=admin, now=NOW)
    campaigns.open_campaign(session, draft, by=admin, now=NOW)  # asking twice is asking once

    lines = of(session, draft, admin)

    assert [line.action for line in lines] == [
        Action.CAMPAIGN_CREATED,
        Action.CAMPAIGN_CHANGED,
        Action.CAMPAIGN_OPENED,
    ]
    assert lines[1].details["overlap"] == 2
    assert "rounds" not in lines[1].details, "only what changed"
    assert lines[2].by_name == admin.name
    assert draft.seed not in str([line.details for line in lines])


def test_pausing_resuming_closing_and_deleting_are_written_down(session: Session, admin: User) -> None:
    campaign, draft = make_campaign(session), make_campaign(session, state="draft")
    campaigns.pause_campaign(session, campaign, by=admin)
    campaigns.open_campaign(session, campaign, by=admin, now=NOW)
    campaigns.close_campaign(session, campaign, by=admin, now=NOW)
    campaigns.delete_campaign(session, draft, by=admin)

    assert [line.action for line in of(session, campaign, admin)][-3:] == [
        Action.CAMPAIGN_PAUSED,
        Action.CAMPAIGN_RESUMED,
        Action.CAMPAIGN_CLOSED,
    ]
    assert of(session, draft, admin)[-1].action is Action.CAMPAIGN_DELETED
    assert of(session, draft, admin)[-1].details["campaign"] == draft.name


def test_what_is_done_to_people_and_questions_is_written_down(
    session: Session, admin: User, annotator: User
) -> None:
    campaign = make_campaign(session, examples=3, confirm_yes=True)
    first, second, _ = questions_of(session, campaign)
    for value in ("yes", "no", "yes", "no"):
        answer(session, campaign, first.id, value)
    for _ in range(3):
        answer(session, campaign, second.id, "unsure")
    answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=annotator)
    before = len(of(session, campaign, admin))

    decision = quality.decide(session, campaign, first.id, AnswerValue.YES, by=admin, now=NOW)
    with pytest.raises(AlreadyDecided):
        quality.decide(session, campaign, first.id, AnswerValue.NO, by=admin, now=NOW)
    quality.take_back_decision(session, campaign, decision.id, by=admin, now=NOW)
    quality.take_back_decision(session, campaign, decision.id, by=admin, now=NOW)
    asked_again(session, campaign, count=5, by=admin)
    annotation.pause_person(session, campaign, annotator.id, by=admin, now=NOW)
    annotation.resume_person(session, campaign, annotator.id, by=admin)
    annotation.leave_out(session, campaign, annotator.id, by=admin, left_out=True)

    lines = of(session, campaign, admin)[before:]
    assert [line.action for line in lines] == [
        Action.QUESTION_DECIDED,
        Action.DECISION_TAKEN_BACK,
        Action.ASKED_AGAIN,
        Action.PERSON_PAUSED,
        Action.PERSON_RESUMED,
        Action.PERSON_LEFT_OUT,
    ]
    assert lines[0].details == {"campaign": campaign.name, "question": first.id, "decision": "yes"}
    assert lines[3].details["person"] == annotator.name


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_the_database_refuses_to_change_it(session: Session, admin: User, verb: str) -> None:
    service.write(session, Action.RUN_STARTED, by=admin)
    session.flush()
    statement = update(Entry).values(action=Action.RUN_CANCELLED) if verb == "update" else delete(Entry)

    with pytest.raises(DatabaseError, match="only written to"), session.begin_nested():
        session.execute(statement)

    kept = select(Entry.action).where(Entry.action != Action.ACCOUNT_MADE)
    assert session.scalars(kept).all() == [Action.RUN_STARTED]


def test_only_admins_read_it(session: Session, annotator: User) -> None:
    with pytest.raises(NotAllowed):
        service.entries(session, by=annotator, limit=1)


def test_the_api_pages_by_key(client: TestClient, session: Session, admin: User) -> None:
    campaign = make_campaign(session)
    for _ in range(3):
        service.write(session, Action.RUN_STARTED, by=None, campaign_id=campaign.id, details={"run": 1})
    service.write(session, Action.RUN_STARTED, by=admin)
    session.commit()

    first = client.get("/api/v1/journal", params={"campaign_id": str(campaign.id), "limit": 2}).json()
    rest = client.get(
        "/api/v1/journal", params={"campaign_id": str(campaign.id), "limit": 2, "after": first["next"]}
    ).json()

    assert [line["by_name"] for line in first["items"]] == [None, None]
    assert [line["action"] for line in rest["items"]] == ["run-started", "campaign-created"]
    assert rest["next"] is None
    assert client.get("/api/v1/journal").json()["items"][0]["by_name"] == admin.name


def test_the_page_shows_it(client: TestClient, session: Session, admin: User) -> None:
    assert "Nothing yet" in client.get(f"/journal?campaign_id={uuid4()}", headers=HTML).text
    campaign = make_campaign(session, name="Pets <1>")
    campaigns.pause_campaign(session, campaign, by=admin)
    session.commit()

    page = client.get("/journal", headers=HTML).text
    assert "Campaign paused" in page
    assert "Pets &lt;1&gt;" in page
    own = client.get(f"/journal?campaign_id={campaign.id}", headers=HTML).text
    assert "Campaign paused" in own
    assert f"/journal?campaign_id={campaign.id}" in client.get(f"/campaigns/{campaign.id}", headers=HTML).text


def test_details_stand_in_the_words_of_the_pages_and_a_run_is_a_link(
    client: TestClient, session: Session, storage: FolderStorage, admin: User
) -> None:
    campaign, run = make_campaign(session), make_run(session, storage, train=2)
    facts = {
        "confirm_yes": True,
        "gold_share": 0.05,
        "consensus": "dawid-skene",
        "half_width": 0.1,
        "decision": "unusable",
        "method": "clarinet-plus",
        "note": "unsure",
        "person": "pc",
    }
    service.write(session, Action.CAMPAIGN_CHANGED, by=admin, campaign_id=campaign.id, details=facts)
    for number in (run.number, 999_999):
        service.write(session, Action.RUN_CHANGED, by=admin, details={"run": number, "setting": "cc"})
    session.commit()

    page = unescape(client.get("/journal", headers=HTML).text)

    assert (
        "<td>a second person confirms each yes: yes; share of known pictures: 5 %; weight of a label: how "
        "right it probably is; accuracy wanted within: 10 points; decision: cannot be used; "
        "method: CLARINET plus; note: unsure; person: pc</td>"
    ) in page
    assert f'<a href="/runs/{run.id}">run {run.number}</a>; learns from: “no” answers alone</td>' in page
    assert "<td>run: 999999; learns" in page
    told = [item["details"] for item in client.get("/api/v1/journal").json()["items"]]
    assert facts in told  # programs read them as they were written
