"""How many questions a second the web process hands out and takes answers to, over HTTP, with nothing lost.

A real `clarinet serve` in a process of its own and clients in threads of this one, each with an account and a
connection of its own: what they take of the machine is part of the figure.
"""

import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func, select

from app.accounts import service as accounts
from app.annotation.models import Answer, AnswerValue, Question
from app.clock import utc_now
from worker.bench.rows import add_campaign, add_dataset, add_people, fresh_context
from worker.context import Context
from worker.drawing import open_campaign

START_S = 30
TIMEOUT_S = 30
YES_RATE = 0.1
BUSY = 503
PLENTY, BATCHED_PLENTY = 1_500, 12_000  # questions for each second: more than are answered


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured for one number of clients and one size of batch; times are of one request."""

    database: str
    clients: int
    batch: int
    pairs_per_s: float  # questions leased and answered
    p50_ms: float
    p99_ms: float
    max_ms: float
    refused: int  # requests that were told to come again (503)
    failed: int  # anything else but success
    lost: int  # acknowledged answers that are not in the database
    doubled: int  # questions with more answers than they need, or twice by one person


@dataclass(slots=True)
class _Client:
    """One person's work and what came of it."""

    token: str
    took: list[tuple[float, float, int]] = field(default_factory=list)  # end, seconds, questions
    stored: set[str] = field(default_factory=set)  # keys of acknowledged answers
    refused: int = 0
    failed: int = 0


def measure_serving(
    database_url: str, cases: Sequence[tuple[int, int]], *, seconds: float, say: Callable[[str], None]
) -> Iterator[Row]:
    """One row per case, each with people and a campaign of its own.

    Args:
        database_url: of an empty database; SQLite if none is named.
        cases: clients at work at once, and questions per request.
        seconds: each takes; a case ends earlier when no question is left. The first fifth is warming up.
        say: told what happens.
    """
    with fresh_context(database_url) as context, _serving(context) as port:
        for clients, batch in cases:
            say(f"{context.database.engine.dialect.name}, {clients} clients, batches of {batch}")
            yield _measured(context, port, clients=clients, batch=batch, seconds=seconds)


def _measured(context: Context, port: int, *, clients: int, batch: int, seconds: float) -> Row:
    examples = int(seconds * (PLENTY if batch == 1 else BATCHED_PLENTY)) + clients * batch
    with context.unit_of_work() as session:
        admin, people = add_people(session, clients)
        tokens = [accounts.create_token(session, person, "bench", now=utc_now())[1] for person in people]
        campaign_id = add_campaign(session, admin, add_dataset(session, admin, examples))
    open_campaign(context, campaign_id)
    workers = [_Client(token) for token in tokens]
    start = time.perf_counter()
    threads = [
        threading.Thread(target=_work, args=(worker, port, campaign_id, batch, start + seconds), daemon=True)
        for worker in workers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _row(context, campaign_id, workers, batch=batch, since=start + seconds / 5)


def _row(context: Context, campaign_id: UUID, workers: list[_Client], *, batch: int, since: float) -> Row:
    took = [item for worker in workers for item in worker.took if item[0] > since]
    if len(took) < 2:  # noqa: PLR2004
        raise RuntimeError("Too few answers went through to tell how fast it is.")
    ms = [1000 * seconds for _, seconds, _ in took]
    # What ended after `since`, divided by the time until the last of it.
    span = max(end for end, _, _ in took) - since
    lost, doubled = checked(context, campaign_id, set().union(*(worker.stored for worker in workers)))
    return Row(
        database=context.database.engine.dialect.name,
        clients=len(workers),
        batch=batch,
        pairs_per_s=sum(count for *_, count in took) / span,
        p50_ms=statistics.median(ms),
        p99_ms=statistics.quantiles(ms, n=100)[98],
        max_ms=max(ms),
        refused=sum(worker.refused for worker in workers),
        failed=sum(worker.failed for worker in workers),
        lost=lost,
        doubled=doubled,
    )


def checked(context: Context, campaign_id: UUID, acknowledged: set[str]) -> tuple[int, int]:
    """Acknowledged answers that are missing, and questions answered too often."""
    here = Question.campaign_id == campaign_id
    with context.reading() as session:
        stored = {str(key) for key in session.scalars(select(Answer.key).join(Question).where(here))}
        too_many = (
            select(Question.id)
            .join(Answer, Answer.question_id == Question.id)
            .where(here, Answer.value != AnswerValue.UNSURE, Answer.superseded_at.is_(None))
            .group_by(Question.id, Question.slots)
            .having(func.count() > Question.slots)
        )
        twice = (
            select(Answer.question_id)
            .join(Question, Answer.question_id == Question.id)
            .where(here, Answer.superseded_at.is_(None))
            .group_by(Answer.question_id, Answer.user_id)
            .having(func.count() > 1)
        )
        doubled = set(session.scalars(too_many)) | set(session.scalars(twice))
    return len(acknowledged - stored), len(doubled)


def _work(client: _Client, port: int, campaign_id: UUID, batch: int, deadline: float) -> None:
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        _answer_until(client, connection, campaign_id, batch, deadline)


def _answer_until(
    client: _Client, connection: HTTPConnection, campaign_id: UUID, batch: int, deadline: float
) -> None:
    chance = random.Random(client.token)
    path = f"/api/v1/campaigns/{campaign_id}"
    headers = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}

    took = (0.0, 0.0)  # when the last answer came, and how long after its request

    def post(what: str, body: object) -> Any:
        nonlocal took
        while (start := time.perf_counter()) < deadline:
            try:
                connection.request("POST", f"{path}/{what}", json.dumps(body), headers)
                response = connection.getresponse()
                text = response.read()
            except (OSError, HTTPException):
                client.failed += 1
                connection.close()
                continue
            if response.status == BUSY:
                client.refused += 1
                time.sleep(float(response.headers["Retry-After"]))
                continue
            if response.status != 200:  # noqa: PLR2004
                client.failed += 1
                continue
            end = time.perf_counter()
            took = end, end - start
            return json.loads(text)
        return None

    leased = post("questions", {"count": batch})
    while leased and leased["questions"]:
        answers = [
            {
                "question_id": question["id"],
                "value": "yes" if chance.random() < YES_RATE else "no",
                "response_ms": 900,
                "key": str(uuid4()),
            }
            for question in leased["questions"]
        ]
        done = post("answers", {"answers": answers, "next": {"count": batch}})
        if done is None:
            return
        kept = [item["key"] for item in done["results"] if item["status"] in ("stored", "repeated")]
        client.stored.update(kept)
        client.took.append((*took, len(kept)))
        leased = done["next"]


@contextmanager
def _serving(context: Context) -> Iterator[int]:
    """`clarinet serve` over the context's database; gives its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    environment = os.environ | {
        "CLARINET_ENVIRONMENT": "test",
        "CLARINET_LOG_FORMAT": "json",  # as in production
        "CLARINET_DATA_DIR": str(context.settings.data_dir),
        "CLARINET_DATABASE_URL": context.settings.database_url,
    }
    command = [
        sys.executable,
        *os.environ.get("BENCH_RUN", "-m worker.cli").split(),
        "serve",
        "--port",
        str(port),
        "--no-migrate",
    ]
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        _wait(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("The web process did not start.")


def as_row(row: Row) -> dict[str, object]:
    """For a program."""
    return asdict(row)


def as_text(row: Row) -> str:
    """For a person."""
    return (
        f"{row.database}, {row.clients} clients, batches of {row.batch}: {row.pairs_per_s:.0f} pairs/s, "
        f"median {row.p50_ms:.0f} ms, 99th percentile {row.p99_ms:.0f} ms, at most {row.max_ms:.0f} ms; "
        f"{row.refused} refused, {row.failed} failed, {row.lost} lost, {row.doubled} doubled"
    )
