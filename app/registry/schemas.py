"""What the JSON API of models returns."""

from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import Field

from app.registry.models import Model
from app.runs.models import Run
from app.schemas import Output


class ModelRead(Output):
    """A published model with its card."""

    id: UUID
    trial_id: UUID
    run_id: UUID
    campaign_id: UUID
    source_dataset_id: UUID
    target_dataset_id: UUID
    digest: str = Field(description="SHA-256 of the weights")
    size_bytes: int
    card: dict[str, Any]
    created_at: datetime

    @classmethod
    def of(cls, model: Model, run: Run) -> Self:
        """From the row and the run that trained it."""
        origin = {"campaign_id", "source_dataset_id", "target_dataset_id"}
        own = {name: getattr(model, name) for name in cls.model_fields.keys() - origin}
        return cls(**own, **{name: getattr(run, name) for name in origin})


class ModelList(Output):
    """A page of models, newest first; give `next` as `after` for the page after it."""

    items: list[ModelRead]
    next: UUID | None
