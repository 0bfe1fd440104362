"""Outside workers: a link, an id, an account of one campaign, a code."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import limits
from app.accounts import service as accounts
from app.accounts.errors import AccountOfWorker, NotAllowed
from app.accounts.limits import Limit
from app.accounts.models import Role, User
from app.annotation.models import Answer
from app.campaigns.models import Campaign, CampaignState
from app.clock import utc_now
from app.main import create_app
from app.members import service, workers
from app.members.errors import NoMember
from app.members.models import OutsideWorker, WorkerLink
from app.settings import Settings
from tests.app.members.joining import API, HTML, WORKER, answer, begin, people, token_of
from tests.factories import NOW, PASSWORD, make_campaign, make_user


@pytest.mark.parametrize("parameter", ["PROLIFIC_PID", "workerId", "worker_id"])
def test_opening_the_link_makes_nothing_and_shows_the_id(
    parameter: str, browser: TestClient, session: Session, link: str
) -> None:
    before = people(session)
    more = "&STUDY_ID=s&SESSION_ID=t&assignmentId=a&hitId=h&turkSubmitTo=https%3A%2F%2Fexample.org"

    shown = browser.get(f"{link}?{parameter}={WORKER}{more}", headers=HTML)
    head = browser.head(f"{link}?{parameter}={WORKER}", headers=HTML)

    assert (shown.status_code, head.status_code) == (200, 200)
    assert f'value="{WORKER}"' in shown.text
    assert people(session) == before
    assert "clarinet" not in shown.cookies
    assert 'value="{{' not in browser.get(f"{link}?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}", headers=HTML).text


def test_a_worker_answers_in_one_campaign_and_gets_the_code(
    browser: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    other = make_campaign(session)
    session.commit()

    began = begin(browser, link)

    assert (began.status_code, began.headers["location"]) == (303, f"/annotate/{campaign.id}")
    shown = browser.get("/annotate", headers=HTML).text
    assert campaign.name in shown
    assert other.name not in shown
    assert browser.get(f"{API}/campaigns/{other.id}").status_code == 404
    code = f"/annotate/{campaign.id}/code"
    answer(browser, campaign, 1)
    assert "1 of 2 answers" in browser.get(code, headers=HTML).text
    assert "C1ABCD" not in browser.get(code, headers=HTML).text
    answer(browser, campaign, 1)
    assert "C1ABCD" in browser.get(code, headers=HTML).text
    assert "C1ABCD" in browser.get(code, headers=HTML | {"HX-Request": "true"}).text


def test_answers_without_a_look_earn_no_code(
    browser: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    campaign.least_card_ms = 500
    session.commit()
    begin(browser, link)

    answer(browser, campaign, 3, response_ms=1)

    assert session.scalar(select(func.count()).select_from(Answer).where(Answer.is_hasty)) == 3
    assert "0 of 2 answers" in browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text


@pytest.mark.parametrize(
    ("host", "is_chosen", "begins"),
    [
        ("localhost:8123", False, "http://localhost:8123/"),
        ("evil.example:8123", False, "http://127.0.0.1:8000/"),
        ("localhost:8123", True, "https://clarinet.example.org/"),
    ],
)
def test_links_lead_to_where_people_come(
    *,
    host: str,
    is_chosen: bool,
    begins: str,
    app: FastAPI,
    settings: Settings,
    client: TestClient,
    campaign: Campaign,
) -> None:
    if is_chosen:
        settings = settings.model_copy(update={"public_url": "https://clarinet.example.org"})
        app = create_app(settings, database=app.state.database, publish=app.state.publish)
    office = TestClient(app, base_url=f"http://{host}", headers=dict(client.headers))

    worker = office.post(
        f"{API}/campaigns/{campaign.id}/workers", json={"answers_needed": 2, "max_workers": 2}
    ).json()["url"]
    invitation = office.post(f"{API}/invitations", json={"role": "annotator"}).json()["url"]

    assert worker.startswith(f"{begins}join/")
    assert invitation.startswith(f"{begins}invitations/")


@pytest.mark.parametrize("change", ["demoted", "disabled", "by a rule"])
def test_a_link_ends_for_good_with_who_made_it(
    browser: TestClient, session: Session, link: str, admin: User, change: str
) -> None:
    other, now = make_user(session, role="admin"), utc_now()
    begin(browser, link, "W1")

    def turn(role: Role, *, disabled: bool) -> None:
        if change == "disabled":
            accounts.set_disabled(session, admin.id, disabled=disabled, by=other, now=now)
        else:
            by = None if change == "by a rule" else other
            accounts.set_role(session, admin.id, role, by=by, now=now, because="" if by else "a rule")
        session.commit()

    turn(Role.REVIEWER, disabled=True)
    assert browser.get(link, headers=HTML).status_code == 404
    turn(Role.ADMIN, disabled=False)
    assert browser.get(link, headers=HTML).status_code == 404
    token = token_of(browser.get("/annotate", headers=HTML))
    assert browser.post(link, data={"worker": "W2", "csrf_token": token}).status_code == 404
    assert session.scalars(select(OutsideWorker.worker_id)).all() == ["W1"]


def test_whoever_is_no_admin_any_more_makes_nothing_that_would_come_back(
    session: Session, campaign: Campaign, admin: User
) -> None:
    make_user(session, role="admin")
    session.flush()
    stale = User(id=admin.id, name=admin.name, email=admin.email, role=Role.ADMIN)  # as looked up before
    accounts.set_role(session, admin.id, Role.ANNOTATOR, by=None, now=utc_now())
    session.flush()
    now = utc_now()

    for make in (
        lambda: workers.make_link(session, campaign, answers_needed=1, max_workers=1, by=stale, now=now),
        lambda: accounts.invite(session, role=Role.ANNOTATOR, note="", by=stale, now=now),
        lambda: accounts.make_password_link(session, make_user(session), by=stale, now=now),
        lambda: accounts.simulated_annotator(session, "a", by=stale, now=now),
    ):
        with pytest.raises(NotAllowed):
            make()


def test_not_being_able_to_tell_is_no_way_to_a_code(
    browser: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    session.scalars(select(WorkerLink)).one().answers_needed = 5
    session.commit()
    begin(browser, link)
    code = f"/annotate/{campaign.id}/code"

    answer(browser, campaign, 2, value="unsure")
    answer(browser, campaign, 2, value="unusable")
    assert "1 of 5 answers" in browser.get(code, headers=HTML).text, "one in five may say neither yes nor no"
    answer(browser, campaign, 3)
    assert "4 of 5 answers" in browser.get(code, headers=HTML).text
    answer(browser, campaign, 1)
    assert "C1ABCD" in browser.get(code, headers=HTML).text


def test_twenty_times_unsure_at_once_earns_nothing(
    browser: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    campaign.least_card_ms = 200
    session.commit()
    begin(browser, link)

    answer(browser, campaign, 3, value="unsure", response_ms=5000)

    assert session.scalar(select(func.count()).select_from(Answer).where(Answer.is_hasty)) == 3
    assert "0 of 2 answers" in browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text


def test_the_same_id_comes_back_to_the_same_account_and_another_to_another(
    app: FastAPI, session: Session, client: TestClient, campaign: Campaign, link: str
) -> None:
    for worker in (WORKER, WORKER, "A2OTHER"):
        assert begin(TestClient(app, follow_redirects=False), link, worker).status_code == 303

    told = client.get(f"{API}/campaigns/{campaign.id}/workers").json()
    assert [item["worker_id"] for item in told["workers"]] == [WORKER, "A2OTHER"]
    assert told["links"][0]["workers"] == 2
    full = begin(TestClient(app, follow_redirects=False), link, "A3LATE")
    assert full.status_code == 422
    assert "As many people take part as were asked for." in full.text
    assert session.scalar(select(func.count()).select_from(OutsideWorker)) == 2


def test_no_id_opens_a_normal_account(browser: TestClient, session: Session, admin: User, link: str) -> None:
    named = make_user(session, password=PASSWORD)
    named.name = "victim"
    session.commit()
    for claimed in (str(admin.id), admin.id.hex, "victim", "Worker", admin.name.replace(" ", "_")):
        service_user = begin(browser, link, claimed)
        if service_user.status_code != 303:  # the link is full by now
            continue
        me = browser.get(f"{API}/me").json()
        assert me["is_outside"]
        assert me["id"] not in {str(admin.id), str(named.id)}
    for odd in ("", " ", "a b", "x" * 101, "../admin", "victim@example.org", "{{%PROLIFIC_PID%}}", "é"):
        assert begin(browser, link, odd).status_code == 422, odd


def test_a_workers_session_opens_nothing_else(
    browser: TestClient, session: Session, admin: User, link: str
) -> None:
    begin(browser, link)
    worker = session.scalars(select(User).where(User.is_outside)).one()
    headers = {"X-CSRF-Token": token_of(browser.get("/annotate", headers=HTML))}

    token = browser.post(f"{API}/tokens", json={"name": "mine"}, headers=headers)
    factor = browser.post("/account/second-factor", data={"csrf_token": headers["X-CSRF-Token"]})

    assert token.json()["type"] == "/problems/proof-needed"
    assert factor.status_code == 422
    assert browser.get("/account", headers=HTML).status_code == 303
    for role in (Role.REVIEWER, Role.ADMIN):
        with pytest.raises(AccountOfWorker):
            accounts.set_role(session, worker.id, role, by=admin, now=NOW)
    with pytest.raises(AccountOfWorker):
        accounts.make_password_link(session, worker, by=admin, now=NOW)
    with pytest.raises(NoMember):
        service.add_member(session, make_campaign(session), worker.id, by=admin)


def test_an_ended_link_and_a_closed_campaign_let_nobody_in(
    browser: TestClient, client: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    begin(browser, link)
    [made] = client.get(f"{API}/campaigns/{campaign.id}/workers").json()["links"]
    page = browser.get(link, headers=HTML)

    ended = client.delete(f"{API}/campaigns/{campaign.id}/workers/{made['id']}")

    assert ended.status_code == 204
    assert browser.get(link, headers=HTML).status_code == 404
    data = {"worker": WORKER, "csrf_token": token_of(page)}
    assert browser.post(link, data=data, headers=HTML).status_code == 404
    assert browser.get(f"/annotate/{campaign.id}", headers=HTML).status_code == 200  # who is at work goes on
    assert browser.get("/join/nonsense", headers=HTML).status_code == 404
    again = client.post(f"{API}/campaigns/{campaign.id}/workers", json={}).json()["url"]
    campaign.state = CampaignState.CLOSED
    session.commit()
    assert browser.get("/join/" + again.rpartition("/")[2], headers=HTML).status_code == 404


@pytest.mark.parametrize("how", ["removed", "disabled", "erased"])
def test_who_was_removed_does_not_come_back_by_the_link(
    *,
    how: str,
    browser: TestClient,
    client: TestClient,
    session: Session,
    campaign: Campaign,
    link: str,
) -> None:
    begin(browser, link)
    worker = session.scalars(select(User).where(User.is_outside)).one()
    if how == "removed":
        client.delete(f"{API}/campaigns/{campaign.id}/members/people/{worker.id}")
    elif how == "disabled":
        client.patch(f"{API}/users/{worker.id}", json={"disabled": True})
    else:
        client.post(f"{API}/users/{worker.id}/erase", json={"name": worker.name})

    assert browser.get(f"/annotate/{campaign.id}", headers=HTML).status_code != 200
    again = begin(browser, link)
    if how == "erased":  # nothing is known of the id any more: it is somebody new
        assert again.status_code == 303
        assert session.scalar(select(func.count()).where(User.is_outside)) == 2
        return
    assert again.status_code == 422
    assert "You are not a member of this campaign any more." in again.text


def test_accounts_are_not_made_without_end(
    monkeypatch: pytest.MonkeyPatch, browser: TestClient, session: Session, link: str
) -> None:
    monkeypatch.setattr(limits, "JOINS_PER_ADDRESS", Limit(3, 900))
    before = people(session)
    token = token_of(browser.get(link, headers=HTML))

    told = [
        browser.post(link, data={"worker": f"bad id {n}", "csrf_token": token}).status_code for n in range(5)
    ]

    assert told == [422, 422, 422, 429, 429]
    assert people(session) == before


def test_another_sites_page_begins_nothing(browser: TestClient, session: Session, link: str) -> None:
    before = people(session)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert browser.post(link, data={"worker": WORKER}, headers=headers).status_code == 403
    assert people(session) == before


def test_the_page_makes_and_ends_links(client: TestClient, session: Session, campaign: Campaign) -> None:
    page = f"/campaigns/{campaign.id}/members"
    given = {"answers_needed": "5", "max_workers": "10", "note": "Pilot <1>"}

    made = client.post(f"{page}/links", data=given, headers=HTML)

    assert made.status_code == 201
    assert "/join/" in made.text
    shown = client.get(page, headers=HTML).text
    assert "Pilot &lt;1&gt;" in shown
    assert "/join/" not in shown
    [link] = service.links_of(session, campaign, by=make_user(session, role="admin"))
    assert re.fullmatch(r"[A-Z2-9]{8}", link.code)
    assert client.post(page, data={"act": "end-link", "id": str(link.id)}).status_code == 303
    session.refresh(link)
    assert link.ended_at is not None
    assert link.ended_at <= utc_now()
    bad = client.post(f"{page}/links", data=given | {"answers_needed": "0"}, headers=HTML)
    assert bad.status_code == 422
