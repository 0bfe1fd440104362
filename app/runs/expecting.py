"""How long a training may take and how much memory, as earlier ones of the same recipe and images tell."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.runs.models import Run, Trial, TrialState
from app.runs.workers import live_workers

LOOKED_AT = 200  # newest trainings of the method on these images


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a seed took on one kind of device; only what was measured is told.

    Args:
        device: in its worker's words; "" of trainings that did not note it.
        is_here: whether a worker that has it takes trainings now.
        seconds, longest: the median and the longest of these trainings; None where there is none.
        memory_bytes: the most that the process of one of them held; None where nobody measured it.
        trainings: how many.
        runs: numbers of the runs that had them.
    """

    device: str
    is_here: bool
    seconds: float | None
    longest: float | None
    memory_bytes: int | None
    trainings: int
    runs: list[int]


def expected(
    session: Session, *, source_id: UUID, target_id: UUID, config: Mapping[str, Any], now: datetime
) -> list[Expected]:
    """From trainings that ended well with the very configuration, by device; devices that are there first.

    A device that is there and has trained nothing like it is told as well, without figures. Versions of the
    datasets may differ: they hold the same images and some more.
    """
    # As an integer PostgreSQL would read no more than 2 GB.
    noted = Trial.result["device"].as_string(), Trial.result["memory_bytes"].as_float()
    rows = session.execute(
        select(Run.number, Run.config, Trial.last_metric, *noted)
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
    here = {worker.device for worker in live_workers(session, now=now)}
    known: dict[str, list[tuple[int, float, int | None]]] = defaultdict(list)
    for number, ran, kept, device, memory in rows:
        if kept and ran == dict(config):
            known[device or ""].append((number, kept["seconds"], None if memory is None else int(memory)))
    devices = sorted(here | known.keys(), key=lambda each: (each not in here, each not in known, each))
    return [_of(device, known.get(device, []), is_here=device in here) for device in devices]


def _of(device: str, known: list[tuple[int, float, int | None]], *, is_here: bool) -> Expected:
    seconds = [took for _, took, _ in known]
    return Expected(
        device=device,
        is_here=is_here,
        seconds=median(seconds) if seconds else None,
        longest=max(seconds, default=None),
        memory_bytes=max((memory for *_, memory in known if memory is not None), default=None),
        trainings=len(known),
        runs=sorted({number for number, *_ in known}),
    )
