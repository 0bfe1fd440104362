"""What admins see of workers."""

from datetime import datetime, timedelta

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.clock import utc_now
from app.runs import queue
from app.runs.workers import SEPARATOR, Machine, record_worker
from app.stores.folder import FolderStorage
from tests.factories import make_run


def seen(session: Session, name: str, *, ago_s: float, queues: str = "gpu", process: str = "") -> None:
    now = utc_now() - timedelta(seconds=ago_s)
    machine = Machine(
        host="cellar",
        process=process,
        version="0.2.0",
        memory_bytes=80 * 1024**3,
        memory_free_bytes=60 * 1024**3,
        started_at=now,
    )
    record_worker(session, name, queues=queues, device="H100", machine=machine if process else None, now=now)


def test_workers_say_what_they_are_and_train_and_silent_ones_come_last(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    run = make_run(session, storage, seeds=(7,), train=2)
    seen(session, "a-silent", ago_s=200, process="cellar:1")
    seen(session, "an-earlier-version", ago_s=1)
    seen(session, "busy", ago_s=1, process="cellar:12")
    seen(session, "carries", ago_s=1, queues="io", process="cellar:2")
    seen(session, "forgotten", ago_s=4000, process="cellar:3")
    queue.claim_next(session, by=f"cellar:12{SEPARATOR}345", now=utc_now())
    session.commit()

    rows = client.get("/api/v1/workers").json()["items"]
    page = client.get("/workers", headers={"accept": "text/html"}).text
    part = client.get("/workers", headers={"accept": "text/html", "HX-Request": "true"}).text

    assert [row["name"] for row in rows] == ["an-earlier-version", "busy", "carries", "a-silent"]
    assert [bool(row["silent_s"]) for row in rows] == [False, False, False, True]
    assert rows[0]["memory_bytes"] is None
    busy = rows[1]
    assert busy["trains"] == [{"run_id": str(run.id), "run": run.number, "seed": 7}]
    assert (busy["host"], busy["device"], busy["version"]) == ("cellar", "H100", "0.2.0")
    assert (busy["queues"], busy["memory_free_bytes"]) == (["gpu"], 60 * 1024**3)
    assert datetime.fromisoformat(busy["seen_at"]) < utc_now()
    assert rows[3]["trains"] == []
    assert f"Run {run.number}, seed 7" in part
    assert "Silent" in part
    assert "<html" not in part
    assert 'hx-trigger="every 5s"' in page


def test_annotators_see_no_workers(annotator_client: TestClient) -> None:
    assert annotator_client.get("/api/v1/workers").status_code == 403
    assert annotator_client.get("/workers").status_code == 403
