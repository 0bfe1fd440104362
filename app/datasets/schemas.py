"""What the JSON API of datasets accepts and returns."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from app.datasets.models import DatasetState, Split
from app.datasets.uploads import Kind
from app.schemas import Input, Name, Output, Text
from clarinet.recipes.choices import Looks


class DatasetCreate(Input):
    """What is said about a new dataset; the file comes beside it, or lies at `path` on the server."""

    name: Name
    description: Text = ""
    kind: Kind = Field(default="auto", description="auto looks inside the file")
    path: Annotated[str, StringConstraints(max_length=4096)] | None = Field(
        default=None, description="a file below one of the folders in CLARINET_DATASET_ROOTS"
    )


class DatasetRead(Output):
    """A dataset. While it is imported the counts are 0; see `progress` of `progress_total` images."""

    id: UUID
    name: str
    description: str
    state: DatasetState
    failure: str | None
    progress: int
    progress_total: int | None
    made: str | None
    class_names: list[str] | None
    channels: int | None
    looks: Looks | None = Field(
        description="what the images look like, which chooses a run's recipe; null until somebody looked"
    )
    train_count: int
    test_count: int
    digest: str | None
    size_bytes: int
    created_at: datetime


class DatasetPage(Output):
    """Datasets, newest first; `next` is the `after` of the following page."""

    items: list[DatasetRead]
    next: UUID | None = None


class ExampleRead(Output):
    """One image. `true_class` came with the data: it is there to score with, never to train on the target."""

    id: int
    position: int
    split: Split
    true_class: int | None
    digest: str
    media_type: str
    width: int
    height: int
    image_url: str


class ExamplePage(Output):
    """Examples in position order; `next` is the `after` of the following page."""

    items: list[ExampleRead]
    next: int | None = None
