"""Every route says who may call it, and means it."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.orm import Session
from starlette.routing import Mount

from app.access import Access, access_of
from app.accounts import callers
from app.accounts import service as accounts
from app.accounts.models import User
from app.clock import utc_now
from app.deps import Guard, get_session, get_user, refuse_unknown
from app.fast.layer import FastLayer
from app.schemas import Input
from tests.factories import make_token, make_user
from tests.middleware import part_of

# A route that joins this list is open to the whole world: think before you add one.
PUBLIC = {
    ("GET", "/"),
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("GET", "/invitations/{token}"),
    ("POST", "/invitations/{token}"),
    ("POST", "/sign-in/code"),
    ("GET", "/sign-in/organisation"),
    ("GET", "/sign-in/organisation/back"),
    ("GET", "/sign-out/organisation"),
    ("GET", "/join/{secret}"),
    ("POST", "/join/{secret}"),
    ("GET", "/forgotten-password"),
    ("POST", "/forgotten-password"),
    ("GET", "/password/{token}"),
    ("POST", "/password/{token}"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/problems/{slug}"),
    ("GET", "/docs"),
    ("POST", "/language"),
}
# Served by the framework, without our guard: the contract itself and the static files.
UNGUARDED = {"/api/v1/openapi.json", "/static"}

Route = tuple[str, str, Access | None]


def routes_of(app: FastAPI) -> list[Route]:
    """Method, path and mark of every route, those of included and nested routers too."""
    found: list[Route] = []
    for route in iter_route_contexts(app.routes):
        path = route.path or ""
        if path in UNGUARDED:
            continue
        assert not isinstance(route.original_route, Mount), f"{path}: a mounted application has no guard"
        assert route.methods, f"{path}: not a plain HTTP route"
        found += [
            (method, path, access_of(route.endpoint))
            for method in sorted(route.methods - {"HEAD", "OPTIONS"})
        ]
    return found


def address(path: str) -> str:
    """A path with every parameter filled in; nothing exists there."""
    return re.sub(
        r"\{(\w+)\}", lambda name: "7" if name[1] == "example_id" else str(uuid4()), path.replace(":path", "")
    )


def body_of(method: str, path: str) -> dict[str, object] | None:
    """JSON that fits the routes which serve a request in one thread, once they can read it."""
    if method != "POST" or not path.startswith("/api/"):
        return None
    given = {"question_id": str(uuid4()), "value": "no", "response_ms": 1, "key": str(uuid4())}
    return {"answers": [given]} if path.endswith("/answers") else {}


def test_every_route_carries_a_mark(app: FastAPI) -> None:
    routes = routes_of(app)

    assert len(routes) > len(PUBLIC)
    assert [path for _, path, access in routes if access is None] == []


def test_only_the_routes_named_here_are_public(app: FastAPI) -> None:
    assert {(method, path) for method, path, access in routes_of(app) if access is Access.PUBLIC} == PUBLIC


def test_nobody_unknown_gets_in(app: FastAPI, anonymous: TestClient) -> None:
    for method, path, access in routes_of(app):
        if access is Access.PUBLIC:
            continue
        answer = anonymous.request(method, address(path), json=body_of(method, path))
        page = anonymous.request(
            method, address(path), json=body_of(method, path), headers={"Accept": "text/html"}
        )

        assert answer.status_code == 401, f"{method} {path}"
        goes_to_sign_in = method == "GET" and not path.startswith("/api/")
        assert page.status_code == (303 if goes_to_sign_in else 401), f"{method} {path}"


# What reviewers may call beside what annotators may: campaigns, what is in doubt about them, and labels.
FOR_REVIEWERS = {
    ("GET", "/campaigns"),
    ("GET", "/campaigns/{campaign_id}"),
    ("GET", "/campaigns/{campaign_id}/examples/{example_id}"),
    ("GET", "/campaigns/{campaign_id}/review"),
    ("GET", "/datasets/{dataset_id}/pictures/{example_id}"),
    ("POST", "/campaigns/{campaign_id}/decisions"),
    ("POST", "/campaigns/{campaign_id}/decisions/{decision_id}/undo"),
    ("POST", "/campaigns/{campaign_id}/unusable-pictures/{example_id}"),
    ("POST", "/campaigns/{campaign_id}/review/ask-again"),
    ("GET", "/api/v1/campaigns/{campaign_id}/examples/{example_id}/history"),
    ("GET", "/api/v1/campaigns/{campaign_id}/labels"),
    ("GET", "/api/v1/campaigns/{campaign_id}/labels/folders"),
    ("GET", "/api/v1/campaigns/{campaign_id}/review"),
    ("POST", "/api/v1/campaigns/{campaign_id}/decisions"),
    ("POST", "/api/v1/campaigns/{campaign_id}/decisions/{decision_id}/undo"),
    ("GET", "/api/v1/campaigns/{campaign_id}/unusable-pictures"),
    ("PUT", "/api/v1/campaigns/{campaign_id}/unusable-pictures/{example_id}"),
    ("POST", "/api/v1/campaigns/{campaign_id}/review/ask-again"),
}


def test_only_the_routes_named_here_are_for_reviewers(app: FastAPI) -> None:
    marked = {(method, path) for method, path, access in routes_of(app) if access is Access.REVIEWER}

    assert marked == FOR_REVIEWERS


def test_each_role_gets_as_far_as_its_routes(
    app: FastAPI, session: Session, client: TestClient, annotator_client: TestClient
) -> None:
    headers = {"Authorization": f"Bearer {make_token(session, make_user(session, role='reviewer'))}"}
    reviewer_client = TestClient(app, headers=headers, follow_redirects=False, raise_server_exceptions=False)
    # Where the access of a route ends: nothing exists there, so that who may call it is told so.
    least = {Access.SIGNED_IN: 0, Access.REVIEWER: 1, Access.ADMIN: 2}
    skipped = {"/sign-out"}

    for method, path, access in routes_of(app):
        if access not in least or path in skipped:
            continue
        for rank, caller in enumerate((annotator_client, reviewer_client, client)):
            # An admin's own routes are tested with what they need; here it matters who is kept out.
            if rank == 2 and access is Access.ADMIN:
                continue
            answer = caller.request(method, address(path), json=body_of(method, path))
            is_out = answer.status_code == 403 and answer.json()["type"] == "/problems/not-allowed"
            assert is_out == (rank < least[access]), f"{method} {path} by {rank}: {answer.status_code}"


def test_a_route_without_a_mark_is_closed_even_to_admins(app: FastAPI, client: TestClient) -> None:
    app.add_api_route("/forgotten", lambda: "secret")

    assert client.get("/forgotten").status_code == 403


def takes_int(hint: object) -> bool:
    """Whether a parameter of this type may be a whole number."""
    return hint is int or any(takes_int(part) for part in get_args(hint))


def hints_with_models(hints: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Of an endpoint's parameters, and of those that a model of its address names."""
    for name, hint in hints.items():
        model = get_args(hint)[0] if name != "return" and get_args(hint) else None
        if isinstance(model, type) and issubclass(model, Input):
            yield from get_type_hints(model, include_extras=True).items()
        yield name, hint


def test_every_number_in_an_address_has_bounds_that_both_databases_can_hold(app: FastAPI) -> None:
    checked = set()
    for route in iter_route_contexts(app.routes):
        hints = get_type_hints(route.endpoint, include_extras=True) if route.endpoint else {}
        for name, hint in hints_with_models(hints):
            if name == "return" or not takes_int(hint):
                continue
            for value in (10**20, -(10**20)):
                with pytest.raises(ValidationError):
                    TypeAdapter(hint).validate_python(value)
            checked.add(f"{route.path} {name}")

    assert {"/journal after", "/api/v1/runs after", "/datasets/{dataset_id} after"} <= checked


def test_writes_with_a_cookie_need_the_token_of_our_pages(
    app: FastAPI, session: Session, admin: User, anonymous: TestClient
) -> None:
    anonymous.cookies.set("clarinet", accounts.start_session(session, admin, now=utc_now()))
    session.commit()
    writes = [
        (method, path)
        for method, path, access in routes_of(app)
        if method not in {"GET", "HEAD"} and access is not Access.PUBLIC
    ]

    assert writes
    for method, path in writes:
        answer = anonymous.request(method, address(path), json=body_of(method, path))

        assert answer.status_code == 403, f"{method} {path}"
        assert answer.json()["type"] == "/problems/bad-csrf-token"


@pytest.fixture
def signed_in(app: FastAPI, session: Session, admin: User, anonymous: TestClient) -> TestClient:
    """A browser in which an admin is signed in."""
    secret = accounts.start_session(session, admin, now=utc_now())
    session.commit()
    anonymous.cookies.set("clarinet", secret)
    anonymous.headers["X-CSRF-Token"] = callers.csrf_token(app.state.settings.signing_secret(), secret)
    return anonymous


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://testserver.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-CSRF-Token": "0" * 64},
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": "\u00e9".encode("latin-1")},
    ],
)
def test_foreign_pages_write_nothing(signed_in: TestClient, headers: dict[str, str]) -> None:
    answer = signed_in.post("/api/v1/tokens", json={"name": "mine"}, headers=headers)
    leasing = signed_in.post(f"/api/v1/campaigns/{uuid4()}/questions", json={"count": 1}, headers=headers)

    assert answer.json()["type"] == leasing.json()["type"] == "/problems/bad-csrf-token"
    assert signed_in.get("/api/v1/tokens").json()["items"] == []


def test_our_pages_write(signed_in: TestClient) -> None:
    headers = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}

    assert signed_in.post("/api/v1/tokens", json={"name": "mine"}, headers=headers).status_code == 201


def test_json_disguised_as_text_writes_nothing(signed_in: TestClient) -> None:
    del signed_in.headers["X-CSRF-Token"]

    answer = signed_in.post(
        "/api/v1/tokens", content='{"name": "mine"}', headers={"Content-Type": "text/plain"}
    )

    assert answer.status_code in {403, 422}
    assert signed_in.get("/api/v1/tokens").json()["items"] == []


def test_another_sessions_token_does_not_fit(app: FastAPI, session: Session, signed_in: TestClient) -> None:
    other = accounts.start_session(session, make_user(session), now=utc_now())
    session.commit()
    token = callers.csrf_token(app.state.settings.signing_secret(), other)

    assert signed_in.post("/sign-out", headers={"X-CSRF-Token": token}).status_code == 403


def test_no_origin_is_told_that_it_may_read(client: TestClient) -> None:
    answer = client.get("/api/v1/me", headers={"Origin": "https://evil.example"})

    assert "access-control-allow-origin" not in answer.headers
    assert client.options("/api/v1/me", headers={"Origin": "null"}).status_code == 405


def test_what_the_fast_layer_serves_skips_no_dependency(app: FastAPI, client: TestClient) -> None:
    """`FastLayer` does itself what these do; a further one would be left out silently."""
    client.get("/healthz")
    hot = {route.marked for route in part_of(app, FastLayer).routes.values()}
    found = {
        route.endpoint: [item.call for item in getattr(route, "dependant").dependencies]  # noqa: B009  # not in its type
        for route in iter_route_contexts(app.routes)
        if route.endpoint in hot
    }

    assert len(hot) == len(found) == 7
    for endpoint, calls in found.items():
        assert calls == [refuse_unknown, get_user, get_session], endpoint
    assert app.router.dependencies == [Guard]
