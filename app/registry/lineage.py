"""Where a model comes from: run, campaign, frozen labels, and the versions of both datasets."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.datasets.models import Dataset, DatasetVersion
from app.runs.models import Run


@dataclass(frozen=True, slots=True)
class Origin:
    """A dataset as a run had it."""

    dataset_id: UUID
    name: str
    version: int
    digest: str | None  # SHA-256 over the digests of its images, in position order


@dataclass(frozen=True, slots=True)
class Lineage:
    """Everything that a run's models come from, by the names of today and by digests that never change."""

    run_id: UUID
    run_number: int
    campaign_id: UUID
    campaign: str
    label_snapshot: str
    source: Origin
    target: Origin


def lineages(session: Session, runs: Sequence[Run]) -> dict[UUID, Lineage]:
    """The lineage of the models of runs, by run id."""
    used = {run.id: _used(run) for run in runs}
    pairs = {pair for both in used.values() for pair in both}
    query = (
        select(DatasetVersion.dataset_id, DatasetVersion.number, Dataset.name, DatasetVersion.digest)
        .join(Dataset, Dataset.id == DatasetVersion.dataset_id)
        .where(tuple_(DatasetVersion.dataset_id, DatasetVersion.number).in_(pairs))
    )
    origins = {
        (dataset_id, number): Origin(dataset_id, name, number, digest)
        for dataset_id, number, name, digest in session.execute(query)
        if number is not None  # a version that runs use has one
    }
    campaigns = dict(
        session.execute(
            select(Campaign.id, Campaign.name).where(Campaign.id.in_({run.campaign_id for run in runs}))
        ).all()
    )
    return {
        run.id: Lineage(
            run_id=run.id,
            run_number=run.number,
            campaign_id=run.campaign_id,
            campaign=campaigns[run.campaign_id],
            label_snapshot=run.snapshot_digest,
            source=origins[used[run.id][0]],
            target=origins[used[run.id][1]],
        )
        for run in runs
    }


def _used(run: Run) -> tuple[tuple[UUID, int], tuple[UUID, int]]:
    source, target = run.source_dataset_id, run.target_dataset_id
    return (source, run.source_version), (target, run.target_version)
