"""Which images score runs, and what people measured where none does."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.datasets.models import DatasetVersion
from app.evaluations import service as evaluations
from app.evaluations.models import Evaluation
from app.runs.estimates import is_too_small
from app.runs.models import Run, Trial
from app.runs.targets import scored_images, scored_of, unscored_of
from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.source_accuracy import SourceEstimate


def scoring_of(session: Session, runs: Sequence[Run]) -> dict[UUID, tuple[ScoredOn, str]]:
    """By run id the images that score it, and which do not, in words."""
    target_ids = {run.target_dataset_id for run in runs}
    query = select(DatasetVersion).where(DatasetVersion.dataset_id.in_(target_ids))
    targets = {(target.dataset_id, target.number): target for target in session.scalars(query)}
    told = _scored_by_run(session, runs)
    # Runs of one campaign and target share what scores them.
    shared: dict[object, tuple[ScoredOn, str]] = {}
    found: dict[UUID, tuple[ScoredOn, str]] = {}
    for run in runs:
        target = targets[run.target_dataset_id, run.target_version]
        classes = run.snapshot_facts["classes"]
        key = (target.id, *classes)
        if key not in shared:
            shared[key] = scored_images(target, classes), unscored_of(target, classes)
        images, unscored = shared[key]
        found[run.id] = told.get(run.id, images), unscored
    return found


def source_images(session: Session, runs: Sequence[Run]) -> dict[UUID, int]:
    """By run id how many images of its source people can be asked about."""
    query = select(DatasetVersion.dataset_id, DatasetVersion.number, DatasetVersion.train_count)
    ids = {run.source_dataset_id for run in runs}
    counts = {
        (dataset_id, number): count
        for dataset_id, number, count in session.execute(query.where(DatasetVersion.dataset_id.in_(ids)))
    }
    wanted = {run.id: (run.source_dataset_id, run.source_version) for run in runs}
    return {run_id: counts[key] for run_id, key in wanted.items() if key in counts}


def has_small_source(session: Session, run: Run, estimate: Mapping[str, Any] | None) -> bool:
    """Whether the source has too few pictures for the "no" answers that a card's estimate of it lacks."""
    if estimate is None:
        return False
    images = source_images(session, [run]).get(run.id)
    return is_too_small(SourceEstimate.from_dict(estimate), run, images)


def measured(session: Session, scoring: dict[UUID, tuple[ScoredOn, str]]) -> dict[UUID, evaluations.Measured]:
    """By run id what people measured, where no labelled test image scores the run."""
    unmeasured = [run_id for run_id, (on, _) in scoring.items() if on.split != "test" or not on.images]
    return evaluations.measured_by_people(session, unmeasured)


def accuracies_by_people(session: Session) -> dict[UUID, float]:
    """Of every run whose headline they are; few runs are judged by people."""
    runs = session.scalars(select(Run).where(Run.id.in_(select(Evaluation.run_id)))).all()
    found = measured(session, scoring_of(session, runs))
    return {run_id: item.interval.estimate for run_id, item in found.items()}


def _scored_by_run(session: Session, runs: Iterable[Run]) -> dict[UUID, ScoredOn]:
    """What the results of runs say of the images that scored them; without those that no seed has ended."""
    # All seeds of a run say the same, and a result may be long: one of each is read.
    first = (
        select(Trial.run_id, func.min(Trial.seed).label("seed"))
        .where(Trial.run_id.in_([run.id for run in runs]), Trial.result.is_not(None))
        .group_by(Trial.run_id)
        .subquery()
    )
    rows = session.execute(
        select(Trial.run_id, Trial.result["scored"], Trial.result["scored_on"]).join(
            first, (Trial.run_id == first.c.run_id) & (Trial.seed == first.c.seed)
        )
    )
    found: dict[UUID, ScoredOn] = {}
    for run_id, scored, scored_on in rows:
        if scored is not None or scored_on is not None:
            facts = {"scored_on": scored_on} if scored is None else {"scored": scored}
            known = scored_of(facts)
            found |= {} if known is None else {run_id: known}
    return found
