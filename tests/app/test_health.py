"""Whether the process says truthfully that it can serve."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app import health
from app.db import connect
from app.main import create_app
from app.migrate import upgrade
from app.settings import Settings


@pytest.fixture
def own_settings(tmp_path: Path) -> Settings:
    """A data folder that nobody has made, and a database elsewhere."""
    return Settings(
        environment="test",
        data_dir=tmp_path / "new" / "var",
        database_url=f"sqlite:///{tmp_path / 'elsewhere' / 'a.db'}",
        _env_file=None,
    )


def test_ready_once_the_schema_is_current(own_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "WITHIN_S", 20)  # on a machine that does much else
    with TestClient(create_app(own_settings, publish=lambda _: None)) as client:
        before = client.get("/readyz")
        database = connect(own_settings.sqlalchemy_url)
        upgrade(database.engine)
        database.dispose()
        after = client.get("/readyz")

    assert before.status_code == 503
    assert before.json()["migrations"] == "run: clarinet db upgrade"
    assert after.status_code == 200
    told = after.json()
    assert set(told.pop("warnings")) == {"workers", "upkeep"}  # the broker is a folder, and is there
    assert told == {"status": "ok", "database": "ok", "migrations": "ok", "disk": "ok"}


def test_not_ready_when_the_folder_is_gone(own_settings: Settings) -> None:
    with TestClient(create_app(own_settings, publish=lambda _: None)) as client:
        own_settings.data_dir.rmdir()
        answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["disk"] == "FileNotFoundError"
