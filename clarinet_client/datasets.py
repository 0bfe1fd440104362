"""Sets of images."""

from collections.abc import Callable, Iterator
from typing import Literal, TypeVar, Unpack

from clarinet_client import operations as op
from clarinet_client.errors import Failed
from clarinet_client.files import File
from clarinet_client.finding import named
from clarinet_client.groups import Group
from clarinet_client.shapes.datasets import Dataset, Example, FurtherImages, NewDataset, Taken, Version
from clarinet_client.waiting import look_until

T = TypeVar("T", bound=Taken)


class Datasets(Group):
    """Sets of images of one domain."""

    def all(self, *, archived: bool = False) -> Iterator[Dataset]:
        """Every dataset that is not archived, newest first; or those that are."""
        return self._connection.items(op.LIST_DATASETS, query={"archived": archived or None})

    def get(self, dataset_id: str) -> Dataset:
        """One dataset."""
        return self._connection.call(op.GET_DATASET, dataset_id=dataset_id)

    def find(self, wanted: str) -> Dataset:
        """A dataset by its name or id, an archived one if no other bears it.

        Raises:
            NotFound: there is none.
        """
        return named("dataset", wanted, self.all(), self.all(archived=True))

    def send(
        self, images: File, *, filename: str = "", key: str = "", **choices: Unpack[NewDataset]
    ) -> Dataset:
        """Send a zip or an npz; the server takes it in afterwards, which `wait` waits for.

        Args:
            images: a path, or an open file.
            filename: what an open file is called.
            key: an Idempotency-Key of your own, so that the same dataset is not made twice.
            choices: name, description, and how to read the file.
        """
        return self._connection.upload(op.ADD_DATASET, images, filename=filename, fields=choices, key=key)

    def wait(
        self,
        dataset_id: str,
        *,
        on_look: Callable[[Dataset], None] | None = None,
        timeout_s: float | None = None,
    ) -> Dataset:
        """Wait until the images are taken in.

        Raises:
            Failed: they could not be.
            TookTooLong: they were not in time.
        """
        return _taken_in(lambda: self.get(dataset_id), on_look, timeout_s)

    def add(self, images: File, *, timeout_s: float | None = None, **choices: Unpack[NewDataset]) -> Dataset:
        """Send images and wait until they are taken in; raises like `wait`."""
        return self.wait(self.send(images, **choices)["id"], timeout_s=timeout_s)

    def send_further(
        self,
        dataset_id: str,
        images: File,
        *,
        filename: str = "",
        key: str = "",
        **choices: Unpack[FurtherImages],
    ) -> Version:
        """Send further images for a dataset; they join it as a version once they are taken in."""
        return self._connection.upload(
            op.ADD_IMAGES, images, filename=filename, fields=choices, key=key, dataset_id=dataset_id
        )

    def wait_for_version(
        self,
        dataset_id: str,
        version_id: str,
        *,
        on_look: Callable[[Version], None] | None = None,
        timeout_s: float | None = None,
    ) -> Version:
        """Wait until further images have joined; raises like `wait`."""

        def look() -> Version:
            return self._connection.call(op.GET_VERSION, dataset_id=dataset_id, version_id=version_id)

        return _taken_in(look, on_look, timeout_s)

    def delete(self, dataset_id: str) -> None:
        """Delete a dataset that nothing uses.

        Raises:
            Conflict: `used_by` says what does.
        """
        self._connection.call(op.DELETE_DATASET, dataset_id=dataset_id)

    def examples(
        self, dataset_id: str, *, split: Literal["train", "test"] | None = None, true_class: int | None = None
    ) -> Iterator[Example]:
        """Its images, in order."""
        query = {"split": split, "true_class": true_class, "limit": 1000}
        return self._connection.items(op.LIST_EXAMPLES, query=query, dataset_id=dataset_id)

    def image(self, dataset_id: str, example_id: int) -> bytes:
        """One image as PNG or JPEG."""
        return self._connection.read(op.GET_IMAGE, dataset_id=dataset_id, example_id=str(example_id))


def _taken_in(look: Callable[[], T], on_look: Callable[[T], None] | None, timeout_s: float | None) -> T:
    row = look_until(
        look,
        lambda row: row["state"] != "importing",
        what="The end of the import",
        on_look=on_look,
        timeout_s=timeout_s,
    )
    if row["state"] == "failed":
        raise Failed("\n".join([row["failure"] or "The import failed.", *left_out(row)]), row)
    return row


def contradicting(row: Taken) -> list[str]:
    """The images about which an import was told different things, one a line."""
    return [f'"{one["file"]}" {one["why"]}.' for one in row["contradictions"]]


def left_out(row: Taken) -> list[str]:
    """The files that an import has not taken, one a line."""
    return [f'"{fault["file"]}" {fault["why"]}.' for fault in row["faults"]]
