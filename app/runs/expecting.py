"""How long a training may take, as earlier ones of the same recipe on the same images tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.runs.models import Run, Trial, TrialState

LOOKED_AT = 200  # newest trainings of the method on these images


@dataclass(frozen=True, slots=True)
class Expected:
    """What a seed took: the median and the longest of so many trainings, which these runs had."""

    seconds: float
    longest: float
    trainings: int
    runs: list[int]


def expected(
    session: Session, *, source_id: UUID, target_id: UUID, config: Mapping[str, Any]
) -> Expected | None:
    """From trainings that ended well with the very configuration; None where there is none.

    Versions of the datasets may differ: they hold the same images and some more.
    """
    rows = session.execute(
        select(Run.number, Run.config, Trial.last_metric)
        .join(Trial, Trial.run_id == Run.id)
        .join(Campaign, Campaign.id == Run.campaign_id)
        .where(
            Run.method == config["method"],
            Run.target_dataset_id == target_id,
            Campaign.dataset_id == source_id,
            Trial.state == TrialState.SUCCEEDED,
        )
        .order_by(Run.number.desc())
        .limit(LOOKED_AT)
    )
    known = [(number, kept["seconds"]) for number, ran, kept in rows if kept and ran == dict(config)]
    if not known:
        return None
    seconds = [took for _, took in known]
    return Expected(median(seconds), max(seconds), len(known), sorted({number for number, _ in known}))
