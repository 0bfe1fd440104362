"""kill -9 of the web process while answers are sent: none lost, none doubled."""

import os
import random
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from sqlalchemy import func, select

from app.annotation.models import Answer, Lease, Question
from app.db import connect
from app.migrate import upgrade
from tests.conftest import postgres_database
from tests.factories import make_campaign, make_token, make_user
from tests.live import CLARINET, free_port

pytestmark = pytest.mark.faults
KILLS = 3


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the installation under fire keeps its rows."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'data' / 'clarinet.db'}"
        return
    with postgres_database() as url:
        yield url


class Web:
    """A web process over a database, to be killed and started again."""

    def __init__(self, environment: dict[str, str], port: int) -> None:
        self.command = [str(CLARINET), "serve", "--port", str(port), "--no-migrate"]
        self.environment = environment
        self.url = f"http://127.0.0.1:{port}"
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


Book = dict[str, str]


def answer_everything(url: str, token: str, campaign: str, sent: Book, stop: threading.Event) -> None:
    """Lease and answer until nothing is left; what was acknowledged is written into `sent`."""
    headers = {"Authorization": f"Bearer {token}"}
    path = f"{url}/api/v1/campaigns/{campaign}"
    pending: list[dict[str, Any]] = []
    with httpx.Client(headers=headers, timeout=10) as client:
        while not stop.is_set():
            try:
                if not pending:
                    response = client.post(f"{path}/questions", json={"count": 5}).raise_for_status()
                    leased = response.json()["questions"]
                    if not leased:
                        return
                    pending = [
                        {"question_id": q["id"], "value": "no", "response_ms": 5, "key": str(uuid.uuid4())}
                        for q in leased
                    ]
                answers = client.post(f"{path}/answers", json={"answers": pending}).raise_for_status().json()
            except httpx.HTTPError:
                time.sleep(0.5)  # the server was killed: the same answers go out again, under the same keys
                continue
            for answer, result in zip(pending, answers["results"], strict=True):
                assert result["key"] == answer["key"]
                if result["status"] in ("stored", "repeated"):
                    sent[answer["key"]] = answer["value"]
            pending = []


@pytest.mark.parametrize("clients", [4, pytest.param(64, marks=pytest.mark.slow)])
def test_answers_survive_kills_of_the_web_process(tmp_path: Path, database_url: str, clients: int) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    database = connect(database_url)
    upgrade(database.engine)
    with database.write() as session:
        campaign = str(make_campaign(session, examples=600).id)
        tokens = [make_token(session, make_user(session)) for _ in range(clients)]
    where = {"CLARINET_DATA_DIR": str(data_dir), "CLARINET_DATABASE_URL": database_url}
    web = Web(os.environ | where, free_port())
    sent: list[Book] = [{} for _ in tokens]
    stop = threading.Event()
    threads = [
        threading.Thread(target=answer_everything, args=(web.url, token, campaign, book, stop))
        for token, book in zip(tokens, sent, strict=True)
    ]
    for thread in threads:
        thread.start()

    chance = random.Random(0)
    try:
        for _ in range(KILLS):
            deadline = time.monotonic() + 300
            before = sum(map(len, sent))
            while sum(map(len, sent)) < before + 20 and any(t.is_alive() for t in threads):
                assert time.monotonic() < deadline, "no answer went through between two kills"
                time.sleep(chance.uniform(0.01, 0.05))
            web.kill()
            web.process = web.start()
        for thread in threads:
            thread.join(300)
    finally:
        stop.set()
        web.kill()

    acknowledged = {key: value for book in sent for key, value in book.items()}
    with database.read.begin() as session:
        rows = session.execute(select(Answer.key, Answer.value)).all()
        stored = {str(key): value.value for key, value in rows}
        doubled = session.execute(
            select(Answer.question_id).group_by(Answer.question_id).having(func.count() > 1)
        ).all()
        waiting = session.scalar(select(func.count()).select_from(Question).where(Question.is_waiting))
        held_for_good = select(func.count()).select_from(Lease).where(Lease.expires_at.is_(None))
        answered_slots = session.scalar(held_for_good)
    database.dispose()
    assert {key: stored.get(key) for key in acknowledged} == acknowledged, "an acknowledged answer was lost"
    assert doubled == []
    assert len(stored) == answered_slots == 600
    assert waiting == 0
