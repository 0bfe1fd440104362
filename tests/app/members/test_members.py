"""Members of campaigns: who is none finds nothing of it, by any route."""

from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Scope, User
from app.annotation.models import Answer, Lease, Question
from app.annotation.public_ids import public_ids_of
from app.campaigns.models import Admits, Campaign
from app.clock import utc_now
from app.main import create_app
from app.members import service
from app.members.errors import GroupNameTaken, NoMember
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests import annotators, factories
from tests.factories import NOW, make_campaign, make_dataset, make_token, make_user, questions_of

API = "/api/v1"


@pytest.fixture
def campaign(session: Session, storage: FolderStorage, admin: User) -> Campaign:
    """An open campaign with real images, for invited people."""
    campaign = make_campaign(session, dataset=make_dataset(session, storage, by=admin))
    service.set_admission(session, campaign, Admits.INVITED, by=admin, now=NOW)
    session.commit()
    return campaign


def requests_of(client: TestClient, campaign: Campaign, campaign_id: object = "") -> dict[str, Response]:
    """All that an annotator can ask of a campaign, or of the one with this id."""
    here = f"{API}/campaigns/{campaign_id or campaign.id}"
    page = f"/campaigns/{campaign_id or campaign.id}"
    given = {"question_id": 1, "value": "no", "response_ms": 700, "key": str(uuid4())}
    html = {"Accept": "text/html"}
    return {
        "read": client.get(here),
        "after": client.get(f"{API}/campaigns", params={"after": str(campaign_id or campaign.id)}),
        "questions": client.post(f"{here}/questions", json={"count": 1}),
        "page": client.post(f"{here}/questions", json={"count": 1, "one_class": True}),
        "answers": client.post(f"{here}/answers", json={"answers": [given]}),
        "next": client.post(f"{here}/answers", json={"answers": [given], "next": {"count": 1}}),
        "undo": client.post(f"{here}/undo", json={}),
        "renew": client.post(f"{here}/leases/renew", json={}),
        "release": client.post(f"{here}/leases/release", json={}),
        "audit": client.get(f"{here}/audit"),
        "audit page": client.get(f"{page}/audit", headers=html),
        "screen": client.get(f"/annotate/{campaign_id or campaign.id}", headers=html),
        "my answers": client.get(f"{here}/my-answers"),
        "my figures": client.get(f"{here}/my-figures"),
        "change": client.post(
            f"{here}/my-answers", json={"question_id": 1, "value": "no", "key": str(uuid4())}
        ),
        "practised": client.post(f"{here}/practised", json={}),
        "last answers": client.get(f"/annotate/{campaign_id or campaign.id}/answers", headers=html),
        "code": client.get(f"/annotate/{campaign_id or campaign.id}/code", headers=html),
    }


def image_of(client: TestClient, session: Session, campaign: Campaign, **headers: str) -> Response:
    """The first image that it asks about."""
    first = questions_of(session, campaign)[0]
    return client.get(picture_of(session, first), headers=headers or None)


def picture_of(session: Session, question: Question) -> str:
    """Its address, as annotators are told."""
    ids = public_ids_of(session, question.campaign_id)
    return f"{API}/campaigns/{question.campaign_id}/pictures/{ids.picture(question.example_id)}"


@pytest.mark.parametrize("execution", ["fast", "plain"])
def test_who_is_no_member_is_told_what_an_unknown_id_is_told(
    *,
    execution: str,
    app: FastAPI,
    settings: Settings,
    session: Session,
    annotator: User,
    campaign: Campaign,
) -> None:
    if execution == "plain":
        app = create_app(settings, database=app.state.database, publish=app.state.publish, answering="plain")
    headers = {"Authorization": f"Bearer {make_token(session, annotator)}"}
    client = TestClient(app, headers=headers, follow_redirects=False)

    hidden, unknown = requests_of(client, campaign), requests_of(client, campaign, uuid4())

    for name, answer in hidden.items():
        assert answer.status_code == unknown[name].status_code == 404, name
        if "json" in answer.headers["content-type"]:
            same = ("type", "title", "detail")
            assert [answer.json()[key] for key in same] == [unknown[name].json()[key] for key in same], name
        else:
            assert campaign.name not in answer.text
    assert client.get(f"{API}/campaigns").json()["items"] == []
    assert campaign.name not in client.get("/annotate", headers={"Accept": "text/html"}).text
    assert image_of(client, session, campaign).status_code == 404
    assert image_of(client, session, campaign, **{"If-None-Match": "*"}).status_code == 404
    assert session.scalar(select(func.count()).select_from(Lease)) == 0


@pytest.mark.parametrize("how", ["person", "group"])
def test_a_member_by_name_or_by_group_answers_until_they_are_removed(
    *,
    how: str,
    annotator_client: TestClient,
    client: TestClient,
    session: Session,
    annotator: User,
    campaign: Campaign,
) -> None:
    members = f"{API}/campaigns/{campaign.id}/members"
    if how == "group":
        group = client.post(f"{API}/groups", json={"name": "Class 4b"}).json()["id"]
        assert client.put(f"{API}/groups/{group}/people/{annotator.id}").status_code == 204
        path = f"{members}/groups/{group}"
    else:
        path = f"{members}/people/{annotator.id}"
    assert client.put(path).status_code == client.put(path).status_code == 204
    leased = annotator_client.post(f"{API}/campaigns/{campaign.id}/questions", json={"count": 2}).json()
    given = [
        {"question_id": item["id"], "value": "no", "response_ms": 700, "key": str(uuid4())}
        for item in leased["questions"]
    ]
    answers = f"{API}/campaigns/{campaign.id}/answers"
    first = annotator_client.post(answers, json={"answers": given[:1]})
    assert first.json()["results"][0]["status"] == "stored"
    assert image_of(annotator_client, session, campaign).status_code == 200

    assert client.delete(path).status_code == client.delete(path).status_code == 204

    late = annotator_client.post(answers, json={"answers": given[1:]})
    assert (late.status_code, late.json()["type"]) == (404, "/problems/campaign-not-found")
    assert "not open to you" in late.json()["detail"]
    assert {answer.status_code for answer in requests_of(annotator_client, campaign).values()} == {404}
    assert image_of(annotator_client, session, campaign).status_code == 404
    live = select(func.count()).select_from(Lease).where(Lease.expires_at > utc_now())
    assert session.scalar(live) == 0
    assert session.scalar(select(func.count()).select_from(Answer)) == 1


def test_taking_somebody_out_of_a_group_and_deleting_it_ends_what_they_hold(
    session: Session, admin: User, campaign: Campaign, annotator_client: TestClient, annotator: User
) -> None:
    lease = f"{API}/campaigns/{campaign.id}/questions"
    group = service.make_group(session, "Class 4b", by=admin, now=NOW)
    service.add_group(session, campaign, group.id, by=admin)
    for end in ("removed", "deleted"):
        service.add_person(session, group.id, annotator.id, by=admin)
        session.commit()
        assert annotator_client.post(lease, json={"count": 1}).status_code == 200
        if end == "removed":
            service.remove_person(session, group.id, annotator.id, by=admin, now=utc_now())
        else:
            service.delete_group(session, group.id, by=admin, now=utc_now())
        session.commit()

        assert annotator_client.post(lease, json={"count": 1}).status_code == 404
        live = select(func.count()).select_from(Lease).where(Lease.expires_at > utc_now())
        assert session.scalar(live) == 0


def test_closing_a_campaign_to_others_ends_what_they_hold_and_members_keep_theirs(
    session: Session, admin: User, client: TestClient, annotator_client: TestClient
) -> None:
    campaign = make_campaign(session)
    member = make_user(session)
    session.commit()
    other = TestClient(client.app, headers={"Authorization": f"Bearer {make_token(session, member)}"})
    lease = f"{API}/campaigns/{campaign.id}/questions"
    for each in (annotator_client, other):
        assert each.post(lease, json={"count": 2}).status_code == 200
    service.add_member(session, campaign, member.id, by=admin)
    session.commit()

    told = client.put(f"{API}/campaigns/{campaign.id}/members", json={"admits": "invited"}).json()

    assert (told["admits"], [person["name"] for person in told["people"]]) == ("invited", [member.name])
    held = select(Lease.user_id).where(Lease.expires_at > utc_now()).distinct()
    assert session.scalars(held).all() == [member.id]
    assert annotator_client.post(lease, json={"count": 1}).status_code == 404
    assert other.post(lease, json={"count": 1}).status_code == 200


def test_images_are_served_while_a_campaign_over_them_is_open(
    session: Session, storage: FolderStorage, admin: User, annotator_client: TestClient, client: TestClient
) -> None:
    dataset = make_dataset(session, storage, by=admin)
    campaign = make_campaign(session, dataset=dataset)
    reviewer = make_user(session, role="reviewer")
    session.commit()
    reviewing = TestClient(client.app, headers={"Authorization": f"Bearer {make_token(session, reviewer)}"})
    found = {}
    for state in ("draft", "open", "paused", "closed"):
        campaign.state = type(campaign.state)(state)
        session.commit()
        found[state] = [
            image_of(each, session, campaign).status_code for each in (annotator_client, reviewing, client)
        ]

    assert found == {
        "draft": [404, 404, 200],
        "open": [200, 200, 200],
        "paused": [404, 200, 200],
        "closed": [404, 200, 200],
    }


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_members_see_what_they_answered_about_when_no_campaign_is_open_and_nobody_else_does(
    *,
    state: str,
    annotator_client: TestClient,
    session: Session,
    annotator: User,
    admin: User,
    campaign: Campaign,
) -> None:
    service.add_member(session, campaign, annotator.id, by=admin)
    first, second, third = questions_of(session, campaign)[:3]
    factories.answer(session, campaign, first.id, by=annotator)
    factories.answer(session, campaign, second.id, by=admin)
    factories.answer(session, campaign, third.id, by=annotator)
    annotators.undo(session, campaign, by=annotator, now=NOW)
    campaign.state = type(campaign.state)(state)
    session.commit()
    listed = annotator_client.get(f"{API}/campaigns/{campaign.id}/my-answers").json()["items"]
    others = [picture_of(session, item) for item in (second, third)]

    assert [annotator_client.get(item["image_url"]).status_code for item in listed] == [200]
    assert [annotator_client.get(address).status_code for address in others] == [404, 404]

    service.remove_member(session, campaign, annotator.id, by=admin, now=NOW)
    session.commit()
    assert annotator_client.get(listed[0]["image_url"]).status_code == 404


def test_an_admins_token_that_may_only_annotate_is_no_member(
    app: FastAPI, session: Session, admin: User, campaign: Campaign
) -> None:
    _, secret = accounts.create_token(session, admin, "t", now=utc_now(), scope=Scope.ANNOTATE)
    session.commit()
    client = TestClient(app, headers={"Authorization": f"Bearer {secret}"})

    assert client.get(f"{API}/campaigns/{campaign.id}").status_code == 404
    assert image_of(client, session, campaign).status_code == 404


def test_groups_are_named_once_and_take_nobody_who_cannot_answer(session: Session, admin: User) -> None:
    group = service.make_group(session, "Class 4b", by=admin, now=NOW)
    for same in ("Class 4b", " class  4B", "CLASS 4b"):
        with pytest.raises(GroupNameTaken, match="'Class 4b'"):
            service.make_group(session, same, by=admin, now=NOW)
    gone = make_user(session)
    accounts.set_disabled(session, gone.id, disabled=True, by=admin, now=NOW)

    with pytest.raises(NoMember):
        service.add_person(session, group.id, gone.id, by=admin)
    assert [(item.name, item.people) for item in service.list_groups(session, by=admin)] == [("Class 4b", 0)]


def test_the_pages_add_and_remove(client: TestClient, session: Session, campaign: Campaign) -> None:
    person = make_user(session)
    session.commit()
    page, html = f"/campaigns/{campaign.id}/members", {"Accept": "text/html"}
    made = client.post("/groups", data={"name": "Class <b>"})
    group = made.headers["location"].rpartition("/")[2]
    assert client.post("/groups", data={"name": "Class <b>"}).status_code == 422
    assert client.post(f"/groups/{group}", data={"act": "add", "id": str(person.id)}).status_code == 303

    for act, who in (("add-person", person.id), ("add-group", group)):
        assert client.post(page, data={"act": act, "id": str(who)}).status_code == 303
    shown = client.get(page, headers=html).text
    assert f"/people/{person.id}" in shown
    assert "Class &lt;b&gt;" in shown
    told = client.get(f"/groups/{group}", headers=html).text
    assert "Class &lt;b&gt;" in told
    assert f'/campaigns/{campaign.id}/members">{campaign.name}</a>' in told  # what its people would lose
    used = client.get(f"{API}/groups/{group}").json()["campaigns"]
    assert used == [{"id": str(campaign.id), "name": campaign.name}]

    for act, who in (("remove-person", person.id), ("remove-group", group)):
        assert client.post(page, data={"act": act, "id": str(who)}).status_code == 303
    assert "Nobody by name" in client.get(page, headers=html).text
    assert client.post(page, data={"act": "admit", "admits": "everybody"}).status_code == 303
    session.refresh(campaign)
    assert campaign.admits is Admits.EVERYBODY
    assert client.post(f"/groups/{group}", data={"act": "delete"}).status_code == 303
    assert client.get(f"/groups/{group}", headers=html).status_code == 404
