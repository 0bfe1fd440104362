"""The drill: a backup while 64 people answer, everything deleted, and all of it comes back."""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, make_url, select, text

from app.annotation.models import Answer
from app.db import connect
from clarinet_client import Client
from tests.live import CLARINET, Live, installation, running
from tests.worker.conftest import both_databases, wait_until
from worker.bench.faults.people import Person

PEOPLE, IMAGES, CLASSES = 64, 6000, 5
BEFORE = 1500  # answers before the backup begins
AFTER = 300  # and after it has ended, which the disaster takes


def command(live: Live, *words: str) -> None:
    """A command as its own process, as an operator starts it."""
    done = subprocess.run(
        [CLARINET, *words], env=live.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def books(people: list[Person]) -> dict[str, str]:
    """What was acknowledged so far: value by key."""
    return {key: value for person in people for key, value in dict(person.book).items()}


def destroy(live: Live, url: str) -> None:
    """Delete the database and the data folder; what was PostgreSQL's comes back as a new, empty database."""
    shutil.rmtree(live.data_dir)
    there = make_url(url)
    if there.get_backend_name() == "sqlite":
        Path(there.database or "").unlink(missing_ok=True)
        return
    server = create_engine(there.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"DROP DATABASE {there.database} WITH (FORCE)"))
        connection.execute(text(f"CREATE DATABASE {there.database}"))
    server.dispose()


def answers_in(url: str) -> list[tuple[str, str, int, str]]:
    """Key, value, question and person of each answer."""
    database = connect(url)
    with database.read.begin() as session:
        query = select(Answer.key, Answer.value, Answer.question_id, Answer.user_id)
        found = [
            (str(key), value.value, number, str(user)) for key, value, number, user in session.execute(query)
        ]
    database.dispose()
    return found


@pytest.mark.slow
@both_databases
def test_everything_acknowledged_before_the_backup_comes_back(own_database_url: str, tmp_path: Path) -> None:
    backups, url = tmp_path / "backups", own_database_url
    figures: dict[str, Any] = {
        "people": PEOPLE,
        "images": IMAGES,
        "database": make_url(url).get_backend_name(),
    }
    with installation(tmp_path / "data", tmp_path / "log", CLARINET_DATABASE_URL=url) as live:
        campaign, people, stop = asked(live)
        for person in people:
            person.start()
        wait_until(lambda: len(books(people)) >= BEFORE, timeout_s=300)
        before, began = books(people), time.monotonic()
        command(live, "backup", str(backups))
        figures["backup_s"] = round(time.monotonic() - began, 1)
        meanwhile = len(books(people))
        wait_until(lambda: len(books(people)) >= meanwhile + AFTER, timeout_s=300)
        stop.set()
        for person in people:
            person.join()
        said, refused = books(people), [why for person in people for why in person.refused]
    destroy(live, url)
    [made] = backups.glob("2*")
    began = time.monotonic()
    command(live, "restore", str(made))
    figures["restore_s"] = round(time.monotonic() - began, 1)

    rows = answers_in(url)
    kept = {key: value for key, value, _, _ in rows}
    doubled = sum(count - 1 for count in Counter(key for key, *_ in rows).values())
    doubled += sum(count - 1 for count in Counter((number, who) for _, _, number, who in rows).values())
    figures |= {
        "acknowledged_before": len(before),
        "acknowledged_during_the_backup": meanwhile - len(before),
        "acknowledged_after_it": len(said) - meanwhile,
        "restored": len(rows),
        "lost": len(before.keys() - kept.keys()),
        "doubled": doubled,
        "different": sum(said.get(key, value) != value for key, value in kept.items()),
        "never_said": len(kept.keys() - said.keys()),
        "refused": len(refused),
    }
    with running(live, tmp_path / "log"), Client(live.url, live.token) as client:
        live.api("POST", f"/campaigns/{campaign['id']}/pause")
        live.api("POST", f"/campaigns/{campaign['id']}/close")
        audit = client.campaigns.audit(campaign["id"], recompute=True)
        progress = client.campaigns.progress(campaign["id"])
    figures["audit_passed"] = audit["passed"]
    sys.stdout.write(json.dumps(figures) + "\n")  # for the record: pytest -rP
    assert figures["lost"] == figures["doubled"] == figures["different"] == figures["never_said"] == 0
    assert len(before) <= len(rows) <= meanwhile
    assert (audit["passed"], audit["draws_match"], audit["commitment_matches"]) == (True, True, True)
    assert progress["answers"]["yes"] + progress["answers"]["no"] == len(rows)


def asked(live: Live) -> tuple[Any, list[Person], threading.Event]:
    """An open campaign, and people who will answer it."""
    chance = np.random.default_rng(0)
    arrays = {
        "x_train": chance.integers(0, 255, (IMAGES, 8, 8), dtype=np.uint8),
        "y_train": (np.arange(IMAGES) % CLASSES).astype(np.uint8),
    }
    campaign = live.open_campaign("Drill", live.dataset("drill", arrays))
    stop = threading.Event()
    people = []
    for number in range(PEOPLE):
        made = live.api("POST", "/simulated-annotators", json={"name": f"Simulated annotator {number}"})
        person = Person(live.url, made["token"], campaign["id"], 0.5, stop, CLASSES)
        people.append(person)
    return campaign, people, stop
