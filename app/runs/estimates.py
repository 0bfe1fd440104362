"""What is shown of the accuracy on the source: of a metric of any version, and over the seeds. Pure."""

from collections.abc import Sequence
from statistics import fmean

from app.runs.models import Metric, Run
from clarinet.recipes.config import flattened
from clarinet.recipes.source_accuracy import SourceEstimate, of_earlier_version


def estimate_of(run: Run, metric: Metric) -> SourceEstimate | None:
    """The estimate that an epoch of a run told, or what it lacked; None where there was nothing to tell."""
    if metric.source_estimate is not None:
        return SourceEstimate.from_dict(metric.source_estimate)
    if metric.source_accuracy_estimate is None:
        return None
    return of_earlier_version(
        metric.source_accuracy_estimate,
        metric.source_accuracy_error,
        num_classes=len(run.snapshot_facts["classes"]),
        config=flattened(run.config),
    )


def over_seeds(found: Sequence[SourceEstimate]) -> SourceEstimate | None:
    """The mean of estimates and of their ends; while none is there, the one that lacks most.

    The held-out labels differ by seed but come from one campaign, so that an interval of their mean would
    promise too much.
    """
    known = [
        (each.estimate, each.low, each.high)
        for each in found
        if each.estimate is not None and each.low is not None and each.high is not None
    ]
    if not known:
        return max(found, key=lambda each: each.missing, default=None)
    estimate, low, high = (fmean(values) for values in zip(*known, strict=True))
    held_out = min(each.held_out for each in found if each.estimate is not None)
    return SourceEstimate(
        estimate=estimate, low=low, high=high, held_out=held_out, needed=found[0].needed, missing=0
    )


def is_too_small(found: SourceEstimate, run: Run, images: int | None) -> bool:
    """Whether so many images can never have the "no" answers that an estimate lacks."""
    most = None if images is None else images * (len(run.snapshot_facts["classes"]) - 1)
    return most is not None and found.missing > most - sum(run.snapshot_facts["complementary"])
