"""A real collector receives what requests and their statements took; without one nothing breaks."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.models import User
from app.db import Database
from app.jobs import Job
from app.main import create_app
from app.settings import Settings
from app.tracing import spans
from app.tracing.requests import TracedRequests
from app.tracing.spans import TracesNotInstalled
from tests.collector import Collector, collector
from tests.factories import make_campaign, make_token, make_user
from tests.live import free_port

CLIENT, SERVER = 3, 2  # kinds, as OTLP numbers them
GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OFF = """
import sys
from sqlalchemy import Engine
from app.main import create_app
from app.settings import Settings
import worker.celery_app, worker.supervisor, worker.trainer.together
create_app(Settings(environment="test", data_dir=sys.argv[1], _env_file=None))
ours = ("opentelemetry.sdk", "opentelemetry.exporter", "app.tracing.exporting")  # its API others load as well
print([name for name in sys.modules if name.startswith(ours)], Engine._has_events)
"""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, to which this process sends from the next application on."""
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield found
        spans.end()


@pytest.fixture
def traced(
    settings: Settings, database: Database, published: list[Job], told: Collector
) -> Callable[[], FastAPI]:
    """Makes an application that tells."""
    on = settings.model_copy(update={"traces": True, "log_format": "json"})
    assert told
    return lambda: create_app(on, database=database, publish=published.append)


@pytest.fixture
def near(traced: Callable[[], FastAPI], session: Session, admin: User) -> Iterator[TestClient]:
    """An admin's client of it."""
    headers = {"Authorization": f"Bearer {make_token(session, admin)}"}
    with TestClient(traced(), headers=headers, raise_server_exceptions=False) as client:
        yield client


def test_a_request_is_a_span_by_its_route_with_its_statements_below(
    traced: Callable[[], FastAPI], told: Collector, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = make_campaign(session, name="of Ada Lovelace")
    headers = {"Authorization": f"Bearer {make_token(session, make_user(session, role='admin'))}"}
    session.commit()

    headers |= {"X-Request-Id": "mine", "traceparent": GIVEN}
    with TestClient(traced()) as client:  # which logs to what captures it now
        client.get(f"/api/v1/campaigns/{campaign.id}?limit=1", headers=headers)
    [span] = told.wait_for("GET /api/v1/campaigns/{campaign_id}")
    below = [each for each in told.spans if each.parent == span.id]

    assert (span.trace, span.parent) == tuple(GIVEN.split("-")[1:3])
    assert (span.kind, span.is_error, span.service) == (SERVER, False, "clarinet-web")
    assert span.facts == {
        "http.request.method": "GET",
        "http.route": "/api/v1/campaigns/{campaign_id}",
        "http.response.status_code": 422,
        "clarinet.request_id": "mine",
    }
    assert below
    assert {each.kind for each in below} == {CLIENT}
    assert all(each.facts["db.query.text"].startswith(each.name.split()[0]) for each in below)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if "request.finished" in line]
    assert [(line["trace_id"], line["span_id"]) for line in lines] == [(span.trace, span.id)]


def test_nothing_of_people_and_no_value_is_told(
    near: TestClient, told: Collector, session: Session, admin: User
) -> None:
    secret = f"Ada-{uuid4().hex}"
    near.get("/api/v1/users", params={"after": secret})
    near.post("/api/v1/invitations", json={"email": f"{secret}@example.org", "role": "annotator"})
    near.get(f"/join/{secret}")
    near.get(f"/nowhere/{secret}")
    with pytest.raises(SQLAlchemyError), spans.span("job", statements=True), session.begin_nested():
        session.execute(text(f"SELECT '{secret}', :value FROM nowhere"), {"value": secret})
    told.wait_for("SELECT nowhere")
    told.wait_for("GET")  # of what nobody serves

    everything = b"".join(told.bodies)
    assert len(told.spans) > 10
    for private in (secret, admin.email, admin.name, str(admin.id), "testclient"):
        assert private.encode() not in everything
    [failed] = told.named("SELECT nowhere")
    assert failed.is_error
    assert failed.facts["db.query.text"].startswith("SELECT ?, ")
    assert failed.event_count == 0


def test_annotators_statements_run_past_sqlalchemy_and_are_told(
    near: TestClient, told: Collector, session: Session
) -> None:
    campaign = make_campaign(session)
    session.commit()

    near.post(f"/api/v1/campaigns/{campaign.id}/questions", json={"count": 1})
    [span] = told.wait_for("POST /api/v1/campaigns/{campaign_id}/questions")

    names = {each.name.split()[0] for each in told.spans if each.parent == span.id}
    assert names & {"SELECT", "WITH"}


@pytest.mark.usefixtures("near")
def test_what_another_trace_asked_for_belongs_to_it_and_names_what_woke_it(told: Collector) -> None:
    with spans.span("woken"):
        woken = spans.traceparent()
        assert woken is not None
        with spans.span("asked", asked_by=GIVEN), spans.span("within", asked_by=GIVEN):
            pass
        with spans.span("of the same", asked_by=woken), spans.span("nonsense", asked_by="00-x"):
            pass

    trace, parent = GIVEN.split("-")[1:3]
    [outer] = told.wait_for("woken")
    [asked], [within], [same], [none] = map(told.named, ("asked", "within", "of the same", "nonsense"))
    assert (asked.trace, asked.parent, asked.links) == (trace, parent, [outer.trace])
    assert (within.trace, within.parent, within.links) == (trace, asked.id, [])
    assert (same.trace, same.parent, same.links) == (outer.trace, outer.id, [])
    assert none.parent == same.id


@pytest.mark.usefixtures("near")
def test_of_very_many_statements_the_first_are_told_and_the_others_counted(
    told: Collector, session: Session
) -> None:
    session.execute(text("SELECT 0"))  # which begins the transaction
    with spans.span("long", statements=True):
        for _ in range(510):
            session.execute(text("SELECT 1"))
    with spans.span("quiet", statements=False):
        session.execute(text("SELECT 2"))
    told.wait_for("quiet")

    [long] = told.named("long")
    assert len([each for each in told.spans if each.parent == long.id]) == 500
    assert long.facts == {"clarinet.statements_left_out": 10}
    assert not [each for each in told.spans if each.facts.get("db.query.text") == "SELECT 2"]


@pytest.mark.parametrize("trouble", ["away", "hangs", "refuses"])
def test_a_collector_in_trouble_holds_up_nobody(
    trouble: str,
    told: Collector,
    traced: Callable[[], FastAPI],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if trouble == "away":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    if trouble == "hangs":
        told.hangs.set()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    if trouble == "refuses":
        told.status = 400
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")

    said = ""
    with TestClient(traced()) as client:
        deadline = time.monotonic() + 300
        while "traces.not_sent" not in said and time.monotonic() < deadline:
            assert client.get("/sign-in").status_code == 200
            said += capsys.readouterr().err

    lines = [json.loads(line) for line in said.splitlines()]
    [lost] = [line for line in lines if line["event"] == "traces.not_sent"]  # and no line for each try
    assert lost["lost"] >= 1
    assert {line["event"] for line in lines} <= {"request.finished", "traces.not_sent"}
    assert told.spans == []


def test_a_collector_that_hangs_keeps_no_process_from_its_end(
    told: Collector, traced: Callable[[], FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    told.hangs.set()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100000")

    with TestClient(traced()) as client:
        client.get("/sign-in")  # the collector never answers; leaving the block would wait for it

    assert spans.traceparent() is None


def test_off_is_off(app: FastAPI, settings: Settings, session: Session) -> None:
    """No layer, no listener, no package: what is not there takes no time."""
    jobs.enqueue(session, jobs.MEASURE_DISK)
    done = subprocess.run(
        [sys.executable, "-c", OFF, settings.data_dir], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[] False\n"
    assert TracedRequests.__name__ not in [getattr(each.cls, "__name__", "") for each in app.user_middleware]
    assert session.info.pop("jobs") == [Job(jobs.MEASURE_DISK, (), None)]
    with spans.span("nothing") as part, spans.statement("SELECT 1", "sqlite"):
        assert part is None
        assert spans.traceparent() is None
        assert spans.for_child() == {}


def test_who_turns_it_on_without_its_packages_is_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.tracing.spans.find_spec", lambda _: None)

    with pytest.raises(TracesNotInstalled, match=r"pip install 'clarinet\[traces\]'"):
        create_app(settings.model_copy(update={"traces": True}))
