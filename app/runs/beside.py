"""What stands beside the accuracy of a run: how good guessing is, the source alone, the best earlier run."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Row, case, func, select
from sqlalchemy.orm import Session

from app.runs.models import Run, Trial, TrialState

SOURCE_ALONE = "gac"  # the method that learns from the source and does nothing for the target


@dataclass(frozen=True, slots=True)
class Other:
    """Another run on the same images: the mean of its seeds, all of which ended well."""

    id: UUID
    number: int
    method: str
    mean: float
    seeds: int


@dataclass(frozen=True, slots=True)
class Beside:
    """What an accuracy is compared with; fractions.

    Args:
        chance: of guessing among the classes.
        source_alone: the latest run of the source alone; None where there is none, and for such a run itself.
        best_earlier: of the runs that were started before.
    """

    chance: float
    source_alone: Other | None
    best_earlier: Other | None

    @property
    def lines(self) -> list[dict[str, object]]:
        """References for the plot, as curve.js takes them; of two that would cover each other, the first."""
        named = [("chance", self.chance)]
        named += [("source alone", self.source_alone.mean)] if self.source_alone else []
        named += [("best earlier run", self.best_earlier.mean)] if self.best_earlier else []
        apart: list[tuple[str, float]] = []
        for name, value in named:
            if all(abs(value - other) > LINES_APART for _, other in apart):
                apart.append((name, value))
        return [{"name": name, "value": value} for name, value in apart]


LINES_APART = 0.06  # of an axis from 0 to 1: the height of a line of text


def beside(session: Session, run: Run) -> Beside:
    """Of runs of the same campaign, setting and images of the target.

    Runs on other images of the target, as it was before some joined, are measured by something else.
    """
    mean = func.avg(Trial.target_accuracy)
    ended_well = func.sum(case((Trial.state == TrialState.SUCCEEDED, 1), else_=0))
    others = (
        select(Run.id, Run.number, Run.method, mean, func.count())
        .join(Trial, Trial.run_id == Run.id)
        .where(
            Run.campaign_id == run.campaign_id,
            Run.target_dataset_id == run.target_dataset_id,
            Run.target_version == run.target_version,
            Run.setting == run.setting,
            Run.id != run.id,
        )
        .group_by(Run.id, Run.number, Run.method)
        .having(ended_well == func.count(), func.count(Trial.target_accuracy) == func.count())
        .limit(1)
    )
    alone = others.where(Run.method == SOURCE_ALONE).order_by(Run.number.desc())
    earlier = others.where(Run.number < run.number).order_by(mean.desc(), Run.number)
    return Beside(
        chance=1 / len(run.snapshot_facts["classes"]),
        source_alone=None if run.method == SOURCE_ALONE else _other(session.execute(alone).first()),
        best_earlier=_other(session.execute(earlier).first()),
    )


def _other(row: Row[UUID, int, str, float, int] | None) -> Other | None:
    if row is None:
        return None
    id_, number, method, mean, seeds = row
    return Other(id_, number, method, mean, seeds)
