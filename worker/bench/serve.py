"""How many questions a second the web process hands out and takes answers to, over HTTP, with nothing lost.

A real `clarinet serve` in a process of its own and clients in threads of this one, each with an account and a
connection of its own: what they take of the machine is part of the figure. No pictures are fetched, and
there is no gold.
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
    """What was measured in one case; times are of a pair, refused requests apart."""

    database: str
    clients: int
    batch: int
    requests: int  # per pair: 1 where answers bring the next questions, 2 where these are asked for
    pairs_per_s: float  # questions leased and answered
    p50_ms: float
    p99_ms: float
    max_ms: float
    longest_wait_ms: float  # for a pair, with requests that were refused and the pauses after them
    refused: int  # requests that were told to come again (503), warming up included
    failed: int  # anything else but success
    lost: int  # acknowledged answers that are not in the database
    doubled: int  # questions with more answers than they need, or twice by one person


@dataclass(frozen=True, slots=True)
class _Pair:
    """A batch leased and answered: when it ended, seconds of the served requests and of all, questions."""

    end: float
    seconds: float
    waited: float
    questions: int


@dataclass(slots=True)
class _Client:
    """One person's work and what came of it."""

    token: str
    took: list["_Pair"] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)  # keys of acknowledged answers
    refused: int = 0
    failed: int = 0


class _Clock:
    """Starts when all clients have a connection."""

    def __init__(self, clients: int, seconds: float) -> None:
        self.seconds = seconds
        self.started = 0.0
        self.all_here = threading.Barrier(clients, action=self._start, timeout=TIMEOUT_S)

    def _start(self) -> None:
        self.started = time.perf_counter()


def measure_serving(
    database_url: str, cases: Sequence[tuple[int, int, int]], *, seconds: float, say: Callable[[str], None]
) -> Iterator[Row]:
    """One row per case, each with people and a campaign of its own.

    Args:
        database_url: of an empty database; SQLite if none is named.
        cases: clients at work at once, questions per request, and requests per pair (1 or 2).
        seconds: each takes; a case ends earlier when no question is left. The first fifth is warming up.
        say: told what happens.
    """
    with fresh_context(database_url) as context, _serving(context) as port:
        for case in cases:
            clients, batch, _ = case
            say(f"{context.database.engine.dialect.name}, {clients} clients, batches of {batch}")
            yield _measured(context, port, case, seconds=seconds)


def _measured(context: Context, port: int, case: tuple[int, int, int], *, seconds: float) -> Row:
    clients, batch, _ = case
    examples = int(seconds * (PLENTY if batch == 1 else BATCHED_PLENTY)) + clients * batch
    with context.unit_of_work() as session:
        admin, people = add_people(session, clients)
        tokens = [accounts.create_token(session, person, "bench", now=utc_now())[1] for person in people]
        campaign_id = add_campaign(session, admin, add_dataset(session, admin, examples))
    open_campaign(context, campaign_id)
    workers = [_Client(token) for token in tokens]
    clock = _Clock(clients, seconds)
    threads = [
        threading.Thread(target=_work, args=(worker, port, campaign_id, case, clock), daemon=True)
        for worker in workers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _row(context, campaign_id, workers, case, since=clock.started + seconds / 5)


def _row(
    context: Context, campaign_id: UUID, workers: list[_Client], case: tuple[int, int, int], *, since: float
) -> Row:
    pairs = [pair for worker in workers for pair in worker.took if pair.end > since]
    if len(pairs) < 2:  # noqa: PLR2004
        raise RuntimeError("Too few answers went through to tell how fast it is.")
    ms = [1000 * pair.seconds for pair in pairs]
    # What ended after `since`, divided by the time until the last of it.
    span = max(pair.end for pair in pairs) - since
    lost, doubled = checked(context, campaign_id, set().union(*(worker.stored for worker in workers)))
    clients, batch, requests = case
    return Row(
        database=context.database.engine.dialect.name,
        clients=clients,
        batch=batch,
        requests=requests,
        pairs_per_s=sum(pair.questions for pair in pairs) / span,
        p50_ms=statistics.median(ms),
        p99_ms=statistics.quantiles(ms, n=100, method="inclusive")[98],
        max_ms=max(ms),
        longest_wait_ms=1000 * max(pair.waited for pair in pairs),
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


def _work(client: _Client, port: int, campaign_id: UUID, case: tuple[int, int, int], clock: _Clock) -> None:
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        clock.all_here.wait()
        _answer_until(client, connection, campaign_id, case, clock.started + clock.seconds)


def _answer_until(
    client: _Client,
    connection: HTTPConnection,
    campaign_id: UUID,
    case: tuple[int, int, int],
    deadline: float,
) -> None:
    _, batch, requests = case
    chance = random.Random(client.token)
    path = f"/api/v1/campaigns/{campaign_id}"
    headers = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}
    served = 0.0  # seconds of the requests of this pair that were served

    def post(what: str, body: object) -> Any:
        nonlocal served
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
            served += time.perf_counter() - start
            return json.loads(text)
        return None

    begun = time.perf_counter()
    leased = post("questions", {"count": batch})
    while leased and leased["questions"]:
        answers: dict[str, object] = {
            "answers": [
                {
                    "question_id": question["id"],
                    "value": "yes" if chance.random() < YES_RATE else "no",
                    "response_ms": 900,
                    "key": str(uuid4()),
                }
                for question in leased["questions"]
            ]
        }
        done = post("answers", answers | ({"next": {"count": batch}} if requests == 1 else {}))
        if done is None:
            return
        end = time.perf_counter()
        kept = [item["key"] for item in done["results"] if item["status"] in ("stored", "repeated")]
        client.stored.update(kept)
        client.took.append(_Pair(end, served, end - begun, len(kept)))
        begun, served = end, 0.0
        leased = done["next"] if requests == 1 else post("questions", {"count": batch})


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
        "-m",
        "worker.cli.main",
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
        f"{row.database}, {row.clients} clients, batches of {row.batch}, requests per pair: {row.requests}: "
        f"{row.pairs_per_s:.0f} pairs/s, "
        f"median {row.p50_ms:.0f} ms, 99th percentile {row.p99_ms:.0f} ms, at most {row.max_ms:.0f} ms, "
        f"longest wait {row.longest_wait_ms:.0f} ms; "
        f"{row.refused} refused, {row.failed} failed, {row.lost} lost, {row.doubled} doubled"
    )
