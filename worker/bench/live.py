"""`clarinet bench live`: what it costs others that many people look at a run which trains."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import timedelta
from http.client import HTTPConnection, HTTPException
from statistics import median, quantiles
from typing import Literal
from uuid import UUID

from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.claims import Claim
from app.clock import utc_now
from app.datasets import versions
from app.datasets.models import Dataset
from app.runs import configs, trials
from app.runs.models import Run, Trial
from worker.bench.rows import CLASSES, add_campaign, add_dataset, add_people, fresh_context
from worker.bench.web import serving
from worker.context import Context

# How the people who look are told of a new epoch: nobody looks; by the stream; each fetches the page, as it
# was done before there was the stream.
Way = Literal["nobody", "stream", "fetch"]
EPOCHS = 400
EPOCH_S = 1.0
PROBE_S = 0.1  # between two looks at another page
TIMEOUT_S = 30
PROBED = "/campaigns"
P90 = 8  # of the tenths


@dataclass(frozen=True, slots=True)
class Row:
    """What another page took meanwhile, in milliseconds, and what those who looked were told."""

    database: str
    way: Way
    viewers: int
    probes: int
    median_ms: float
    p90_ms: float
    told: int  # events or pages, over all viewers
    told_bytes: int
    server_cpu_share: float | None


@dataclass(slots=True)
class Viewer:
    """Somebody who has the page of the run open."""

    told: int = 0
    told_bytes: int = 0


def measure_live(
    database_url: str,
    *,
    viewers: int,
    seconds: float,
    repeats: int,
    say: Callable[[str], None],
    ways: Sequence[Way] = ("nobody", "stream", "fetch"),
) -> Iterator[Row]:
    """A row of each way, in turns."""
    for repeat in range(repeats):
        for way in ways:
            say(f"{way}, {repeat + 1} of {repeats}")
            with fresh_context(database_url) as context:
                yield _measure(context, way, viewers=viewers, seconds=seconds)


def _measure(context: Context, way: Way, *, viewers: int, seconds: float) -> Row:
    with context.unit_of_work() as session:
        admin, _ = add_people(session, 0)
        run, claim = _add_run(session, admin)
        _, token = accounts.create_token(session, admin, "bench", now=utc_now())
    ended = threading.Event()
    people = [Viewer() for _ in range(0 if way == "nobody" else viewers)]
    look = _listen if way == "stream" else _fetch
    with serving(context, "fast") as server:
        threads = [threading.Thread(target=_report, args=(context, claim, ended))]
        threads += [
            threading.Thread(target=look, args=(person, server.port, token, run, ended)) for person in people
        ]
        for thread in threads:
            thread.start()
        try:
            _probe(server.port, token, seconds=seconds / 5)  # warms up, and lets everybody come
            before, started = server.cpu_s(), time.perf_counter()
            took = _probe(server.port, token, seconds=seconds)
            after, over = server.cpu_s(), time.perf_counter()
        finally:
            ended.set()
            for thread in threads:
                thread.join(TIMEOUT_S)
    return Row(
        database=context.database.engine.dialect.name,
        way=way,
        viewers=len(people),
        probes=len(took),
        median_ms=median(took),
        p90_ms=quantiles(took, n=10)[P90],
        told=sum(person.told for person in people),
        told_bytes=sum(person.told_bytes for person in people),
        server_cpu_share=None if before is None or after is None else (after - before) / (over - started),
    )


def _add_run(session: Session, admin: User) -> tuple[UUID, Claim]:
    """A run of two seeds on ten classes, one of which trains."""
    campaign = session.get_one(Campaign, add_campaign(session, admin, add_dataset(session, admin, 1000)))
    target_id = add_dataset(session, admin, 1000)
    for scored in (session.get_one(Dataset, target_id), versions.version(session, target_id, 1)):
        scored.train_per_class = [100] * len(CLASSES)
    now = utc_now()
    run = Run(
        number=1,
        campaign_id=campaign.id,
        target_dataset_id=target_id,
        method="clarinet-plus",
        setting="cc",
        preset="digits",
        config=configs.config_for("clarinet-plus", "cc", "digits", {"epochs": EPOCHS}, looks="digits"),
        snapshot_digest="0" * 64,
        snapshot_facts={
            "classes": list(CLASSES),
            "complementary": [90] * len(CLASSES),
            "true": [10] * len(CLASSES),
            "answers": 1000,
            "simulated_share": 0.0,
            "is_unfinished": False,
        },
        created_by_id=admin.id,
        created_at=now,
        trials=[Trial(seed=seed, queued_at=now) for seed in (0, 1)],
    )
    session.add(run)
    session.flush()  # the claim needs its trials' ids
    claim = trials.claim_trial(session, run.trials[0].id, by="bench", now=now + timedelta(hours=1))
    assert claim is not None  # nobody else is here
    return run.id, claim


def _report(context: Context, claim: Claim, ended: threading.Event) -> None:
    """End an epoch every second."""
    for epoch in range(1, EPOCHS + 1):
        report = trials.Report(
            epoch=epoch,
            epochs=EPOCHS,
            step=epoch * 100,
            seconds=epoch * EPOCH_S,
            losses={"complementary": 1 / epoch, "adaptation": 0.5, "self_training": 0.25},
            target_accuracy=1 - 1 / (epoch + 1),
            source_estimate=None,
        )
        with context.unit_of_work() as session:
            trials.record_epoch(session, claim, report, now=utc_now())
        if ended.wait(EPOCH_S):
            return


def _probe(port: int, token: str, *, seconds: float) -> list[float]:
    """Milliseconds of another page, again and again."""
    took = []
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        until = time.perf_counter() + seconds
        while (started := time.perf_counter()) < until:
            connection.request("GET", PROBED, headers=_headers(token))
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:  # noqa: PLR2004
                raise RuntimeError(f"{PROBED} answered {answer.status}.")
            took.append(1000 * (time.perf_counter() - started))
            time.sleep(PROBE_S)
    return took


def _listen(person: Viewer, port: int, token: str, run: UUID, ended: threading.Event) -> None:
    """Follow the run by a stream of one's own, as each browser does."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        connection.request("GET", f"/live?run={run}", headers=_headers(token))
        answer = connection.getresponse()
        while not ended.is_set() and (line := answer.readline()):
            person.told += line.startswith(b"data:")
            person.told_bytes += len(line)


def _fetch(person: Viewer, port: int, token: str, run: UUID, ended: threading.Event) -> None:
    """Fetch the fragment of the page at each epoch."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        while not ended.is_set():
            started = time.perf_counter()
            try:
                connection.request("GET", f"/runs/{run}", headers={**_headers(token), "HX-Request": "true"})
                answer = connection.getresponse()
                person.told_bytes += len(answer.read())
                person.told += 1
            except (OSError, HTTPException):
                connection.close()  # told to come again, or too late
            ended.wait(max(0.0, EPOCH_S - (time.perf_counter() - started)))


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Accept": "text/html"}


def as_text(row: Row) -> str:
    """A row in words."""
    share = "" if row.server_cpu_share is None else f", server {100 * row.server_cpu_share:.0f} % of a core"
    took = f"{row.median_ms:.1f} ms, nine of ten within {row.p90_ms:.1f} ms ({row.probes} times)"
    told = f"told {row.told} times, {row.told_bytes / 1e6:.1f} MB"
    return f"{row.database}, {row.viewers} people ({row.way}): {PROBED} {took}{share}; {told}"


def as_row(row: Row) -> dict[str, object]:
    """A row for programs."""
    return asdict(row)


def ratio_of(rows: Sequence[Row], way: Way) -> float:
    """How many times as long another page takes, by the medians of the rows."""
    alone = median(row.median_ms for row in rows if row.way == "nobody")
    return median(row.median_ms for row in rows if row.way == way) / alone
