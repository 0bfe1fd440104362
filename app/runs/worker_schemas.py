"""Workers as they leave the API."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import Field

from app.runs.workers import WorkerNow
from app.schemas import Output


class TrainedNow(Output):
    """A trial that a worker trains."""

    run_id: UUID
    run: int = Field(description="number of the run")
    seed: int


class WorkerProcess(Output):
    """A worker that was seen within the hour."""

    name: str
    queues: list[str] = Field(description="gpu: trainings; io: imports, draws and the like")
    host: str
    device: str = Field(description="what it trains on")
    memory_bytes: int | None = Field(description="of its GPU, or else of its host; null: nobody knows")
    memory_free_bytes: int | None
    version: str = Field(description="of Clarinet; empty: nobody knows")
    started_at: datetime | None
    seen_at: datetime
    silent_s: float | None = Field(description="null: it was there a moment ago")
    trouble: str | None = Field(description="why it takes no trainings, in a sentence; null: it takes them")
    trains: list[TrainedNow]

    @classmethod
    def of(cls, worker: WorkerNow) -> Self:
        """From its row and the trials that it holds."""
        row = worker.row
        names = cls.model_fields.keys() - {"queues", "silent_s", "trains"}
        return cls(
            **{name: getattr(row, name) for name in names},
            queues=row.queues.split(","),
            silent_s=worker.silent_s,
            trains=[
                TrainedNow(run_id=trial.run_id, run=trial.run.number, seed=trial.seed)
                for trial in worker.trials
            ],
        )


class WorkerProcessList(Output):
    """Workers, those that are there first."""

    items: list[WorkerProcess]
    next: str | None = Field(default=None, description="null: the list is whole")
