"""What is sent and what comes back about images.

As the OpenAPI document has it; a test compares them field by field.
Answers may have more fields than are named here: a newer server says more.
"""

from typing import Literal, NotRequired, TypedDict

ImportState = Literal["importing", "ready", "failed"]
Looks = Literal["digits", "photographs"]


class Fault(TypedDict):
    """A file that an import has not taken."""

    file: str
    why: str


class Taken(TypedDict):
    """What an import of images says of itself."""

    id: str
    state: ImportState
    failure: str | None
    progress: int
    progress_total: int | None
    notes: list[str]
    faults: list[Fault]
    contradictions: list[Fault]
    class_names: list[str] | None
    train_count: int
    test_count: int
    digest: str | None
    created_at: str


class Dataset(Taken):
    """A named set of images of one domain."""

    name: str
    description: str
    channels: int | None
    looks: Looks | None
    size_bytes: int


class Version(Taken):
    """Images that were added to a dataset, and the dataset with them."""

    dataset_id: str
    number: int | None
    published_at: str | None


class FurtherImages(TypedDict):
    """How to read a file of images."""

    skip_bad: NotRequired[bool]
    skip_known: NotRequired[bool]
    encoding: NotRequired[str]
    classes: NotRequired[str]
    first_class: NotRequired[Literal["", "0", "1"]]
    no_label: NotRequired[str]


class NewDataset(TypedDict):
    """A dataset to make, and how to read its file."""

    name: str
    description: NotRequired[str]
    skip_bad: NotRequired[bool]
    encoding: NotRequired[str]
    classes: NotRequired[str]
    first_class: NotRequired[Literal["", "0", "1"]]
    no_label: NotRequired[str]


class Example(TypedDict):
    """One image of a dataset."""

    id: int
    position: int
    split: Literal["train", "test"]
    true_class: int | None
    filename: str | None
    digest: str
    media_type: str
    width: int
    height: int
