"""A real Prometheus reads a real web process, and answers what the dashboard and the alerts ask."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import yaml  # type: ignore[import-untyped]

from app.clock import utc_now
from app.db import connect
from app.disk.models import DiskKind, DiskUse
from app.migrate import upgrade
from app.runs.workers import UPKEEP, record_service
from app.stores.folder import FolderStorage
from tests.factories import make_campaign, make_run
from tests.live import CLARINET, free_port
from tests.worker.conftest import wait_until

DEPLOY = Path(__file__).parents[1] / "deploy"


def queries_of_the_dashboard() -> list[str]:
    panels = json.loads((DEPLOY / "grafana" / "clarinet.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def queries_of_the_alerts() -> list[str]:
    groups = yaml.safe_load((DEPLOY / "prometheus" / "clarinet.rules.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


@contextmanager
def process(log: Path, words: list[str | Path], environment: dict[str, str]) -> Iterator[None]:
    """It runs while the block lasts."""
    with log.open("ab") as output:
        started = subprocess.Popen(words, env=environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(300)


def prometheus(folder: Path, target: str, port: int) -> list[str | Path]:
    """The command, with the configuration of deploy, but for the place and pace of scraping."""
    shutil.copy(DEPLOY / "prometheus" / "clarinet.rules.yml", folder)
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
    text = text.replace("127.0.0.1:8000", target).replace("15s", "1s")
    (folder / "prometheus.yml").write_text(text)
    return [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]


def asked(port: int, path: str, **query: str) -> Any:
    """What its API says; an error of a query fails the test."""
    answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/{path}", params=query, timeout=30).json()
    assert answer["status"] == "success", answer
    return answer["data"]


def is_scraped(port: int, times: int) -> bool:
    """Whether it has looked so many times. While it starts it refuses, or answers 503 in plain words."""
    try:
        httpx.get(f"http://127.0.0.1:{port}/-/ready", timeout=30).raise_for_status()
        found = asked(port, "query", query="count_over_time(clarinet_database_up[5m])")["result"]
        up = asked(port, "query", query='up{job="clarinet"}')["result"]
    except httpx.HTTPError:
        return False
    return bool(found) and up[0]["value"][1] == "1" and int(found[0]["value"][1]) >= times


@pytest.mark.long
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_every_query_is_answered(tmp_path: Path) -> None:
    data, port, own = tmp_path / "data", free_port(), free_port()
    data.mkdir()
    environment = os.environ | {"CLARINET_DATA_DIR": str(data)}
    database = connect(f"sqlite:///{data / 'clarinet.db'}")
    upgrade(database.engine)
    with database.write.begin() as session:
        make_run(session, FolderStorage(data / "artefacts"), queued_at=utc_now())
        campaign_id = make_campaign(session).id
        record_service(session, "one", UPKEEP, version="", now=utc_now())
        session.add(DiskUse(kind=DiskKind.DATASETS, size_bytes=1, files=1, measured_at=utc_now()))
    database.dispose()
    url, log = f"http://127.0.0.1:{port}", tmp_path / "log"
    with (
        process(log, [CLARINET, "serve", "--port", str(port)], environment),
        process(log, prometheus(tmp_path, f"127.0.0.1:{port}", own), environment),
    ):
        for times in (2, 5, 8):  # a rate needs counts that grew between two looks
            wait_until(lambda: is_scraped(own, times))  # noqa: B023 - it is asked here
            httpx.post(f"{url}/api/v1/campaigns/{campaign_id}/questions", json={"count": 1}, timeout=30)
        wait_until(lambda: is_scraped(own, 10))

        found = {query: asked(own, "query", query=query)["result"] for query in queries_of_the_dashboard()}
        alerts = {query: asked(own, "query", query=query)["result"] for query in queries_of_the_alerts()}
        rules = asked(own, "rules")["groups"][0]["rules"]

    assert [query for query, values in found.items() if not values] == []
    assert found['sum(up{job="clarinet"})'][0]["value"][1] == "1"
    assert found['max(clarinet_trials{state="queued"})'][0]["value"][1] == "1"
    assert any(
        row["metric"]["status"] == "401" and float(row["value"][1]) > 0
        for row in next(values for query, values in found.items() if query.startswith("sum by (status)"))
    )
    [slow] = [values for query, values in found.items() if query.startswith("histogram_quantile(0.99")]
    assert 0 < float(slow[0]["value"][1]) < 30
    # A machine of tests may well have a full disk.
    [speaks] = [query for query, values in alerts.items() if values and "disk_room" not in query]
    assert speaks.startswith("clarinet_oldest_waiting_run_seconds")  # no worker, and the run is an old one
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
