"""`clarinet doctor` names what is wrong on this machine, one line each."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app import clock
from app.clock import utc_now
from app.db import connect
from app.migrate import upgrade
from app.runs.workers import UPKEEP, record_service, record_worker
from tests.collector import collector
from tests.live import free_port
from tests.provider import Provider
from worker.cli.main import app


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installation of its own, whatever the environment says."""
    clock.forget()  # as a new process
    monkeypatch.chdir(tmp_path)
    for name in ("CLARINET_BROKER_URL", "CLARINET_DATABASE_URL", "CLARINET_PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLARINET_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CLARINET_DEVICE", "cpu")
    monkeypatch.setattr("app.health.WITHIN_S", 20)  # on a machine that does much else
    yield
    clock.forget()


def told() -> tuple[int, dict[str, str], dict[str, str]]:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    found = json.loads(result.stdout)
    states = {item["name"]: item["state"] for item in found}
    return result.exit_code, states, {item["name"]: item["words"] for item in found}


def test_all_is_well(tmp_path: Path) -> None:
    database = connect(f"sqlite:///{tmp_path / 'data' / 'clarinet.db'}")
    upgrade(database.engine)
    with database.write.begin() as session:
        record_worker(session, "one@host", queues="gpu,io", device="CPU", now=utc_now())
        record_service(session, "another@host", UPKEEP, version="", now=utc_now())
    database.dispose()

    code, states, words = told()
    result = CliRunner().invoke(app, ["doctor"])

    assert (code, set(states.values())) == (0, {"ok"})
    assert set(states) > {
        "settings",
        "versions",
        "folder",
        "database",
        "migrations",
        "disk",
        "clock",
        "device",
    }
    assert "torch" in words["versions"]
    assert len(result.stdout.splitlines()) == len(states)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("no folder")
    monkeypatch.setenv("CLARINET_DATABASE_URL", "postgresql+psycopg://a:b@127.0.0.1:1/x")
    monkeypatch.setenv("CLARINET_BROKER_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("CLARINET_DEVICE", "cuda")
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi

    code, states, words = told()

    assert code == 1
    failed = {name for name, state in states.items() if state == "failed"}
    assert failed == {"folder", "database", "device"} | ({"disk"} & failed)
    assert words["database"] == "The database does not answer."
    assert (states["broker"], states["clock"]) == ("warning", "warning")


def test_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLARINET_DATA_DIR", "/proc/nope/x")

    code, states, _ = told()

    assert code == 1
    assert {name for name, state in states.items() if state == "failed"} == {"folder", "database"}


def test_an_old_schema_and_nobody_who_works(tmp_path: Path) -> None:
    database = connect(f"sqlite:///{tmp_path / 'data' / 'clarinet.db'}")
    upgrade(database.engine, "0001")
    database.dispose()

    old = told()
    assert (old[0], old[2]["migrations"]) == (1, "run: clarinet db upgrade")
    assert "workers" not in old[1]


def test_a_clock_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = clock.host_now
    monkeypatch.setattr(clock, "host_now", lambda: right() + timedelta(minutes=5))
    _, states, words = told()

    assert states["clock"] == "warning"
    assert words["clock"].startswith("300.0 s ahead of the database's")


def test_settings_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLARINET_ENVIRONMENT", "production")
    code, states, words = told()

    assert (code, states) == (1, {"settings": "failed"})
    assert "CLARINET_SESSION_SECRET" in words["settings"]


def test_the_provider_by_which_people_sign_in_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider("http://127.0.0.1:8000/sign-in/organisation/back")
    for name, value in (("ISSUER", provider.issuer), ("CLIENT_ID", "clarinet"), ("NAME", "Example Works")):
        monkeypatch.setenv(f"CLARINET_OIDC_{name}", value)

    _code, states, words = told()
    assert (states["sign-in"], provider.redirect_uri in words["sign-in"]) == ("ok", True)

    provider.says = {"issuer": "https://elsewhere.example.org"}
    _code, states, words = told()
    assert (states["sign-in"], "CLARINET_OIDC_ISSUER is" in words["sign-in"]) == ("failed", True)

    provider.stop()
    code, states, words = told()
    assert (code, states["sign-in"]) == (1, "failed")
    assert "does not answer" in words["sign-in"]


@pytest.mark.long
def test_a_bucket_that_is_away_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = connect(f"sqlite:///{tmp_path / 'data' / 'clarinet.db'}")
    upgrade(database.engine)
    database.dispose()
    monkeypatch.setenv("CLARINET_S3_BUCKET", "ours")
    monkeypatch.setenv("CLARINET_S3_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("CLARINET_S3_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("CLARINET_S3_SECRET_ACCESS_KEY", "secret")

    code, states, words = told()

    assert (code, states["storage"]) == (1, "failed")
    assert "s3://ours does not answer" in words["storage"]


def test_whether_a_collector_takes_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLARINET_TRACES", "true")
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        taken = told()
        found.status = 404  # somebody else listens there
        refused = told()
    monkeypatch.setattr("app.tracing.spans.find_spec", lambda _: None)
    lacking = told()

    assert (taken[1]["traces"], taken[2]["traces"]) == ("ok", f"{found.url}/v1/traces takes them")
    assert (refused[1]["traces"], lacking[1]["traces"]) == ("warning", "failed")
    assert "pip install 'clarinet[traces]'" in lacking[2]["traces"]
