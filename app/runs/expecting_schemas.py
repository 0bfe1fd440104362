"""What the JSON API accepts and returns of what a training may take."""

from typing import Literal, Self
from uuid import UUID

from pydantic import Field

from app.runs.expecting import Expected
from app.schemas import Input, Output, Searched


class EstimateQuery(Input):
    """What would be trained; every hyper-parameter as the preset has it."""

    target_dataset_id: UUID
    method: Searched = Field(default="clarinet-plus", description="as when a run is started")
    setting: Literal["cc", "pc"] = "cc"
    preset: Searched | None = Field(default=None, description="absent: what fits the images")


class EstimateRead(Output):
    """What a seed took on one kind of device, in trainings of the recipe on these images."""

    device: str = Field(description="in its worker's words; empty: of trainings that did not note it")
    is_here: bool = Field(description="a worker that has it takes trainings now")
    seconds: float | None = Field(description="median; null: none has ended there")
    longest_seconds: float | None
    memory_bytes: int | None = Field(
        description="the most that a training's process held, of its GPU or else of its host; null: nobody "
        "measured it"
    )
    trainings: int
    runs: list[int] = Field(description="numbers of the runs that had them")

    @classmethod
    def of(cls, found: Expected) -> Self:
        """From what earlier trainings tell."""
        names = cls.model_fields.keys() - {"longest_seconds"}
        return cls(**{name: getattr(found, name) for name in names}, longest_seconds=found.longest)


class EstimateList(Output):
    """By device, those that are there first."""

    items: list[EstimateRead]
    next: str | None = Field(default=None, description="null: the list is whole")
