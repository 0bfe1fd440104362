"""A store that refuses what a worker asks, as a bucket does by a wrong key."""

from collections.abc import Callable
from dataclasses import replace

from app.storage import StorageRefused
from app.stores.folder import FolderStorage
from tests.worker.conftest import folder_of
from worker.context import Context

SENTENCE = "s3://b refuses us: 403. Mend CLARINET_S3_* of this machine, or its clock."


class Refusing(FolderStorage):
    """A folder of which nobody who waits gets anything."""

    def patiently(
        self,
        patience_s: float,  # noqa: ARG002 - Storage's signature
        *,
        beat: Callable[[], None] = lambda: None,  # noqa: ARG002
    ) -> FolderStorage:
        """What whoever holds a claim asks for."""
        raise StorageRefused("s3://b refuses us: 403")


def refused(context: Context) -> Context:
    """The same with such a store."""
    return replace(context, storage=Refusing(folder_of(context).root))
