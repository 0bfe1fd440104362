"""`clarinet leftovers` finds what no row names, and spares whatever a row may still come for."""

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from app.clock import utc_now
from app.db import Database, connect
from app.disk.retention import Policy, tidy
from app.migrate import upgrade
from app.registry.service import key_of
from app.runs.labels import key_of as snapshot_key
from app.runs.trials import trial_prefix
from app.settings import Settings
from app.storage import UNFINISHED
from app.stores.folder import FolderStorage
from tests.factories import make_run
from worker.cli.main import app

OLD = timedelta(days=2)


@pytest.fixture
def storage(tmp_path: Path) -> FolderStorage:
    """Of an installation of its own."""
    return FolderStorage(tmp_path / "artefacts")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Of the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLARINET_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("CLARINET_DATABASE_URL", raising=False)
    found = connect(Settings(data_dir=tmp_path, _env_file=None).sqlalchemy_url)
    upgrade(found.engine)
    yield found
    found.dispose()


def age(storage: FolderStorage) -> None:
    """All that lies there now has lain there for long."""
    then = (utc_now() - OLD).timestamp()
    for path in storage.root.rglob("*"):
        os.utime(path, (then, then))


def called(*words: str) -> tuple[int, dict[str, Any], str]:
    result = CliRunner().invoke(app, ["leftovers", "--json", *words])
    return result.exit_code, json.loads(result.stdout or "{}"), result.stderr


def test_what_no_row_names_is_listed_then_deleted_and_all_else_stays(
    database: Database, storage: FolderStorage
) -> None:
    with database.write.begin() as session:
        run = make_run(session, storage, seeds=range(6))
        for trial in run.trials:
            storage.put(f"{trial_prefix(trial.id)}/log.txt", b"1")
            storage.put(f"{key_of(trial.id, 1)}/model.onnx", b"1")
    strange = [
        f"datasets/{uuid4()}",
        key_of(uuid4(), 1).rpartition("/")[0],
        snapshot_key("0" * 64),
        trial_prefix(uuid4()),
        f"uploads/{uuid4()}",
        f"uploads/labels/{uuid4()}",
    ]
    for key in strange:
        storage.put(key if key.endswith(".npz") else f"{key}/a/b", b"12")
    storage.put("others/file", b"no folder of ours")
    age(storage)
    fresh = f"datasets/{uuid4()}/1/shard"  # its row comes once it is whole
    storage.put(fresh, b"1")
    before = {about.key for about in storage.listed()}

    listed, found, _ = called()
    kept = {about.key for about in storage.listed()}
    deleted, gone, _ = called("--delete")
    left = {about.key for about in storage.listed()}

    assert (listed, deleted, kept) == (0, 0, before)
    assert [each["key"] for each in found["items"]] == strange
    assert {each["size_bytes"] for each in found["items"]} == {2}
    assert gone["items"] == found["items"]
    assert before - left == {key if key.endswith(".npz") else f"{key}/a/b" for key in strange}
    assert fresh in left
    assert called()[1]["items"] == []
    assert "is known to the database" in CliRunner().invoke(app, ["leftovers"]).stdout


def test_a_database_that_does_not_belong_to_the_files_deletes_none(
    database: Database, storage: FolderStorage
) -> None:
    assert database
    for _ in range(3):
        storage.put(f"datasets/{uuid4()}/1/shard", b"1")
    age(storage)

    code, _, told = called("--delete")

    assert (code, len(list(storage.listed()))) == (1, 3)
    assert "The database knows 0 of 3 things" in told


def test_a_database_without_our_schema_deletes_none(
    tmp_path: Path, storage: FolderStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLARINET_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("CLARINET_DATABASE_URL", raising=False)
    storage.put(f"datasets/{uuid4()}/1/shard", b"1")
    age(storage)

    code, _, told = called("--delete")

    assert (code, len(list(storage.listed()))) == (1, 1)
    assert "the schema of another version" in told


def test_upkeep_deletes_what_a_killed_writer_left_half_written(
    database: Database, storage: FolderStorage
) -> None:
    dead, alive = (storage.path(f"uploads/{UNFINISHED}{name}") for name in ("dead", "alive"))
    storage.put("uploads/whole", b"1")
    dead.write_bytes(b"2 GB of an upload")
    age(storage)
    alive.write_bytes(b"another one")

    gone = tidy(database, storage, Policy(logs=OLD, checkpoints=OLD), now=utc_now())

    assert (gone, dead.exists(), alive.exists()) == (1, False, True)
    assert storage.about("uploads/whole")
