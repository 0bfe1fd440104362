"""What the JSON API of models returns."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import Path
from pydantic import Field, StringConstraints

from app.registry.lineage import Lineage
from app.registry.models import MAX_ALIAS, Model
from app.runs.models import Run
from app.schemas import Input, Name, Output, Text
from clarinet.files.beliefs import FLOOR_PERCENT

Alias = Annotated[
    str,
    Path(
        max_length=MAX_ALIAS,
        pattern=r"^[a-z][a-z0-9-]*$",
        description="small letters, digits and dashes, such as production",
    ),
]


class OriginRead(Output):
    """A dataset as the run had it."""

    dataset_id: UUID
    name: str
    version: int
    digest: str | None = Field(description="SHA-256 over the digests of its images, in position order")


class LineageRead(Output):
    """Where a model comes from, by the names of today and by digests that never change."""

    run_id: UUID
    run_number: int
    campaign_id: UUID
    campaign: str
    label_snapshot: str = Field(description="SHA-256 of the frozen labels")
    source: OriginRead
    target: OriginRead


class ModelRead(Output):
    """A published model with its card."""

    id: UUID
    trial_id: UUID
    run_id: UUID
    campaign_id: UUID
    source_dataset_id: UUID
    target_dataset_id: UUID
    name: str = Field(description="of its campaign, until an admin says otherwise")
    version: int = Field(description="of its name; none is given twice")
    aliases: list[str] = Field(description="words that stand for this version of its name")
    notes: str
    archived_at: datetime | None
    lineage: LineageRead
    digest: str = Field(description="SHA-256 of the weights file")
    tensors_digest: str | None = Field(
        description="SHA-256 over the weights alone: equal weights have equal ones; null: of an older version"
    )
    size_bytes: int
    card: dict[str, Any]
    chance: float = Field(description="the accuracy of guessing among its classes; beside the card's")
    created_at: datetime

    @classmethod
    def of(cls, model: Model, run: Run, lineage: Lineage, aliases: Sequence[str]) -> Self:
        """From the row, the run that trained it, and what stands beside both."""
        origin = {"campaign_id", "source_dataset_id", "target_dataset_id"}
        own = {
            name: getattr(model, name) for name in cls.model_fields.keys() - origin - {"lineage", "aliases"}
        }
        return cls(
            **own,
            **{name: getattr(run, name) for name in origin},
            lineage=LineageRead.model_validate(lineage),
            aliases=list(aliases),
        )


class ModelUpdate(Input):
    """What people say of a model; what is left out stays."""

    name: Name | None = Field(None, description="another name makes it the next version of that name")
    notes: Text | None = None


class ModelForm(Input):
    """The same as the page sends it: an empty field is empty."""

    name: Name
    notes: Text = ""


class AliasForm(Input):
    """A word, as the page sends it."""

    alias: Annotated[str, StringConstraints(max_length=MAX_ALIAS, pattern=r"^[a-z][a-z0-9-]*$")]


class RoundCreate(Input):
    """A further round of the campaign, by the model's belief."""

    floor_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=FLOOR_PERCENT,
        description="of each question's probability, shared by all classes alike that no answer ruled out",
    )


class ModelNameRead(Output):
    """A name, and what bears it."""

    name: str
    versions: int = Field(description="how many there are")
    last_version: int
    aliases: dict[str, UUID] = Field(description="the model for which each stands")


class ModelNameList(Output):
    """Names in their order; give `next` as `after` for the page after it."""

    items: list[ModelNameRead]
    next: str | None


class ModelList(Output):
    """A page of models, newest first; give `next` as `after` for the page after it."""

    items: list[ModelRead]
    next: UUID | None
