"""Runs that are launched together, beside one that is there: methods times seeds times numbers of labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets import service as datasets
from app.runs import service
from app.runs.errors import BadSweep, RunNotFound
from app.runs.finding import WITHOUT_RESULTS
from app.runs.labels import facts_of, freeze, thaw
from app.runs.models import Run
from app.runs.pairs import Pair
from app.runs.service import FrozenLabels
from app.storage import Storage
from clarinet.files.label_table import Labels
from clarinet.files.names import NO_LABEL
from clarinet.recipes.choices import Looks

PAPER = ("clarinet", "gac", "gac+dan", "gac+dann", "gac+cdan_e")
"""The paper's five methods."""
MOST_RUNS = 30
MOST_TRIALS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What to launch beside a run.

    Args:
        methods: to launch.
        seeds: of each run.
        labels: how many of the run's labels each trains on; empty: all.
        preset: of each method; None: the one that fits the images.
        download_weights: as of `start_run`.
    """

    methods: Sequence[str]
    seeds: Sequence[int]
    labels: Sequence[int] = ()
    preset: str | None = None
    download_weights: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a sweep trains on: the images of the run, and its labels in each number."""

    pair: Pair
    labels: list[FrozenLabels]


def prepare(session: Session, storage: Storage, run: Run, sweep: Sweep, *, by: User) -> Prepared:
    """Look at the run's images and freeze parts of its labels; give a session that only looks.

    Raises:
        NotAllowed: `by` is no admin.
        BadSweep: too much, nothing, or more labels than there are.
        StoredFileMissing, StoredFileDamaged: the run's labels cannot be read.
    """
    accounts.require_admin(by)
    methods, numbers = list(dict.fromkeys(sweep.methods)), sorted(set(sweep.labels))
    count = len(methods) * max(1, len(numbers))
    if not methods:
        raise BadSweep("Choose one method or more.")
    if count > MOST_RUNS or count * len(sweep.seeds) > MOST_TRIALS:
        raise BadSweep(
            f"That would be {count} runs with {count * len(sweep.seeds)} trainings; at most {MOST_RUNS} and "
            f"{MOST_TRIALS} can be launched at once."
        )
    whole = thaw(storage, run.snapshot_digest, num_classes=len(run.snapshot_facts["classes"]))
    if numbers and not 1 <= numbers[0] <= numbers[-1] <= len(whole):
        raise BadSweep(f"Numbers of labels lie between 1 and {len(whole):,}, which the run has.")
    all_of_them = FrozenLabels(run.campaign_id, run.snapshot_digest, _facts(run))
    parts = [
        all_of_them if number == len(whole) else _part(storage, run, whole, number) for number in numbers
    ]
    return Prepared(_pair(session, storage, run, by=by), parts or [all_of_them])


def launch(
    session: Session, run: Run, sweep: Sweep, prepared: Prepared, *, by: User, now: datetime
) -> list[Run]:
    """Queue the runs of a sweep; they share an id, and are in the setting of the run beside which they stand.

    Raises:
        BadSeeds, BadConfig, OneClassAlone: as `start_run`.
    """
    sweep_id = uuid4()
    return [
        service.start_run(
            session,
            labels,
            prepared.pair,
            method=method,
            setting=run.setting,
            preset=sweep.preset,
            seeds=sweep.seeds,
            config={},
            note=f"Beside run {run.number}",
            download_weights=sweep.download_weights,
            sweep_id=sweep_id,
            by=by,
            now=now,
        )
        for method in dict.fromkeys(sweep.methods)
        for labels in prepared.labels
    ]


def runs_of(session: Session, sweep_id: UUID, *, by: User) -> list[Run]:
    """The runs that were launched together and are still there, oldest first.

    Raises:
        NotAllowed: `by` is no admin.
        RunNotFound: all of them were deleted.
    """
    accounts.require_admin(by)
    query = select(Run).where(Run.sweep_id == sweep_id).options(WITHOUT_RESULTS).order_by(Run.number)
    found = list(session.scalars(query))
    if not found:
        raise RunNotFound
    return found


def _facts(run: Run) -> dict[str, Any]:
    return {name: value for name, value in run.snapshot_facts.items() if name != "dataset_version"}


def _part(storage: Storage, run: Run, whole: Labels, number: int) -> FrozenLabels:
    """So many of a run's labels, drawn without replacement; a smaller part lies within each larger one."""
    drawn = np.random.default_rng(int(run.snapshot_digest[:16], 16)).permutation(len(whole))[:number]
    kept = np.sort(drawn)
    part = whole.at(kept)
    facts = _facts(run)
    told = facts_of(
        part,
        classes=facts["classes"],
        answers=number,
        simulated=round(number * facts["simulated_share"]),
        unfinished=facts["is_unfinished"],
        imported=facts.get("imported", 0),
        set_aside=facts.get("set_aside", 0),
        by_belief=0 if part.excluded is None else int((part.excluded != NO_LABEL).any(1).sum()),
        left_out=facts.get("left_out", 0),
    )
    told |= {"part_of": run.snapshot_digest, "part_of_labels": len(whole)}
    return FrozenLabels(run.campaign_id, freeze(storage, part), told)


def _pair(session: Session, storage: Storage, run: Run, *, by: User) -> Pair:
    """The very images that the run trains on."""
    source_id = session.scalars(select(Campaign.dataset_id).where(Campaign.id == run.campaign_id)).one()
    both = [datasets.get_dataset(session, id_, by=by) for id_ in (source_id, run.target_dataset_id)]
    looks: dict[UUID, Looks] = {each.id: datasets.looks_of(session, storage, each) for each in both}
    return Pair(
        target_id=run.target_dataset_id,
        source_version=run.source_version,
        target_version=run.target_version,
        looks_by_id=looks,
        in_colour=(both[0].in_colour, both[1].in_colour),
    )
