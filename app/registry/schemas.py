"""What the JSON API of models returns."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from app.schemas import Output


class ModelRead(Output):
    """A published model with its card."""

    id: UUID
    trial_id: UUID
    digest: str = Field(description="SHA-256 of the weights")
    size_bytes: int
    card: dict[str, Any]
    created_at: datetime


class ModelList(Output):
    """A page of models, newest first; give `next` as `after` for the page after it."""

    items: list[ModelRead]
    next: UUID | None
