"""Silence is no answer to a misspelling: unknown parameters and fields are refused with the near one."""

import re
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.access import is_in_person
from app.accounts import callers
from app.accounts import service as accounts
from app.accounts.models import User
from app.clock import utc_now
from app.db import Database
from app.main import create_app
from app.settings import Settings
from app.spelling import fields_at, near_one, no_such, taken_by
from app.stores.folder import FolderStorage
from tests.app.accounts.conftest import in_person
from tests.app.test_access import address, body_of
from tests.factories import make_campaign, make_dataset, make_token

HTML = {"Accept": "text/html"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def routes_of(app: FastAPI, *, api: bool) -> Iterator[tuple[str, str, APIRoute]]:
    """Method, path and route of the API or of the pages."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute) and context.path and context.path.startswith("/api/") is api:
            for method in sorted(context.methods or ()):
                yield method, context.path, route


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("limt", {"after", "limit"}, "There is no field 'limt' here. Did you mean 'limit'?"),
        ("campaign", {"campaign_id", "after"}, "Did you mean 'campaign_id'?"),
        ("Gold-Share", {"gold_share", "rounds"}, "Did you mean 'gold_share'?"),
        ("table", {"file", "csv"}, "There is no field 'table' here. It may be csv, file."),
        ("page", {"after", "limit"}, "Lists have no 'page' here: give what 'next' says as 'after'."),
        ("per_page", {"after", "limit"}, "Did you mean 'limit'?"),
        ("x" * 99, (), "'" + "x" * 39 + "…' here; none is taken."),
    ],
)
def test_the_sentence_names_the_near_one(name: str, known: set[str], words: str) -> None:
    assert words in no_such(name, known)


def test_every_route_of_the_api_refuses_parameters_it_does_not_know(
    app: FastAPI, client: TestClient, session: Session, admin: User
) -> None:
    browser = in_person(app, session, admin)
    asked = 0
    for method, path, route in routes_of(app, api=True):
        known = taken_by(route).parameters
        for name in ("utm_source", *(f"{one}s" for one in known)):
            asks = browser if is_in_person(route.endpoint) else client
            answer = asks.request(method, address(path), params={name: "1"}, json=body_of(method, path))
            asked += 1

            assert answer.status_code == 422, (method, path, name, answer.text)
            (fault,) = [one for one in answer.json()["errors"] if one["pointer"] == f"query/{name}"]
            if name != "utm_source":
                assert f"Did you mean '{near_one(name, known)}'?" in fault["detail"]

    assert asked > 70


def test_lists_say_how_they_page(client: TestClient) -> None:
    for path in ("campaigns", "datasets", "runs", "models", "users", "journal"):
        answer = client.get(f"/api/v1/{path}?page=2")

        assert answer.status_code == 422
        assert "give what 'next' says as 'after'" in answer.json()["detail"]


def test_what_is_given_twice_is_told(client: TestClient) -> None:
    answer = client.get("/api/v1/runs?limit=5&limit=6")

    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"pointer": "query/limit", "detail": "This parameter is given more than once."}
    ]


@pytest.mark.parametrize("answering", ["fast", "plain"])
def test_a_field_of_json_that_comes_twice_is_told(
    answering: str, app: FastAPI, settings: Settings, session: Session, client: TestClient
) -> None:
    campaign = make_campaign(session)
    session.commit()
    if answering == "plain":
        app = create_app(settings, database=app.state.database, publish=app.state.publish, answering="plain")
    caller = TestClient(app, headers=dict(client.headers))
    for path, body in (
        (f"campaigns/{campaign.id}/questions", '{"count": 1, "count": 5}'),
        ("groups", '{"name": "A", "name": "B"}'),
        (f"campaigns/{campaign.id}/gold", '{"pictures": [{"example_id": 1, "class": 0, "class": 1}]}'),
    ):
        name = body.split('"')[-2 if body.count("class") < 2 else -4]
        twice = caller.post(f"/api/v1/{path}", content=body, headers={"content-type": "application/json"})

        assert twice.status_code == 422, path
        told = [item["detail"] for item in twice.json()["errors"] if item["pointer"].startswith("body/")]
        assert "This field is given more than once." in told, (path, name)
    assert caller.post(f"/api/v1/campaigns/{campaign.id}/questions", json={"count": 1}).status_code == 200


def test_no_list_has_pages_by_number_and_what_links_add_is_ignored(client: TestClient) -> None:
    html = {"Accept": "text/html"}

    assert client.get("/people?page=2", headers=html).status_code == 422
    assert client.get("/people?utm_source=mail", headers=html).status_code == 200


def test_one_name_means_one_thing(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    session.commit()

    for path in ("runs", "journal"):
        assert client.get(f"/api/v1/{path}?campaign_id={campaign.id}").status_code == 200
        wrong = client.get(f"/api/v1/{path}?campaign={campaign.id}")
        assert wrong.status_code == 422
        assert "Did you mean 'campaign_id'?" in wrong.text


def test_pages_ignore_what_links_add(client: TestClient, session: Session, storage: FolderStorage) -> None:
    dataset = make_dataset(session, storage)
    session.commit()

    for path in (
        "/campaigns",
        "/runs",
        "/plan",
        "/journal",
        "/datasets",
        f"/datasets/{dataset.id}",
        "/sign-in",
    ):
        page = client.get(f"{path}?utm_source=mail&fbclid=Iw&gclid=7&ref=x", headers=HTML)
        assert page.status_code in {200, 303}, path


def test_pages_refuse_a_slip(client: TestClient) -> None:
    for path, near in (
        ("/campaigns?page=2", "after"),
        ("/runs?aftr=3", "after"),
        ("/plan?budgt=5", "budget"),
        ("/journal?campaign=1", "campaign_id"),
    ):
        page = client.get(path, headers=HTML)

        assert page.status_code == 422, path
        assert f"&#39;{near}&#39;" in page.text
        assert "Open the page without it" in page.text


class TestBodies:
    def test_a_field_of_json_names_the_near_one(self, client: TestClient) -> None:
        body = {
            "name": "a",
            "dataset_id": str(uuid4()),
            "gold_shar": 0.1,
            "classes": [{"nam": "x", "name": "x"}],
        }

        answer = client.post("/api/v1/campaigns", json=body)

        assert answer.status_code == 422
        told = {fault["pointer"]: fault["detail"] for fault in answer.json()["errors"]}
        assert told["body/gold_shar"].endswith("Did you mean 'gold_share'?")
        assert told["body/classes/0/nam"].endswith("Did you mean 'name'?")

    @pytest.mark.parametrize(
        "body", [{"answer": []}, {"answers": [{"valu": "no"}]}, {"answers": [], "nex": 1}]
    )
    def test_the_fast_path_says_the_same(
        self,
        *,
        settings: Settings,
        database: Database,
        client: TestClient,
        session: Session,
        annotator: User,
        body: dict[str, object],
    ) -> None:
        headers = {"Authorization": f"Bearer {make_token(session, annotator)}"}
        path = f"/api/v1/campaigns/{UUID(int=7)}/answers"
        plain = create_app(settings, database=database, publish=lambda _: None, answering="plain")
        with TestClient(plain, headers=headers, raise_server_exceptions=False) as slow:
            for query in ("", "?cont=1", "?count=1&count=2"):
                one = client.post(path + query, json=body, headers=headers)
                other = slow.post(path + query, json=body)

                assert one.status_code == other.status_code == 422
                assert one.json() == other.json()

    def test_where_nothing_is_taken_nothing_is_dropped(self, client: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()
        path = f"/api/v1/campaigns/{campaign.id}/pause"

        refused = client.post(path, json={"reason": "lunch"})

        assert refused.status_code == 422
        assert "There is no field 'reason' here; none is taken." in refused.text
        assert client.post(path, content=b"now", headers={"Content-Type": "text/plain"}).status_code == 422
        assert client.post(path, content="a=b", headers=FORM).status_code == 422
        assert client.post(path, json={}).status_code == 200

    def test_files_have_names_too(self, client: TestClient) -> None:
        files = {"file": ("a.zip", b"PK\x03\x04"), "table": ("t.csv", b"filename,class\n")}

        wrong = client.post("/api/v1/datasets", data={"name": "x"}, files=files)
        also = client.post(
            "/api/v1/datasets", data={"name": "x", "csv": "a,b"}, files={"file": ("a.zip", b"PK\x03\x04")}
        )
        imported = client.post(
            f"/api/v1/campaigns/{uuid4()}/imports", files={"fil": ("a.csv", b"x"), "file": ("b.csv", b"x")}
        )

        assert (wrong.status_code, also.status_code, imported.status_code) == (422, 422, 422)
        assert "There is no field for a file 'table' here. It may be csv, file." in wrong.text
        assert "There is no field 'csv' here." in also.text
        assert "Did you mean 'file'?" in imported.text

    def test_parameters_of_an_upload_belong_to_a_bare_body(self, client: TestClient) -> None:
        bare = {"Content-Type": "application/octet-stream"}
        files = {"file": ("a.zip", b"PK\x03\x04")}

        assert client.post("/api/v1/datasets?nam=x", content=b"PK\x03\x04", headers=bare).status_code == 422
        assert client.post("/api/v1/datasets?name=x", content=b"PK\x03\x04", headers=bare).status_code == 202
        assert client.post("/api/v1/datasets?name=y", data={"name": "x"}, files=files).status_code == 422


class TestForms:
    @pytest.fixture
    def browser(self, app: FastAPI, session: Session, admin: User, anonymous: TestClient) -> TestClient:
        """An admin's browser, whose forms carry the token."""
        secret = accounts.start_session(session, admin, now=utc_now())
        session.commit()
        anonymous.cookies.set("clarinet", secret)
        anonymous.headers.update(
            HTML | {"X-CSRF-Token": callers.csrf_token(app.state.settings.signing_secret(), secret)}
        )
        return anonymous

    def test_every_form_refuses_fields_it_does_not_know(
        self, app: FastAPI, browser: TestClient, session: Session, admin: User
    ) -> None:
        """Forms whose campaign, run or person is not there say so first."""
        campaign = make_campaign(session)
        session.commit()
        ids = {
            "{decision_id}": "7",
            "{campaign_id}": str(campaign.id),
            "{dataset_id}": str(campaign.dataset_id),
        }
        asked = 0
        for method, path, _ in routes_of(app, api=False):
            if method != "POST":
                continue
            here = re.sub(r"\{\w+\}", lambda name: ids.get(name[0], str(uuid4())), path)
            ticket = accounts.ticket_for(app.state.settings.signing_secret(), session, admin, now=utc_now())
            known = {"ticket": ticket} if path == "/sign-in/code" else {}
            page = browser.post(here, data={"nam_e": "x"} | known)
            asked += 1

            assert page.status_code in {404, 422}, (path, page.status_code)
            if page.status_code == 422:
                assert "nam_e" in page.text, path

        assert asked > 25

    def test_the_form_of_a_run_names_the_near_field(self, browser: TestClient, session: Session) -> None:
        campaign = make_campaign(session)
        session.commit()

        page = browser.post(f"/campaigns/{campaign.id}/runs/new", data={"config.epoch": "3", "sedes": "1"})

        assert page.status_code == 422
        assert "Did you mean &#39;config.epochs&#39;?" in page.text
        assert "Did you mean &#39;seeds&#39;?" in page.text


def test_fields_are_found_inside_lists_and_choices() -> None:
    from app.annotation.schemas import AnswersInput

    assert {"answers", "next"} <= fields_at(AnswersInput, ())
    assert "value" in fields_at(AnswersInput, ("answers", 3))
    assert "count" in fields_at(AnswersInput, ("next",))
    assert fields_at(AnswersInput, ("answers", 3, "value")) == frozenset()
