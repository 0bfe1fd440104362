"""The client: one attribute for each kind of thing."""

from types import TracebackType
from typing import Any, Self

from clarinet_client.annotation import Annotation
from clarinet_client.campaigns import Campaigns
from clarinet_client.connection import PATIENCE_S, Connection
from clarinet_client.datasets import Datasets
from clarinet_client.labels import Labels
from clarinet_client.models import Models
from clarinet_client.people import People
from clarinet_client.runs import Runs


class Client:
    """A connection to a server with a bearer token; a `with` block ends it.

    What is safe to repeat is sent again for `patience_s` while the server restarts: what only reads, and what
    makes something, under an Idempotency-Key.
    """

    def __init__(self, base_url: str, token: str, *, patience_s: float = PATIENCE_S) -> None:
        self._connection = Connection(base_url, token, patience_s=patience_s)
        self.datasets = Datasets(self._connection)
        self.campaigns = Campaigns(self._connection)
        self.annotation = Annotation(self._connection)
        self.labels = Labels(self._connection)
        self.runs = Runs(self._connection)
        self.models = Models(self._connection)
        self.people = People(self._connection)

    @property
    def base_url(self) -> str:
        """Where the server answers."""
        return self._connection.base_url

    def request(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        """Call an address of the API that has no method here, such as `/journal`: JSON out and in, once."""
        return self._connection.request(method, path, body, **query)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
