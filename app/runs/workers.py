"""Workers that were seen: written by their heartbeats, read by upkeep and pages."""

import platform
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version

from sqlalchemy import ColumnElement, case, delete, select, update
from sqlalchemy.orm import Session, joinedload

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.runs.models import Trial, TrialState, Worker

# A worker is believed alive this long after its last beat, which comes every 5 s.
SEEN = timedelta(seconds=30)
FORGOTTEN = timedelta(hours=1)
# Processes that take no jobs; each writes a row that names it in place of queues.
WEB, UPKEEP = "web", "upkeep"
DOCTOR = "doctor"
SERVICES = (WEB, UPKEEP, DOCTOR)
# Once an hour upkeep walks over all files, which takes minutes where there are many.
UPKEEP_SEEN = timedelta(minutes=10)
SEPARATOR = "/"  # between the worker that holds a claim and its process that does the work


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a worker runs on; the memory is that of its GPU, or else of the host.

    `weights` are the names of trained weights that were downloaded there; None: nobody looked.
    `most_processes` is into how many it can split a run, 0 where it takes none from the queue: it leaves
    trainings to a cluster, or was started there for one of them.
    """

    host: str
    process: str
    version: str
    memory_bytes: int | None
    memory_free_bytes: int | None
    started_at: datetime
    weights: list[str] | None = None
    most_processes: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerNow:
    """A worker, the trials that it trains, and for how long it has been silent; None: it is there."""

    row: Worker
    trials: list[Trial]
    silent_s: float | None


def process_name(process_id: int) -> str:
    """What a worker on this host is called in claims."""
    return f"{platform.node()[:100]}:{process_id}"


def worker_of(holder: str) -> str:
    """The worker whose process holds a claim, by who holds it."""
    return holder.rpartition(SEPARATOR)[0] or holder


def own_version() -> str:
    """Of this program; "" where it runs from its sources."""
    try:
        return version("clarinet")[:40]
    except PackageNotFoundError:
        return ""


def record_worker(
    session: Session, name: str, *, queues: str, device: str, machine: Machine | None = None, now: datetime
) -> None:
    """Note that a worker is alive and consuming."""
    known = asdict(machine) if machine else {}
    session.merge(Worker(name=name, queues=queues, device=device, seen_at=now, **known))


def note_trouble(session: Session, worker: str, trouble: str | None) -> None:
    """Say why a worker, by its process, takes no trainings; None: it takes them."""
    session.execute(update(Worker).where(Worker.process == worker).values(trouble=trouble))


def record_service(session: Session, name: str, kind: str, *, version: str, now: datetime) -> None:
    """Note that a process which takes no jobs, a web process or an upkeep, can write."""
    row = Worker(
        name=name, queues=kind, device="", seen_at=now, host=platform.node()[:120], version=version[:40]
    )
    session.merge(row)


def seen_queues(session: Session, *, now: datetime) -> set[str]:
    """What was done by somebody a moment ago: the queues of live workers, and the kinds of services."""
    rows = session.scalars(select(Worker.queues).where(_is_there(now)).distinct())
    return {queue for row in rows for queue in row.split(",")}


def _is_there(now: datetime) -> ColumnElement[bool]:
    patience = case({UPKEEP: now - UPKEEP_SEEN}, value=Worker.queues, else_=now - SEEN)
    return Worker.seen_at > patience


def is_seen_here(session: Session, kind: str, *, now: datetime) -> bool:
    """Whether a process of this host said a moment ago that it takes this queue, or is this service."""
    rows = session.scalars(select(Worker.queues).where(Worker.host == platform.node()[:120], _is_there(now)))
    return any(kind in row.split(",") for row in rows)


def training_workers(session: Session) -> list[Worker]:
    """Workers that take trainings, the one seen last first."""
    workers = session.scalars(select(Worker).order_by(Worker.seen_at.desc(), Worker.name))
    return [worker for worker in workers if trains(worker)]


def trains(worker: Worker) -> bool:
    """Whether it takes trainings."""
    return jobs.QUEUE_OF[jobs.TRAIN_TRIAL] in worker.queues.split(",")


def live_workers(session: Session, *, now: datetime) -> list[Worker]:
    """Workers that take trainings and were consuming a moment ago."""
    return [worker for worker in training_workers(session) if worker.seen_at > now - SEEN]


def can_split(worker: Worker, processes: int) -> bool:
    """Whether it can train a run in so many processes, as far as it told."""
    return worker.most_processes is None or worker.most_processes >= processes


def able_workers(workers: Sequence[Worker], processes: int) -> set[str]:
    """The processes of those that could train a run now, in so many processes of its own.

    One of another version may not know the settings of a run, and one in trouble takes nothing. A job that a
    cluster started for one trial takes no other, and what hands trials to a cluster trains none.
    """
    version = own_version()
    return {
        each.process
        for each in workers
        if not each.trouble and each.version == version and can_split(each, processes)
    }


def weights_of_workers(session: Session, *, now: datetime) -> list[str] | None:
    """Names of trained weights that live workers need not download any more.

    None: no worker is there, or one of them does not say what it has, as of an earlier version. What hands
    trials to a cluster cannot say what the nodes there have.
    """
    told = [
        None if worker.most_processes == 0 else worker.weights for worker in live_workers(session, now=now)
    ]
    if not told or None in told:
        return None
    return [name for names in told for name in names or ()]


def all_workers(session: Session, *, by: User, now: datetime) -> list[WorkerNow]:
    """Workers that were seen within the hour, by name; first those that are there.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    held = (
        select(Trial)
        .where(Trial.state == TrialState.RUNNING, Trial.claimed_until >= now)
        .options(joinedload(Trial.run))
        .order_by(Trial.started_at)
    )
    trained: dict[str, list[Trial]] = defaultdict(list)
    for trial in session.scalars(held):
        trained[worker_of(trial.claimed_by or "")].append(trial)
    found = []
    taking = select(Worker).where(Worker.seen_at >= now - FORGOTTEN, Worker.queues.not_in(SERVICES))
    for row in session.scalars(taking.order_by(Worker.name)):
        silent = None if row.seen_at > now - SEEN else (now - row.seen_at).total_seconds()
        found.append(WorkerNow(row, trained[row.process] if row.process else [], silent))
    return sorted(found, key=lambda worker: worker.silent_s or 0)


def forget_workers(session: Session, *, now: datetime) -> None:
    """Drop the rows of workers that have been silent for long."""
    session.execute(delete(Worker).where(Worker.seen_at < now - FORGOTTEN))
