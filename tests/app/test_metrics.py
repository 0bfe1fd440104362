"""What Prometheus reads is what happened, and only allowed addresses read it."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from pydantic import ValidationError
from sqlalchemy.orm import Session

from app import metrics
from app.accounts.models import User
from app.clock import utc_now
from app.main import create_app
from app.questions import Question
from app.runs.workers import Machine, note_trouble, record_worker
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import make_campaign, make_run, make_token

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(client: TestClient) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found: Samples, metric: str, /, **labels: str) -> float:
    return found[metric, frozenset(labels.items())]


@pytest.fixture
def near(app: FastAPI, session: Session, admin: User) -> Iterator[TestClient]:
    """A client on this machine, with an admin's token."""
    headers = {"Authorization": f"Bearer {make_token(session, admin)}"}
    with TestClient(app, headers=headers, client=("127.0.0.1", 5), raise_server_exceptions=False) as client:
        yield client


def test_requests_are_counted_by_the_route_that_served_them(near: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    session.commit()
    lease = "/api/v1/campaigns/{campaign_id}/questions"
    before = scraped(near)
    for _ in range(2):
        near.get(f"/api/v1/campaigns/{campaign.id}")
    near.get(f"/api/v1/campaigns/{uuid4()}")
    near.post(lease.format(campaign_id=campaign.id), json={"count": 1})
    near.get("/nowhere/1")
    near.get("/nowhere/2")
    after = scraped(near)

    def more(method: str, route: str, status: str) -> float:
        labels = {"method": method, "route": route, "status": status}
        key = "clarinet_requests_total", frozenset(labels.items())
        return after.get(key, 0) - before.get(key, 0)

    assert more("GET", "/api/v1/campaigns/{campaign_id}", "200") == 2
    assert more("GET", "/api/v1/campaigns/{campaign_id}", "404") == 1
    assert more("POST", lease, "200") == 1
    assert more("", "unknown", "404") == 2  # one series, whatever people try
    assert value(after, "clarinet_request_seconds_count", method="POST", route=lease) == 1


def test_the_database_is_asked_for_work_and_workers(
    near: TestClient, session: Session, storage: FolderStorage
) -> None:
    make_run(session, storage, seeds=(0, 1), queued_at=utc_now()).created_at = utc_now()
    record_worker(session, "one@host", queues="gpu", device="CPU", now=utc_now())
    session.commit()

    found = scraped(near)

    assert value(found, "clarinet_database_up") == 1
    assert value(found, "clarinet_trials", state="queued") == 2
    assert value(found, "clarinet_trials", state="running") == 0
    assert 0 <= value(found, "clarinet_oldest_waiting_run_seconds") < 60
    assert 0 <= value(found, "clarinet_silent_seconds", name="one@host", queues="gpu") < 60
    assert value(found, "clarinet_answers", value="no") == 0
    assert value(found, "clarinet_workers_in_trouble") == 0
    free, total = (value(found, "clarinet_disk_room_bytes", kind=kind) for kind in ("free", "total"))
    assert 0 <= free <= total
    assert abs(value(found, "clarinet_clock_ahead_seconds")) < 2


def test_a_worker_that_takes_nothing_is_counted_while_it_is_there(near: TestClient, session: Session) -> None:
    for name, age_s in (("here", 0), ("gone", 3600), ("well", 0)):
        machine = Machine(
            host=name,
            process=name,
            version="",
            memory_bytes=None,
            memory_free_bytes=None,
            started_at=utc_now(),
        )
        seen = utc_now() - timedelta(seconds=age_s)
        record_worker(session, name, queues="gpu", device="CPU", machine=machine, now=seen)
        note_trouble(session, name, None if name == "well" else "the disk is full")
    session.commit()

    assert value(scraped(near), "clarinet_workers_in_trouble") == 1


def test_without_a_database_it_says_so(tmp_path: Path) -> None:
    url = "postgresql+psycopg://a:b@127.0.0.1:1/c"
    settings = Settings(environment="test", data_dir=tmp_path, database_url=url, _env_file=None)
    with TestClient(create_app(settings, publish=lambda _: None), client=("127.0.0.1", 5)) as client:
        found = scraped(client)

    assert value(found, "clarinet_database_up") == 0
    assert value(found, "clarinet_disk_room_bytes", kind="total") > 0  # which says why it may be so
    assert not any(name.startswith("clarinet_trials") for name, _ in found)


def test_how_long_work_has_waited_and_what_people_paused_does_not(
    near: TestClient, session: Session, storage: FolderStorage
) -> None:
    waits, paused = (make_run(session, storage, queued_at=utc_now()) for _ in range(2))
    waits.created_at = utc_now() - timedelta(hours=2)
    paused.created_at, paused.paused_at = utc_now() - timedelta(hours=9), utc_now()
    session.commit()

    # Upkeep nudges what waits every few seconds, which changes nothing here.
    assert value(scraped(near), "clarinet_oldest_waiting_run_seconds") == pytest.approx(7200, abs=60)


def test_a_database_that_hangs_is_no_fault_of_ours(
    near: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(metrics, "WITHIN_S", 0.2)

    def hang() -> list[object]:
        ended.wait(300)
        return []

    monkeypatch.setattr(app.state.metrics, "_from_database", Question(hang))
    found = scraped(near), scraped(near)
    asking = [thread for thread in threading.enumerate() if thread.name == "question"]
    ended.set()

    assert [value(one, "clarinet_database_up") for one in found] == [0, 0]
    assert len(asking) == 1


@pytest.mark.parametrize(
    ("given", "address", "status"),
    [
        ("127.0.0.0/8,::1", "10.0.0.7", 403),
        ("127.0.0.0/8, 10.0.0.0/24", "10.0.0.7", 200),
        ("10.0.0.0/24", "::ffff:10.0.0.7", 200),
        ("10.0.0.0/24", "nobody", 403),
        ("", "127.0.0.1", 403),
    ],
)
def test_who_may_read(tmp_path: Path, given: str, address: str, status: int) -> None:
    settings = Settings(environment="test", data_dir=tmp_path, metrics_from=given, _env_file=None)
    with TestClient(create_app(settings, publish=lambda _: None), client=(address, 5)) as client:
        assert client.get("/metrics").status_code == status


def test_a_misspelt_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="CLARINET_METRICS_FROM is addresses and networks"):
        Settings(environment="test", data_dir=tmp_path, metrics_from="10.0.0.300", _env_file=None)
