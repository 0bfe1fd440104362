"""What further workers, and seeds that share a process, save of a run's time: with real processes."""

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from uuid import UUID

from sqlalchemy import select

from app.clock import utc_now
from app.logs import configure_logs
from app.migrate import upgrade
from app.registry.models import Model
from app.runs.models import Trial
from app.runs.workers import SEEN, live_workers
from app.settings import Settings
from clarinet_client import Client
from worker.bench.ending import ending_in_order
from worker.bench.scale import serving
from worker.context import Context
from worker.demo.annotators import Plan, simulate
from worker.demo.perception import read_truth
from worker.demo.setup import prepare
from worker.local.processes import environment_of

LOOK_S = 0.2
PRESET = "digits-quick"
START_S = 300.0  # for a worker to say that it is there


@dataclass(frozen=True, slots=True)
class Case:
    """How many workers share a run, and how many of its seeds a process of theirs trains at once."""

    workers: int
    at_once: int


@dataclass(slots=True)
class Figures:
    """Seconds of each case in the order in which they were taken, and whether all had the same weights."""

    seeds: int
    epochs: int
    steps: int  # of each epoch
    cores: int
    seconds: dict[Case, list[float]] = field(default_factory=dict)
    are_equal: bool = True

    def ratio(self, case: Case) -> float:
        """How many times as fast as the first case, by medians."""
        first = next(iter(self.seconds.values()))
        return statistics.median(first) / statistics.median(self.seconds[case])


def measure_workers(
    cases: Sequence[Case], *, seeds: int, epochs: int, steps: int, repeats: int, say: Callable[[str], None]
) -> Figures:
    """Launch the same run for each case, in turns, in a fresh folder with the demonstration's digits.

    A case's seconds go from the launch to the end of the last seed. They hold the start of the training
    processes, not that of the workers.

    Raises:
        RuntimeError: a run did not end well, or a worker did not start.
    """
    figures = Figures(seeds, epochs, steps, os.cpu_count() or 1)
    known: dict[int, str | None] = {}
    with ending_in_order(), tempfile.TemporaryDirectory() as folder:
        settings = Settings(environment="test", data_dir=Path(folder), trainer_threads=1, _env_file=None)
        configure_logs(settings)
        context = Context.of(settings)
        upgrade(context.database.engine)
        demo, target_id, _ = prepare(settings)
        with serving(context) as url, Client(url, demo.admin_token) as client:
            campaign = client.campaigns.get(demo.campaign_id)
            simulate(
                client,
                campaign,
                Plan(),
                stop=threading.Event(),
                truth=read_truth(client, campaign),
                on_progress=lambda _: None,
            )
            for case in [case for _ in range(repeats) for case in cases]:
                with working(context, case):
                    start = time.perf_counter()
                    run = client.runs.launch(
                        demo.campaign_id,
                        str(target_id),
                        preset=PRESET,
                        seeds=[*range(seeds)],
                        config={"epochs": epochs, "steps_per_epoch": steps},
                    )
                    run = client.runs.wait(run["id"])
                    took = time.perf_counter() - start
                if run["state"] != "succeeded":
                    raise RuntimeError(f"the run of {case} ended {run['state']}")
                figures.seconds.setdefault(case, []).append(took)
                say(f"{_words(case)}: {took:.1f} s")
                digests = _digests(context, UUID(run["id"]))
                known = known or digests
                figures.are_equal &= digests == known
        context.database.dispose()
    return figures


@contextmanager
def working(context: Context, case: Case) -> Iterator[None]:
    """So many workers, no other ones; they are gone at the end."""
    environment = environment_of(context.settings) | {
        "CLARINET_TRIALS_AT_ONCE": str(case.at_once),
        "OMP_NUM_THREADS": "1",
    }
    _wait(context, 0)
    # The kernel ends those whom nobody is left to end.
    tied = ["--parent", str(os.getpid())]
    words = [sys.executable, "-m", "worker.cli.main", "worker", "--queues", "gpu", *tied]
    processes = [
        subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(case.workers)
    ]
    try:
        _wait(context, case.workers)
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _wait(context: Context, workers: int) -> None:
    """Until so many say that they are there; who left is believed there for a while."""
    deadline = time.monotonic() + START_S + SEEN.total_seconds()
    while time.monotonic() < deadline:
        with context.reading() as session:
            if len(live_workers(session, now=utc_now())) == workers:
                return
        time.sleep(LOOK_S)
    raise RuntimeError(f"there were never {workers} workers")


def _digests(context: Context, run_id: UUID) -> dict[int, str | None]:
    """Of the weights, by seed."""
    with context.reading() as session:
        rows = session.execute(
            select(Trial.seed, Model.tensors_digest)
            .join(Model, Model.trial_id == Trial.id)
            .where(Trial.run_id == run_id)
        )
        return dict(rows.tuples().all())


def _words(case: Case) -> str:
    workers = "one worker" if case.workers == 1 else f"{case.workers} workers"
    return f"{workers}, {case.at_once} at once"


def as_row(figures: Figures) -> dict[str, object]:
    """For a program."""
    cases = [
        asdict(case) | {"seconds": seconds, "times_as_fast": figures.ratio(case)}
        for case, seconds in figures.seconds.items()
    ]
    same = {name: getattr(figures, name) for name in ("seeds", "epochs", "steps", "cores")}
    return same | {"cases": cases, "same_weights": figures.are_equal}


def as_text(figures: Figures) -> str:
    """For a person."""
    lines = [
        f"{figures.seeds} seeds of {figures.epochs} epochs of {figures.steps} steps, {figures.cores} cores"
    ]
    for case, seconds in figures.seconds.items():
        ratio = f"{figures.ratio(case):.2f} times as fast as the first"
        lines.append(f"{_words(case)}: {statistics.median(seconds):.1f} s, {ratio}")
    lines.append("Every seed has the same weights in all." if figures.are_equal else "WEIGHTS DIFFER.")
    return "\n".join(lines)
