"""What the JSON API of datasets accepts and returns."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH, MAX_CLASSES
from app.datasets.models import DatasetState, Split
from app.datasets.uploads import FirstClass, Kind, NamesEncoding
from app.schemas import Input, Name, Output, Text, printable
from clarinet.recipes.choices import Looks

MAX_CLASSES_TEXT = MAX_CLASSES * (MAX_CLASS_NAME_LENGTH + 1)

_ClassName = Annotated[str, StringConstraints(max_length=MAX_CLASS_NAME_LENGTH), AfterValidator(printable)]


class _Sent(Input):
    """What is said about a file of images; it comes beside it, or lies at `path` on the server."""

    kind: Kind = Field(default="auto", description="auto looks inside the file")
    skip_bad: bool = Field(default=False, description="go on without files that cannot be taken in")
    encoding: NamesEncoding = Field(
        default="", description="of the names in a zip that does not say it; empty finds out"
    )
    classes: Annotated[str, StringConstraints(max_length=MAX_CLASSES_TEXT)] = Field(
        default="", description="names for the classes of an npz that numbers them, from 0 on; one a line"
    )
    first_class: FirstClass = Field(
        default="",
        description="from which number an npz counts classes; empty: from 0, if that can be",
    )
    no_label: _ClassName = Field(
        default="",
        description="the class, by name or number, that stands for images whose class nobody knows, such as "
        "255; -1: no other does",
    )
    path: Annotated[str, StringConstraints(max_length=4096)] | None = Field(
        default=None, description="a file below one of the folders in CLARINET_DATASET_ROOTS"
    )


class DatasetCreate(_Sent):
    """What is said about a new dataset."""

    name: Name
    description: Text = ""


class ImagesAdd(_Sent):
    """What is said about further images of a dataset."""

    skip_known: bool = Field(
        default=True, description="leave out images that the dataset has already, pixel by pixel"
    )


class ImagesAddForm(ImagesAdd):
    """The same as a form."""

    skip_known: bool = False  # a box without a tick


class ImportAgain(Input):
    """The choice that a failed import lacked; `mend` of the dataset says which."""

    skip_bad: bool = Field(default=False, description="go on without the files that cannot be taken in")
    encoding: NamesEncoding = Field(default="", description="of the names in the zip")


class FaultRead(Output):
    """A file of an import that could not be taken in."""

    file: str
    why: str


class DatasetRead(Output):
    """A dataset. While it is imported the counts are 0; see `progress` of `progress_total` images."""

    id: UUID
    name: str
    description: str
    state: DatasetState
    failure: str | None
    progress: int
    progress_total: int | None
    mend: str | None = Field(
        description="by what choice a failed import may still succeed: skip_bad or say_encoding"
    )
    notes: list[str] = Field(description="what an admin should know of the import, in sentences")
    faults: list[FaultRead] = Field(description="files that could not be taken in; of many the first 100")
    contradictions: list[FaultRead] = Field(
        description="images of which something else says another class, or called like others; the first 100"
    )
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
    archived_at: datetime | None


class VersionRead(Output):
    """Images that joined a dataset together, or are about to: then `number` is null and the counts are 0.

    The counts, classes and digest are those of the whole dataset with these images.
    """

    id: UUID
    dataset_id: UUID
    number: int | None
    state: DatasetState
    failure: str | None
    progress: int = Field(
        description="images taken in so far; of a published version, how many joined with it"
    )
    progress_total: int | None
    mend: str | None = Field(
        description="by what choice a failed import may still succeed: skip_bad or say_encoding"
    )
    notes: list[str]
    faults: list[FaultRead]
    contradictions: list[FaultRead]
    first_position: int | None = Field(description="of its own images, which lie behind all others")
    class_names: list[str] | None
    train_count: int
    test_count: int
    digest: str | None
    created_at: datetime
    published_at: datetime | None


class VersionList(Output):
    """What a dataset was made of, oldest first; then what is on its way or failed to join."""

    items: list[VersionRead]


class ClassesName(Input):
    """Names for classes that are called by their numbers."""

    names: list[Annotated[str, StringConstraints(max_length=MAX_CLASS_NAME_LENGTH)]] = Field(
        max_length=MAX_CLASSES, description="in the order of the numbers"
    )


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
    filename: str | None = Field(description="its path in what was imported, where it had one")
    digest: str
    media_type: str
    width: int
    height: int
    image_url: str


class ExamplePage(Output):
    """Examples in position order; `next` is the `after` of the following page."""

    items: list[ExampleRead]
    next: int | None = None
