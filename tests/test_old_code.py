"""0.1.0 and this version on one database while people answer, as when hosts are changed one by one."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx2 as httpx
import numpy as np
import pytest
from sqlalchemy import select

from app.annotation.models import Answer, Question
from app.db import connect
from app.settings import Settings
from tests.conftest import postgres_database
from tests.live import Live, free_port, installation, wait_for

OLD = "c67a8ba2c20aaa1b54782872119268fd1eedb298"  # 0.1.0
RUN = "from worker.cli import app; app()"
ROOT = Path(__file__).parents[1]
PEOPLE = 4
IMAGES = 80
AT_ONCE = 6

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def old_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of 0.1.0, with front-end files of today, which the API does not use."""
    there = subprocess.run(["git", "cat-file", "-e", OLD], cwd=ROOT, capture_output=True, check=False)
    if there.returncode:
        pytest.skip(f"the history of this clone has no {OLD[:8]}")
    folder = tmp_path_factory.mktemp("old")
    archive = subprocess.run(["git", "archive", OLD], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
    (folder / "frontend/static/vendor").symlink_to(ROOT / "frontend/static/vendor")
    return folder


@contextmanager
def old_web(live: Live, code: Path, log: Path) -> Iterator[Live]:
    """A web process of 0.1.0 beside the new one."""
    port = free_port()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, "serve", "--port", str(port), "--no-migrate"],
            cwd=code,
            env=live.environment | {"PYTHONPATH": str(code)},
            stdout=output,
            stderr=output,
        )
    old = Live(live.environment, live.data_dir, f"http://127.0.0.1:{port}", live.token, process)
    try:
        wait_for(old, log, path="/healthz")  # to 0.1.0 a newer schema is not ready
        yield old
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.slow), "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path: Path, old_code: Path) -> Iterator[tuple[Live, Live]]:
    """This version's installation, and 0.1.0 over the same rows and files."""
    with ExitStack() as stack:
        addresses = {}
        if request.param == "postgresql":
            addresses["CLARINET_DATABASE_URL"] = stack.enter_context(postgres_database())
        new = stack.enter_context(installation(tmp_path / "data", tmp_path / "log", **addresses))
        yield stack.enter_context(old_web(new, old_code, tmp_path / "old-log")), new


def answer_all(person: httpx.Client, webs: tuple[str, str], campaign: str, kept: dict[str, str]) -> None:
    """Ask one web process and answer to the other, in turns, until nobody is asked any more."""
    for turn in range(10 * IMAGES):
        asks, takes = webs[turn % 2], webs[(turn + 1) % 2]
        here = f"/api/v1/campaigns/{campaign}"
        asked = person.post(f"{asks}{here}/questions", json={"count": AT_ONCE})
        assert asked.is_success, asked.text
        questions = asked.json()["questions"]
        if not questions:
            return
        picture = person.get(f"{asks}{questions[0]['image_url']}")  # each version has addresses of its own
        assert picture.is_success, picture.text
        given = [
            {"question_id": each["id"], "value": "no", "response_ms": 900, "key": str(uuid4())}
            for each in questions
        ]
        taken = person.post(f"{takes}{here}/answers", json={"answers": given})
        assert taken.is_success, taken.text
        for one, result in zip(given, taken.json()["results"], strict=True):
            if result["status"] == "stored":
                kept[one["key"]] = one["value"]
    pytest.fail("the campaign does not end")


def test_old_and_new_web_processes_ask_and_take_answers_side_by_side(both: tuple[Live, Live]) -> None:
    old, new = both
    chance = np.random.default_rng(0)
    arrays = {
        "x_train": chance.integers(0, 255, (IMAGES, 8, 8), np.uint8),
        "y_train": chance.integers(0, 3, IMAGES),
    }
    dataset = new.dataset("Digits", arrays)
    classes = [{"name": name} for name in dataset["class_names"]]
    campaign = old.api(
        "POST", "/campaigns", json={"name": "Digits", "dataset_id": dataset["id"], "classes": classes}
    )
    old.api("POST", f"/campaigns/{campaign['id']}/open")  # which a worker of this version does
    old.wait(f"/campaigns/{campaign['id']}", until=lambda row: row["state"] == "open")
    tokens = []
    for number in range(PEOPLE):
        email = f"p{number}@example.org"
        new.clarinet("user", "add", email, "--name", f"P {number}", "--password-stdin", given=f"{uuid4()}")
        tokens.append(json.loads(new.clarinet("token", "add", email, "tests", "--json"))["token"])
    kept: list[dict[str, str]] = [{} for _ in tokens]
    faults: list[BaseException] = []

    def work(number: int) -> None:
        header = {"Authorization": f"Bearer {tokens[number]}"}
        webs = (old.url, new.url) if number % 2 else (new.url, old.url)
        with httpx.Client(headers=header, timeout=60) as person:
            try:
                answer_all(person, webs, campaign["id"], kept[number])
            except BaseException as fault:
                faults.append(fault)
                raise

    people = [threading.Thread(target=work, args=(number,)) for number in range(PEOPLE)]
    for thread in people:
        thread.start()
    for thread in people:
        thread.join()

    assert faults == []
    acknowledged = Counter(key for each in kept for key in each)
    database = connect(
        Settings(data_dir=new.data_dir, database_url=url_of(new), _env_file=None).sqlalchemy_url
    )
    with database.read.begin() as session:
        stored = session.scalars(select(Answer)).all()
        waiting = session.scalars(select(Question.id).where(Question.is_waiting)).all()
    database.dispose()
    assert {str(answer.key) for answer in stored} == set(acknowledged)
    assert max(acknowledged.values()) == 1
    assert len({(answer.question_id, answer.user_id) for answer in stored}) == len(stored)
    assert len({answer.question_id for answer in stored}) == IMAGES
    assert waiting == []
    # Both tell the same of what is there now.
    told = [web.api("GET", f"/campaigns/{campaign['id']}/progress") for web in (old, new)]
    assert [(each["finished"], each["waiting"]) for each in told] == [(IMAGES, 0)] * 2


def url_of(live: Live) -> str:
    """The database that an installation was started with."""
    return live.environment.get("CLARINET_DATABASE_URL") or os.environ.get("CLARINET_DATABASE_URL", "")
