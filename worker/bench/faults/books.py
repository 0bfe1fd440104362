"""What must not be there in the end: processes, rows and files that nobody answers for."""

import time
from collections.abc import Iterable, Mapping
from uuid import UUID

from sqlalchemy import func, select

from app.annotation.models import Answer
from app.clock import utc_now
from app.datasets.models import Dataset
from app.disk.retention import Policy, tidy
from app.registry.models import Model
from app.runs.labels import key_of
from app.runs.models import Run, Trial
from app.runs.trials import CHECKPOINT, LOG, UNFINISHED, trial_prefix
from worker.bench.faults.hosts import Host, trainers_in
from worker.bench.serve import checked
from worker.context import Context

ENDING_S = 30.0


def lost_and_doubled(context: Context, campaign_id: UUID, book: Mapping[str, str]) -> tuple[int, int]:
    """Acknowledged answers that are missing or say something else, and what was counted twice.

    Args:
        context: of the database.
        campaign_id: which was answered.
        book: what people were told is kept: value by key.
    """
    lost, doubled = checked(context, campaign_id, set(book))
    with context.reading() as session:
        rows = session.execute(select(Answer.key, Answer.value)).all()
        keys = select(Answer.key).group_by(Answer.key).having(func.count() > 1)
        twice = len(session.scalars(keys).all())
    changed = sum(book.get(str(key), value.value) != value.value for key, value in rows)
    return lost + changed, doubled + twice


def orphans(context: Context, hosts: Iterable[Host]) -> list[str]:
    """Trainings that nobody holds, trials that nobody trains, and files that no row names.

    First what upkeep does each hour is done: it takes away what lost claims have left. A training whose trial
    has just ended is given time to end as well.
    """
    hosts = list(hosts)
    until = time.monotonic() + ENDING_S
    while any(trainers_in(host.folder) for host in hosts) and time.monotonic() < until:
        time.sleep(1)
    tidy(context.database, context.storage, Policy.of(context.settings), now=utc_now())
    with context.reading() as session:
        stuck = session.scalars(select(Trial.id).where(Trial.state.in_(UNFINISHED))).all()
        trials = session.scalars(select(Trial.id)).all()
        snapshots = session.scalars(select(Run.snapshot_digest)).all()
        models = session.scalars(select(Model.key)).all()
        datasets = session.scalars(select(Dataset.id)).all()
        unfinished = {trial_id for trial_id in trials if trial_id in set(stuck)}
    named = {key_of(digest) for digest in snapshots}
    named |= {f"{trial_prefix(trial_id)}/{LOG}" for trial_id in trials}
    named |= {f"{trial_prefix(trial_id)}/{CHECKPOINT}" for trial_id in unfinished}
    folders = (*(f"{key}/" for key in models), *(f"datasets/{dataset_id}/" for dataset_id in datasets))
    files = [about.key for about in context.storage.listed()]
    return [
        *(f"process {pid} on {host.name}" for host in hosts for pid in trainers_in(host.folder)),
        *(f"trial {trial_id}" for trial_id in stuck),
        *(f"file {key}" for key in files if key not in named and not key.startswith(folders)),
    ]
