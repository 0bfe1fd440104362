"""How many questions a second the web process hands out and takes answers to, over HTTP, with nothing lost.

A real `clarinet serve` runs in a process of its own, and clients in threads of this one. Each client has an
account and a connection of its own; what they take of the machine is part of the figure. No pictures are
fetched, and there is no gold. For comparison, rows of the plain execution (`create_app`) come in turns with
the others, from a second process.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import product
from uuid import UUID

from sqlalchemy import func, select

from app.accounts import service as accounts
from app.annotation.models import OF_CLASS, Answer, Question
from app.clock import utc_now
from worker.bench.load import TIMEOUT_S, Client, Clock, work
from worker.bench.rows import add_campaign, add_dataset, add_people, fresh_context
from worker.bench.web import Execution, Server, serving
from worker.context import Context
from worker.drawing import open_campaign

PLENTY, BATCHED_PLENTY = 1_500, 12_000  # questions for each second: more than are answered


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured in one case; times are of a pair, refused requests apart."""

    path: Execution  # of the answers: `fast`, or `plain` for comparison
    database: str
    clients: int
    batch: int
    requests: int  # per pair: 1 where answers bring the next questions, 2 where these are asked for
    pairs_per_s: float  # questions leased and answered
    cpu_ms: float | None  # of the web process per pair; None where the system does not tell
    p50_ms: float
    p99_ms: float
    max_ms: float
    longest_wait_ms: float  # for a pair, with requests that were refused and the pauses after them
    refused: int  # requests that were told to come again (503), warming up included
    failed: int  # anything else but success
    lost: int  # acknowledged answers that are not in the database
    doubled: int  # questions with more answers than they need, or twice by one person


def measure_serving(
    database_url: str,
    cases: Sequence[tuple[int, int, int]],
    *,
    seconds: float,
    say: Callable[[str], None],
    paths: Sequence[Execution] = ("fast",),
    repeats: int = 1,
) -> Iterator[Row]:
    """A row per case, repeat and path, in this order, each with people and a campaign of its own.

    Args:
        database_url: of an empty database; SQLite if none is named.
        cases: clients at work at once, questions per request, and requests per pair (1 or 2).
        seconds: each takes; a case ends earlier when no question is left. The first fifth is warming up.
        say: told what happens.
        paths: what serves the answers, in turns.
        repeats: of each case.
    """
    with fresh_context(database_url) as context, ExitStack() as servers:
        served = {path: servers.enter_context(serving(context, path)) for path in paths}
        for case, _, path in product(cases, range(repeats), paths):
            clients, batch, _ = case
            say(f"{context.database.engine.dialect.name}, {clients} clients, batches of {batch}, {path}")
            yield measured(context, served[path], case, path, seconds=seconds)


def measured(
    context: Context, server: Server, case: tuple[int, int, int], path: Execution, *, seconds: float
) -> Row:
    """A row of one case, with people and a campaign of its own; other arguments as `measure_serving`."""
    clients, batch, _ = case
    examples = int(seconds * (PLENTY if batch == 1 else BATCHED_PLENTY)) + clients * batch
    with context.unit_of_work() as session:
        admin, people = add_people(session, clients)
        tokens = [accounts.create_token(session, person, "bench", now=utc_now())[1] for person in people]
        campaign_id = add_campaign(session, admin, add_dataset(session, admin, examples))
    open_campaign(context, campaign_id)
    workers = [Client(token) for token in tokens]
    clock = Clock(clients, seconds)
    address = (server.host, server.port)
    threads = [
        threading.Thread(target=work, args=(worker, address, campaign_id, case, clock), daemon=True)
        for worker in workers
    ]
    for thread in threads:
        thread.start()
    clock.all_begun.wait(TIMEOUT_S)
    since = clock.started + seconds / 5
    time.sleep(max(0.0, since - time.perf_counter()))
    warm_s = server.cpu_s()
    for thread in threads:
        thread.join()
    end_s = server.cpu_s()
    cpu_s = None if warm_s is None or end_s is None else end_s - warm_s
    return _row(context, campaign_id, workers, case, path, since=since, cpu_s=cpu_s)


def _row(
    context: Context,
    campaign_id: UUID,
    workers: list[Client],
    case: tuple[int, int, int],
    path: Execution,
    *,
    since: float,
    cpu_s: float | None,
) -> Row:
    pairs = [pair for worker in workers for pair in worker.took if pair.end > since]
    if len(pairs) < 2:  # noqa: PLR2004
        raise RuntimeError("Too few answers went through to tell how fast it is.")
    ms = [1000 * pair.seconds for pair in pairs]
    # What ended after `since`, divided by the time until the last of it.
    span = max(pair.end for pair in pairs) - since
    lost, doubled = checked(context, campaign_id, set().union(*(worker.stored for worker in workers)))
    clients, batch, requests = case
    questions = sum(pair.questions for pair in pairs)
    return Row(
        path=path,
        database=context.database.engine.dialect.name,
        clients=clients,
        batch=batch,
        requests=requests,
        pairs_per_s=questions / span,
        cpu_ms=None if cpu_s is None else 1000 * cpu_s / questions,
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
            .where(here, Answer.value.in_(OF_CLASS), Answer.superseded_at.is_(None))
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


def as_row(row: Row) -> dict[str, object]:
    """For a program."""
    return asdict(row)


def as_text(row: Row) -> str:
    """For a person."""
    cpu = "" if row.cpu_ms is None else f"{row.cpu_ms:.2f} ms of the web process a pair, "
    return (
        f"{row.path}: {row.database}, {row.clients} clients, batches of {row.batch}, "
        f"requests per pair: {row.requests}: "
        f"{row.pairs_per_s:.0f} pairs/s, {cpu}"
        f"median {row.p50_ms:.0f} ms, 99th percentile {row.p99_ms:.0f} ms, at most {row.max_ms:.0f} ms, "
        f"longest wait {row.longest_wait_ms:.0f} ms; "
        f"{row.refused} refused, {row.failed} failed, {row.lost} lost, {row.doubled} doubled"
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of one case: medians of the plain rows divided by those of the fast ones."""

    database: str
    clients: int
    batch: int
    requests: int
    cpu_ratio: float | None  # so many times the processor time of the web process per pair
    pairs_ratio: float  # so many times fewer pairs a second


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    """How much more the plain execution needs, for each case that has rows of both."""
    found = []
    cases = {(row.database, row.clients, row.batch, row.requests): None for row in rows}
    for case in cases:
        here = [row for row in rows if (row.database, row.clients, row.batch, row.requests) == case]
        cpu = {path: _median(row.cpu_ms for row in here if row.path == path) for path in ("fast", "plain")}
        pace = {path: _median(row.pairs_per_s for row in here if row.path == path) for path in cpu}
        if pace["fast"] and pace["plain"]:
            ratio = cpu["plain"] / cpu["fast"] if cpu["plain"] and cpu["fast"] else None
            found.append(Comparison(*case, cpu_ratio=ratio, pairs_ratio=pace["fast"] / pace["plain"]))
    return found


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def as_sentence(found: Comparison) -> str:
    """For a person."""
    cpu = "" if found.cpu_ratio is None else f"{found.cpu_ratio:.2f} times the processor time a pair, "
    return (
        f"{found.database}, {found.clients} clients, batches of {found.batch}, requests per pair: "
        f"{found.requests}: the plain path takes {cpu}"
        f"and gives {1 / found.pairs_ratio:.2f} times the pairs a second (medians)"
    )
