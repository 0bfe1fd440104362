"""How lists and comparisons of runs fare with their number: a thousand of them, half a million epochs."""

import statistics
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
import numpy as np
from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.clock import utc_now
from app.runs import configs
from app.runs.labels import freeze
from app.runs.models import Metric, Run, Trial, TrialState, kept_of
from clarinet.files.label_table import Labels
from worker.bench.rows import CLASSES, add_campaign, add_dataset, add_people, fresh_context
from worker.bench.scale import serving
from worker.context import Context

SEEDS = 5
VISITS = 15  # to each address
COMPARED = 20
SNAPSHOTS, LABELS = 7, 20_000
METHODS = ("clarinet-plus", "clarinet", "gac", "gac+dann", "gac+mcc")
INSERTED = 20_000  # rows a statement
CONFUSION = [[90 if row == column else 1 for column in range(len(CLASSES))] for row in range(len(CLASSES))]
FACTS = {
    "classes": list(CLASSES),
    "complementary": [450] * len(CLASSES),
    "true": [50] * len(CLASSES),
    "answers": 5000,
    "simulated_share": 0.0,
    "is_unfinished": False,
    "imported": 0,
    "set_aside": 0,
    "dataset_version": 1,
}
HITS = b64encode(bytes(range(250)) * 5).decode()
SCORED = {"split": "test", "images": 10_000, "of": 10_000}


@dataclass(slots=True)
class Figures:
    """What was measured; milliseconds by address, median and slowest of VISITS."""

    database: str
    runs: int
    metrics: int
    median_ms: dict[str, float] = field(default_factory=dict)
    slowest_ms: dict[str, float] = field(default_factory=dict)
    size_kb: dict[str, float] = field(default_factory=dict)


def measure_runs(database_url: str, runs: int, epochs: int, *, say: Callable[[str], None]) -> Figures:
    """Everything for one number of runs, in an empty database; SQLite if none is named."""
    with fresh_context(database_url) as context:
        figures = Figures(context.database.engine.dialect.name, runs, runs * SEEDS * epochs)
        say(f"{figures.database}: {runs} runs, {figures.metrics} epochs")
        with context.unit_of_work() as session:
            admin, _ = add_people(session, 0)
            token = accounts.create_token(session, admin, "runs", now=utc_now())[1]
            source, target = (add_dataset(session, admin, 1000) for _ in range(2))
            campaign_id = add_campaign(session, admin, source)
            digests = [freeze(context.storage, _labels(number)) for number in range(SNAPSHOTS)]
            ids = _add_runs(session, campaign_id, target, admin.id, digests, runs=runs, epochs=epochs)
        _settle(context)
        with serving(context) as url, httpx2.Client(base_url=url, timeout=600) as client:
            client.headers.update({"Authorization": f"Bearer {token}", "Accept": "text/html"})
            for name, address in _addresses(ids, campaign_id).items():
                say(name)
                _visit(client, figures, name, address)
        return figures


def _addresses(ids: list[UUID], campaign_id: UUID) -> dict[str, str]:
    compared = "&".join(f"run={run_id}" for run_id in ids[-COMPARED:])
    return {
        "list, newest": "/runs",
        "list of a campaign": f"/runs?campaign_id={campaign_id}",
        "list, highest first": "/runs?sort=-accuracy",
        "list, filtered": "/runs?method=gac&state=succeeded&text=7",
        "list, 200 as JSON": "/api/v1/runs?limit=200",
        f"comparison of {COMPARED}": f"/runs/compare?{compared}",
        f"comparison of {COMPARED} as JSON": f"/api/v1/runs/compare?{compared}",
    }


def _add_runs(
    session: Session,
    campaign_id: UUID,
    target_id: UUID,
    admin_id: UUID,
    digests: Sequence[str],
    *,
    runs: int,
    epochs: int,
) -> list[UUID]:
    """Runs that ended well, as rows alone; gives their ids, newest last."""
    now = utc_now()
    config = configs.config_for("clarinet-plus", "cc", None, {"epochs": epochs}, looks="digits")
    ids = [uuid4() for _ in range(runs)]
    trials = [(run, seed, uuid4()) for run in range(runs) for seed in range(SEEDS)]

    def metric(trial_id: UUID, run: int, seed: int, epoch: int) -> Metric:
        accuracy = 0.95 * epoch / (epoch + 3) - 0.0001 * run - 0.002 * seed
        return Metric(
            trial_id=trial_id,
            epoch=epoch,
            epochs=epochs,
            step=100 * epoch,
            seconds=2.0 * epoch,
            losses={"complementary": 1 / epoch, "adversary": 0.7, "discrepancy": 0.1},
            target_accuracy=max(0.0, accuracy),
            source_estimate=None,
            recorded_at=now,
        )

    _insert(
        session,
        Run,
        (
            {
                "id": ids[run],
                "number": run + 1,
                "campaign_id": campaign_id,
                "target_dataset_id": target_id,
                "method": METHODS[run % len(METHODS)],
                "setting": "cc",
                "preset": "digits",
                "config": config,
                "snapshot_digest": digests[run % len(digests)],
                "snapshot_facts": FACTS,
                "created_by_id": admin_id,
                "created_at": now - timedelta(minutes=runs - run),
            }
            for run in range(runs)
        ),
    )
    _insert(
        session,
        Trial,
        (
            {
                "id": trial_id,
                "run_id": ids[run],
                "seed": seed,
                "state": TrialState.SUCCEEDED,
                "queued_at": now,
                "started_at": now,
                "finished_at": now,
                "target_accuracy": metric(trial_id, run, seed, epochs).target_accuracy,
                "result": {
                    "confusion": CONFUSION,
                    "per_class_accuracy": [0.9] * 10,
                    "scored": SCORED,
                    "hits": HITS,
                },
                "last_metric": kept_of(metric(trial_id, run, seed, epochs)),
                "claim_number": 1,
                "attempts": 1,
            }
            for run, seed, trial_id in trials
        ),
    )
    names = [column.key for column in Metric.__table__.columns if column.key != "id"]
    _insert(
        session,
        Metric,
        (
            {name: getattr(row, name) for name in names}
            for run, seed, trial_id in trials
            for epoch in range(1, epochs + 1)
            for row in (metric(trial_id, run, seed, epoch),)
        ),
    )
    return ids


def _labels(number: int) -> Labels:
    """Labels that differ a little from one number to the next."""
    ids = np.arange(LABELS)
    return Labels(
        example_ids=ids,
        positions=ids,
        kinds=(ids % 10 == 0).astype(np.uint8),
        classes=(ids + ids // (10 + number)) % len(CLASSES),
        weights=np.ones(LABELS, np.float32),
        num_classes=len(CLASSES),
    )


def _insert(session: Session, kind: type[Any], rows: Iterator[dict[str, Any]]) -> None:
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == INSERTED:
            session.execute(insert(kind), waiting)
            waiting = []
    if waiting:
        session.execute(insert(kind), waiting)


def _settle(context: Context) -> None:
    if context.database.engine.dialect.name == "postgresql":
        with context.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))  # as its own upkeep does within minutes


def _visit(client: httpx2.Client, figures: Figures, name: str, address: str) -> None:
    took = []
    size = 0
    for _ in range(VISITS):
        start = time.perf_counter()
        size = len(client.get(address).raise_for_status().content)
        took.append(1000 * (time.perf_counter() - start))
    figures.median_ms[name], figures.slowest_ms[name] = statistics.median(took), max(took)
    figures.size_kb[name] = size / 1000


def as_row(figures: Figures) -> dict[str, object]:
    """For a program."""
    return asdict(figures)


def as_text(figures: Figures) -> str:
    """For a person."""
    lines = [f"{figures.database}, {figures.runs} runs of {SEEDS} seeds, {figures.metrics} epochs"]
    lines += [
        f"{name}: {median:.0f} ms, slowest {figures.slowest_ms[name]:.0f} ms, {figures.size_kb[name]:.0f} kB"
        for name, median in figures.median_ms.items()
    ]
    return "\n".join(lines)
