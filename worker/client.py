"""The REST API from Python, for the commands that talk to a server."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Any, Self

import httpx2

from app.errors import AppError

PATIENCE_S = 60.0
# The request may or may not have been carried out; those we repeat are safe to repeat.
AWAY = (httpx2.TransportError,)
UNAVAILABLE = frozenset({502, 503, 504})
BAD_REQUEST = 400


class ApiRefused(AppError):
    """The server answered with a problem."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"The server answered {status}."))
        self.status = status
        self.problem = problem


class ServerAway(AppError):
    """Nobody answers at the server's address."""

    def __init__(self, base_url: str) -> None:
        super().__init__(f"No Clarinet server answers at {base_url}.")


class Client:
    """A connection to /api/v1 with a bearer token. Not for use by several threads at once."""

    def __init__(self, base_url: str, token: str) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = httpx2.Client(
            base_url=f"{self.base_url}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=httpx2.Timeout(60, connect=10),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a path; waits a minute for a server that is restarting."""
        return self._patiently("GET", path, params=query)

    def post(self, path: str, body: object = None, *, repeatable: bool = False) -> Any:
        """Send JSON. `repeatable`: doing it twice is the same as once, so wait for a restarting server."""
        send = self._patiently if repeatable else self._once
        return send("POST", path, json=body)

    def upload(self, path: str, file: IO[bytes], *, filename: str, **fields: str) -> Any:
        """Send a form with one file, streamed from an open file."""
        return self._once("POST", path, data=fields, files={"file": (filename, file)}, timeout=600)

    def predict(self, model_id: str, pictures: Sequence[tuple[str, bytes]]) -> Any:
        """What a model says of some pictures, each with its name."""
        files = [("pictures", picture) for picture in pictures]
        return self._once("POST", f"/models/{model_id}/predict", files=files, timeout=120)

    def delete(self, path: str) -> None:
        """Delete what is at a path."""
        self._once("DELETE", path)

    def items(self, path: str, **query: Any) -> list[Any]:
        """All of a list that is paged by key."""
        found: list[Any] = []
        after: dict[str, Any] = {}
        while True:
            page = self.get(path, **query, **after)
            found += page["items"]
            if page["next"] is None:
                return found
            after = {"after": page["next"]}

    def _patiently(self, method: str, path: str, **details: Any) -> Any:
        deadline, wait_s = time.monotonic() + PATIENCE_S, 0.1
        while True:
            try:
                return self._once(method, path, **details)
            except ServerAway:
                if time.monotonic() > deadline:
                    raise
            except ApiRefused as refused:
                if refused.status not in UNAVAILABLE or time.monotonic() > deadline:
                    raise
            time.sleep(wait_s)
            wait_s = min(2.0, wait_s * 2)

    def _once(self, method: str, path: str, **details: Any) -> Any:
        try:
            response = self._http.request(method, path.lstrip("/"), **details)
        except AWAY as error:
            raise ServerAway(self.base_url) from error
        if response.status_code >= BAD_REQUEST:
            is_json = "json" in response.headers.get("content-type", "")
            raise ApiRefused(response.status_code, response.json() if is_json else {})
        return response.json() if response.content else None
