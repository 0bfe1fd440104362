"""Errors as programs and people get them, and that nothing is said before it is stored."""

import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access import public
from app.accounts.models import User
from app.campaigns.models import CampaignState
from app.clock import utc_now
from app.deps import SessionDep
from app.jobs import Job, enqueue
from app.problems import problem_types
from tests.factories import make_campaign, make_user

HTML = {"Accept": "text/html"}


def test_unknown_addresses_are_problems_for_programs(client: TestClient) -> None:
    answer = client.get("/api/v1/nothing")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is nothing at this address.",
        "instance": "/api/v1/nothing",
    }


def test_a_page_that_is_not_there_still_says_who_is_signed_in(
    client: TestClient, anonymous: TestClient, admin: User
) -> None:
    pages = [visitor.get("/nowhere", headers=HTML) for visitor in (client, anonymous)]

    assert [page.status_code for page in pages] == [404, 404]
    assert [admin.name in page.text for page in pages] == [True, False]


def test_malformed_bodies_name_the_field(client: TestClient) -> None:
    answer = client.post("/api/v1/simulated-annotators", json={"nmae": "x"})

    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/malformed-request"
    assert {error["pointer"] for error in answer.json()["errors"]} == {"body/name", "body/nmae"}


def page_routes(app: FastAPI) -> list[tuple[str, list[str]]]:
    """Path and typed query parameters of every route that shows a page."""
    found = []
    for route in iter_route_contexts(app.routes):
        original = route.original_route
        if (
            isinstance(original, APIRoute)
            and "GET" in (original.methods or ())
            and not original.include_in_schema
        ):
            typed = [
                field.alias
                for field in original.dependant.query_params
                if field.field_info.annotation is not str
            ]
            found.append((route.path or "", typed))
    return found


def test_an_odd_value_in_an_address_is_answered_in_words(
    app: FastAPI, client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session, state=CampaignState.DRAFT)
    opened = make_campaign(session)
    session.commit()
    ids = {"{campaign_id}": str(opened.id), "{dataset_id}": str(opened.dataset_id), "{table}": "results"}
    asked = 0

    for path, typed in page_routes(app):
        of_draft = ids | {"{campaign_id}": str(campaign.id)} if path.endswith("/pictures") else ids
        if any(name not in of_draft for name in re.findall(r"\{\w+\}", path)):
            continue
        here = re.sub(r"\{\w+\}", lambda name: of_draft[name[0]], path) if typed else ""  # noqa: B023 - at once
        for name in typed:
            page = client.get(here, params={name: "-9x", "recipe": "y"}, headers=HTML)
            if page.status_code == 200:
                continue  # such a value is as good as none
            asked += 1
            assert page.status_code == 422, (path, name)
            assert f"The address says {name}=-9x, which this page cannot read." in page.text
            assert f'href="{here}">Open the page without it</a>' in page.text
            assert "query" not in page.text

    assert asked >= 10


def test_a_page_whose_path_cannot_be_is_not_there(app: FastAPI, client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    session.commit()
    odd = [
        re.sub(r"\{\w+\}", "new", path.replace("{campaign_id}/", f"{campaign.id}/"))
        for path, _ in page_routes(app)
        if re.search(r"\{\w+_id\}$", path)
    ]

    pages = {path: client.get(path, headers=HTML) for path in [*odd, "/runs/new", "/annotate/new"]}

    assert len(pages) >= 6
    del pages["/datasets/new"], pages["/campaigns/new"]  # these are
    for path, page in pages.items():
        assert page.status_code == 404, path
        assert "There is nothing at this address." in page.text


def test_programs_are_still_told_which_value_is_wrong(client: TestClient) -> None:
    for path in ("/api/v1/runs?limit=x", "/models?after=x"):
        answer = client.get(path)

        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith("query/")


def test_nobody_signed_in_is_told_how(anonymous: TestClient) -> None:
    answer = anonymous.get("/api/v1/me")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["type"] == "/problems/not-signed-in"


def test_every_type_of_problem_has_a_page(anonymous: TestClient) -> None:
    for slug, kind in problem_types().items():
        page = anonymous.get(f"/problems/{slug}", headers=HTML)

        assert page.status_code == 200, slug
        assert kind.title.replace("'", "&#39;") in page.text


def test_unknown_problem_types_are_not_found_and_not_echoed_raw(anonymous: TestClient) -> None:
    page = anonymous.get("/problems/<script>", headers=HTML)

    assert page.status_code == 404
    assert "<script>&#39;" not in page.text
    assert "&lt;script&gt;" in page.text


def test_a_part_of_a_page_gets_a_part_as_error(anonymous: TestClient) -> None:
    part = anonymous.get("/problems/none", headers={"HX-Request": "true"})

    assert part.status_code == 404
    assert "<html" not in part.text


def test_api_documentation_needs_nothing_from_elsewhere(anonymous: TestClient) -> None:
    page = anonymous.get("/docs", headers=HTML)

    assert page.status_code == 200
    assert 'data-openapi="/api/v1/openapi.json"' in page.text
    assert "https://" not in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]


def test_the_contract_says_how_programs_sign_in(anonymous: TestClient) -> None:
    contract = anonymous.get("/api/v1/openapi.json").json()

    assert contract["openapi"].startswith("3.")
    assert contract["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert contract["paths"]["/api/v1/me"]["get"]["security"] == [{"HTTPBearer": []}, {"SessionCookie": []}]


def test_our_own_mistakes_say_nothing_about_the_inside(app: FastAPI, anonymous: TestClient) -> None:
    @public
    def explode() -> None:
        raise RuntimeError("the secret is swordfish")

    app.add_api_route("/explode", explode)

    for headers in ({}, HTML):
        answer = anonymous.get("/explode", headers=headers)
        assert answer.status_code == 500
        assert "swordfish" not in answer.text
        assert answer.headers["x-request-id"] in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_failing_commit_is_not_answered_with_success(
    app: FastAPI, session: Session, anonymous: TestClient, published: list[Job]
) -> None:
    """With FastAPI's default dependency scope the 202 would leave before the commit fails."""
    taken = make_user(session).email
    session.commit()

    @public
    def promise(session: SessionDep) -> dict[str, Any]:
        session.add(User(email=taken, name="Twice", role="annotator", created_at=utc_now()))
        enqueue(session, "datasets.import", "row")
        return {}

    app.add_api_route("/promise", promise, methods=["POST"], status_code=202)

    assert anonymous.post("/promise").status_code == 500
    assert published == []


def test_jobs_are_published_once_the_commit_is_through(
    app: FastAPI, session: Session, anonymous: TestClient, published: list[Job]
) -> None:
    @public
    def promise(session: SessionDep) -> dict[str, Any]:
        make_user(session)
        enqueue(session, "datasets.import", "row")
        assert published == []
        return {}

    app.add_api_route("/promise", promise, methods=["POST"], status_code=202)
    before = len(session.scalars(select(User)).all())

    assert anonymous.post("/promise").status_code == 202
    assert published == [Job("datasets.import", ("row",))]
    assert len(session.scalars(select(User)).all()) == before + 1


@pytest.mark.parametrize("role", ["admin", "annotator"])
def test_an_error_page_still_knows_who_is_signed_in(
    app: FastAPI, client: TestClient, annotator_client: TestClient, role: str
) -> None:
    """The session is rolled back and closed by then."""

    @public
    def fail(session: SessionDep) -> None:
        make_user(session)
        raise problem_types()["user-not-found"]

    app.add_api_route("/fail", fail, methods=["POST"])
    browser = client if role == "admin" else annotator_client

    page = browser.post("/fail", headers=HTML)

    assert page.status_code == 404
    assert "Sign out" in page.text
