"""Nothing that a client sends is our fault: any bytes in any header and text field are answered below 500."""

import json
import re
from typing import Any, Literal
from urllib.parse import quote
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import callers
from app.accounts import service as accounts
from app.accounts.models import User
from app.clock import utc_now
from app.datasets.models import Example
from app.main import create_app
from app.spelling import taken_by
from app.stores.folder import FolderStorage
from clarinet.files.names import is_printable, tidy
from tests.app.odd_bytes import HEADERS, coins, texts, values
from tests.asgi import Answer, ask
from tests.factories import make_campaign, make_dataset, make_run

tries = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # a counterexample is small already, and each try asks a hundred times
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MULTILINE = {"instructions", "description", "note"}


@pytest.fixture
def ids(session: Session, storage: FolderStorage, admin: User) -> dict[str, str]:
    """Names of what is there, by what addresses call it."""
    campaign, dataset, run = (
        make_campaign(session),
        make_dataset(session, storage),
        make_run(session, storage),
    )
    example = session.scalars(select(Example.id).where(Example.dataset_id == dataset.id)).first()
    session.commit()
    return {
        "campaign_id": str(campaign.id),
        "dataset_id": str(dataset.id),
        "run_id": str(run.id),
        "example_id": str(example),
        "user_id": str(admin.id),
    }


def routes_of(app: FastAPI) -> list[tuple[str, str, APIRoute]]:
    """Method, path and route of everything."""
    return [
        (method, context.path or "", context.original_route)
        for context in iter_route_contexts(app.routes)
        if isinstance(context.original_route, APIRoute)
        and not (context.path or "").endswith(("/events", "/readyz"))
        for method in sorted(context.methods or ())
    ]


def filled(path: str, ids: dict[str, str]) -> str:
    """A path to what is there, or could be."""
    return re.sub(
        r"\{(\w+)\}", lambda name: ids.get(name[1], "7" if name[1] == "decision_id" else str(uuid4())), path
    )


def check(answer: Answer) -> None:
    """No fault of ours, and where there is a problem, one in our form."""
    assert answer.status < 500, answer.body[:500]
    if answer.status >= 400 and "problem" in answer.headers.get("content-type", ""):
        assert json.loads(answer.body)["status"] == answer.status


@pytest.mark.long
class TestAnyBytes:
    @tries
    @given(data=st.data())
    def test_in_a_header(
        self, app: FastAPI, client: TestClient, ids: dict[str, str], data: st.DataObject
    ) -> None:
        token = client.headers["authorization"].encode()
        routes = routes_of(app)
        for name in HEADERS:
            method, path, _ = data.draw(st.sampled_from(routes))
            value = data.draw(values)
            given = {"host": b"testserver", "accept": data.draw(st.sampled_from([b"text/html", b"*/*"]))}
            if data.draw(coins):
                given["authorization"] = token
            body = b""
            if method != "GET":
                given["content-type"] = data.draw(
                    st.sampled_from([b"application/json", b"multipart/form-data; boundary=x"])
                )
                body = b"{}" if b"json" in given["content-type"] else FORM
            headers = given | {name: value}

            check(ask(app, method, filled(path, ids), headers.items(), body=body))

    @tries
    @given(text=texts, data=st.data())
    def test_in_an_address(
        self, app: FastAPI, client: TestClient, ids: dict[str, str], text: str, data: st.DataObject
    ) -> None:
        token = client.headers["authorization"].encode()
        for method, path, route in routes_of(app):
            names = sorted(taken_by(route).parameters)
            if method != "GET" or not (names or "{" in path):
                continue
            there = filled(path, ids)
            query = ""
            in_query: bool = data.draw(coins)
            if names and in_query:
                name = data.draw(st.sampled_from(names))
                query = f"{name}={quote(text, errors='replace')}"
            elif "{" in path:
                there = re.sub(r"\{\w+\}", lambda _: text.replace("/", ""), path, count=1)
                there = there.encode(errors="replace").decode()
            check(
                ask(
                    app,
                    method,
                    filled(there, ids),
                    [("host", b"x"), ("authorization", token)],
                    query=query.encode(),
                )
            )


def test_a_null_byte_in_every_parameter(app: FastAPI, client: TestClient, ids: dict[str, str]) -> None:
    # PostgreSQL takes it in no text, so each that reaches a query must be refused before.
    headers = [("host", b"x"), ("authorization", client.headers["authorization"].encode())]
    asked = 0
    for method, path, route in routes_of(app):
        for name in sorted(taken_by(route).parameters) if method == "GET" else ():
            answer = ask(app, method, filled(path, ids), headers, query=f"{name}=%00".encode())
            assert answer.status < 500, (path, name, answer.body[:500])
            asked += 1
    assert asked > 50


FORM = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\na+AGE-\xff\\ud800\r\n--x--\r\n'


def bodies(ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    """By the end of its path, a body of the API that fits, with every field that takes words."""
    campaign = {"name": "n", "dataset_id": ids["dataset_id"], "instructions": "i", "classes": []}
    return {
        "POST /invitations": {"role": "annotator", "note": "n"},
        "POST /simulated-annotators": {"name": "n"},
        "POST /datasets": {"name": "n", "description": "d", "kind": "auto", "path": "p"},
        "POST /campaigns": campaign | {"consensus": "dawid-skene", "modes": "both"},
        "PATCH /campaigns/{campaign_id}": campaign,
        "PUT /campaigns/{campaign_id}/price": {"price_per": "answer"},
        "POST /campaigns/{campaign_id}/runs": {
            "target_dataset_id": ids["dataset_id"],
            "method": "clarinet-plus",
            "setting": "cc",
            "preset": "digits",
            "config": {},
            "note": "n",
        },
        "PATCH /runs/{run_id}": {"note": "n"},
        "POST /campaigns/{campaign_id}/decisions": {"question_id": 1, "value": "yes"},
        "POST /campaigns/{campaign_id}/questions": {"count": 1, "one_class": False},
    }


@pytest.mark.long
@tries
@given(text=texts)
def test_any_words_in_a_body(app: FastAPI, client: TestClient, ids: dict[str, str], text: str) -> None:
    headers = [
        ("host", b"x"),
        ("authorization", client.headers["authorization"].encode()),
        ("content-type", b"application/json"),
    ]
    for route, fits in bodies(ids).items():
        method, path = route.split()
        changed = [fits | {name: text} for name in fits]
        if "classes" in fits:
            changed += [fits | {"classes": [{"name": text}, {"name": "b", "description": text}]}]
        if "config" in fits:
            changed += [fits | {"config": {"pretrained": text}}, fits | {"config": {text: 1}}]
        for body in changed:
            sent = json.dumps(body).encode()
            answer = ask(app, method, "/api/v1" + filled(path, ids), headers, body=sent)
            check(answer)
            (changed_name,) = [name for name in fits if body[name] != fits[name]] or [""]
            shown = text.strip()
            if changed_name in MULTILINE:
                shown = shown.replace("\r\n", "").replace("\n", "").replace("\t", "")
            if not is_printable(tidy(shown) if changed_name == "classes" else shown):
                assert answer.status >= 400 or changed_name == "", (route, changed_name)


FORMS = {
    "/sign-in": ("email", "password", "next"),
    "/invitations/x": ("email", "name", "password"),
    "/people/invitations": ("role", "note"),
    "/account/tokens": ("name",),
    "/account/password": ("current", "password"),
    "/datasets/new": ("name", "description", "kind", "path"),
    "/campaigns/new": ("name", "dataset_id", "classes", "instructions", "consensus", "gold_share", "modes"),
    "/campaigns/{campaign_id}/price": ("price", "price_per"),
    "/campaigns/{campaign_id}/gold": ("per_class",),
    "/campaigns/{campaign_id}/review/ask-again": ("count",),
    "/campaigns/{campaign_id}/decisions": ("question_id", "value"),
    "/campaigns/{campaign_id}/runs/new": (
        "recipe",
        "loaded",
        "setting",
        "seeds",
        "target_dataset_id",
        "note",
        "config.epochs",
    ),
    "/runs/{run_id}/note": ("note",),
    "/language": ("language", "next"),
}


@pytest.mark.long
@tries
@given(text=st.one_of(st.binary(max_size=30), texts.map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_any_bytes_in_a_form(
    app: FastAPI, session: Session, admin: User, ids: dict[str, str], text: bytes
) -> None:
    secret = accounts.start_session(session, admin, now=utc_now())
    session.commit()
    token = callers.csrf_token(app.state.settings.signing_secret(), secret)
    known = [("host", b"x"), ("cookie", f"clarinet={secret}".encode()), ("x-csrf-token", token.encode())]
    for path, fields in FORMS.items():
        typed = "&".join(f"{name}={quote(text)}" for name in fields).encode()
        parts = b"".join(
            b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), text)
            for name in fields
        )
        for kind, body in (
            (b"application/x-www-form-urlencoded", typed),
            (b"multipart/form-data; boundary=x", parts + b"--x--\r\n"),
        ):
            check(ask(app, "POST", filled(path, ids), [*known, ("content-type", kind)], body=body))


@pytest.mark.parametrize(
    "name", ["a\0b.zip", "\x1b[2J.zip", "\u202egpj.zip", "../../x.zip", "\\\\srv\\x.zip", "%00.zip"]
)
def test_any_file_name(client: TestClient, ids: dict[str, str], name: str) -> None:
    files = {"file": (name, b"PK\x03\x04")}

    sent = client.post("/api/v1/datasets", data={"name": f"d {uuid4()}"}, files=files)
    bare = client.post(
        f"/api/v1/datasets?name={uuid4()}&filename={quote(name)}",
        content=b"PK\x03\x04",
        headers={"content-type": "x/y"},
    )
    labels = client.post(f"/api/v1/campaigns/{ids['campaign_id']}/imports", files=files)

    assert (sent.status_code, bare.status_code) == (202, 202), (sent.text, bare.text)
    assert labels.status_code < 500


@pytest.mark.parametrize(
    "body", [b'{"name": ' + b"9" * 9000 + b"}", b"[" * 60_000, b"\xff", b'{"name": NaN}', b'"']
)
@pytest.mark.parametrize(
    "path", ["/api/v1/invitations", "/api/v1/campaigns/00000000-0000-4000-8000-000000000007/answers"]
)
def test_what_is_no_json_is_told(client: TestClient, path: str, body: bytes) -> None:
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/malformed-request"


@pytest.mark.parametrize("answering", ["fast", "plain"])
@pytest.mark.parametrize("name", [r"\ud800", r"\u0000", r"\u202e", r"\udcff" * 99])
def test_any_name_in_a_body(
    app: FastAPI, client: TestClient, ids: dict[str, str], name: str, answering: Literal["fast", "plain"]
) -> None:
    """Unknown, or given twice, at the top and within, in a short body and in one that a thread reads."""
    state = app.state
    if answering == "plain":
        app = create_app(state.settings, database=state.database, publish=state.publish, answering="plain")
    headers = [
        ("host", b"x"),
        ("authorization", client.headers["authorization"].encode()),
        ("content-type", b"application/json"),
    ]
    once, twice = f'"{name}": 1', f'"{name}": 1, "{name}": 2'
    for path in (
        "/campaigns",
        "/groups",
        "/campaigns/{campaign_id}/questions",
        "/campaigns/{campaign_id}/answers",
        "/campaigns/{campaign_id}/open",
    ):
        for fields in (once, twice, f'"name": {{{twice}}}', f'"many": "{"x" * 70_000}", {twice}'):
            answer = ask(app, "POST", "/api/v1" + filled(path, ids), headers, body=f"{{{fields}}}".encode())
            check(answer)
            assert answer.status in (413, 422), (path, fields[:80], answer.status)


def test_an_origin_that_is_no_address_is_foreign(app: FastAPI) -> None:
    for origin in (b"http://[::1", b"http://[", b"//[", b"http://a]"):
        answer = ask(app, "POST", "/sign-in", [("host", b"x"), ("origin", origin)], body=b"")

        assert answer.status == 403
        assert json.loads(answer.body)["type"] == "/problems/bad-csrf-token"


@pytest.mark.parametrize(
    "charset", ["utf-7", "idna", "undefined", "raw_unicode_escape", "none", "utf-16", '"latin-1"']
)
def test_text_in_another_charset_is_refused(app: FastAPI, client: TestClient, charset: str) -> None:
    token = client.headers["authorization"].encode()
    for path, kind in (
        ("/api/v1/datasets", "multipart/form-data; boundary=x"),
        ("/sign-in", "application/x-www-form-urlencoded"),
        ("/api/v1/invitations", "application/json"),
        (f"/api/v1/campaigns/{uuid4()}/questions", "application/json"),
    ):
        given = [
            ("host", b"x"),
            ("authorization", token),
            ("content-type", f"{kind}; charset={charset}".encode()),
        ]

        assert ask(app, "POST", path, given, body=FORM).status == 415, path
