"""HTTP: one call of an operation, sent again for as long as a server may be restarting."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import httpx2

from clarinet_client.errors import CannotBe, ClientError, NotFound, ServerAway, TooMany, Unavailable, refused
from clarinet_client.files import File, opened, texts
from clarinet_client.operations import Download, Listing, Operation

T = TypeVar("T")
PATIENCE_S = 60.0
LONGEST_PAUSE_S = 2.0
UPLOAD_TIMEOUT_S = 600
SUCCESS, REDIRECT = range(200, 300), range(300, 400)
ELSEWHERE = 307


class Connection:
    """A way to /api/v1 with a bearer token."""

    def __init__(self, base_url: str, token: str, *, patience_s: float = PATIENCE_S) -> None:
        _require_address(base_url)
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise CannotBe("This is no token: it has characters that none has. Copy it once more.")
        self.base_url = base_url.rstrip("/")
        self.patience_s = patience_s
        self._http = httpx2.Client(
            base_url=f"{self.base_url}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=httpx2.Timeout(60, connect=10),
        )

    def close(self) -> None:
        """Give the connection up."""
        self._http.close()

    def call(
        self,
        operation: Operation[T],
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        files: Mapping[str, Sequence[tuple[str, bytes]]] | None = None,
        key: str = "",
        **places: str,
    ) -> T:
        """Carry an operation out; sent again where doing it twice is doing it once.

        `files`: of a form, by field, each with its name. `key`: the Idempotency-Key where the operation
        takes one; empty: one is made.
        """
        details: dict[str, Any] = {"params": _given(query), "json": body}
        if files is not None:
            sent = [(field, file) for field, some in files.items() for file in some]
            details = {"params": _given(query), "files": sent, "timeout": UPLOAD_TIMEOUT_S}
        found: T = self._send(operation, operation.at(**places), details, key=key)
        return found

    def upload(
        self,
        operation: Operation[T],
        file: File,
        *,
        filename: str,
        fields: Mapping[str, Any],
        key: str = "",
        **places: str,
    ) -> T:
        """Send a form with one file, streamed: from its path, or open and such that it can be read again."""
        with opened(file, filename) as (stream, called):
            start = stream.tell()

            def rewound() -> dict[str, Any]:
                stream.seek(start)
                return {"files": {"file": (called, stream)}}

            # An empty one is the default, and an older server refuses fields that it does not know.
            said = {name: value for name, value in fields.items() if value != ""}
            details = {"data": texts(said), "timeout": UPLOAD_TIMEOUT_S}
            found: T = self._send(operation, operation.at(**places), details, key=key, fresh=rewound)
            return found

    def items(
        self, listing: Listing[T], *, query: Mapping[str, Any] | None = None, **places: str
    ) -> Iterator[T]:
        """All of a list, however many pages it has."""
        asked = _given(query)
        while True:
            page = self._send(listing, listing.at(**places), {"params": asked})
            yield from page["items"]
            if page.get("next") is None:
                return
            asked |= {"after": page["next"]}

    def save(
        self,
        download: Download,
        to: str | Path,
        *,
        query: Mapping[str, Any] | None = None,
        **places: str,
    ) -> Path:
        """Keep a file; in a folder under the server's name for it. What breaks off leaves no file behind."""

        def fetch() -> Path:
            with self._stream(download, download.at(**places), query) as (response, name):
                path = Path(to)
                path = path / name if path.is_dir() else path
                part = path.with_name(path.name + ".part")
                try:
                    with part.open("wb") as file:
                        for chunk in response.iter_bytes():
                            file.write(chunk)
                    part.replace(path)
                finally:
                    part.unlink(missing_ok=True)
            return path

        return self._patiently(fetch)

    def read(self, download: Download, *, query: Mapping[str, Any] | None = None, **places: str) -> bytes:
        """A file in memory."""

        def fetch() -> bytes:
            with self._stream(download, download.at(**places), query) as (response, _):
                return b"".join(response.iter_bytes())

        return self._patiently(fetch)

    def request(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        """Call an address of the API that has no method here: as JSON, once."""
        return self._once(method, path, params=_given(query), json=body)

    def _send(
        self,
        operation: Operation[Any] | Listing[Any],
        path: str,
        details: dict[str, Any],
        *,
        key: str = "",
        fresh: Callable[[], dict[str, Any]] = dict,
    ) -> Any:
        method, headers = operation.method, {}
        if operation.is_keyed:
            headers["Idempotency-Key"] = key or str(uuid4())

        def once() -> Any:
            return self._once(method, path, headers=headers, **details, **fresh())

        return self._patiently(once, deletes=method == "DELETE") if operation.is_repeatable else once()

    def _patiently(self, attempt: Callable[[], T], *, deletes: bool = False) -> T:
        """Try until the server is there again. What an attempt deleted whose answer was lost is not found."""
        deadline, pause_s = 0.0, 0.1
        while True:
            try:
                return attempt()
            except (ServerAway, Unavailable, TooMany) as error:
                asked_s = getattr(error, "retry_after_s", None) or 0.0
                now = time.monotonic()
                deadline = deadline or now + self.patience_s
                if now + max(pause_s, asked_s) > deadline:
                    raise
                time.sleep(max(pause_s, asked_s))
                pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            except NotFound:
                if deletes and deadline:
                    return None  # type: ignore[return-value]  # what deletes gives nothing
                raise

    def _once(self, method: str, path: str, **details: Any) -> Any:
        try:
            response = self._http.request(method, path.lstrip("/"), **details)
        except httpx2.TransportError as error:  # it may have been carried out or not
            raise ServerAway(self.base_url) from error
        _require_success(response)
        try:
            return response.json() if response.content else None
        except ValueError as error:
            raise ClientError(f"What answers at {self.base_url} is no Clarinet server.") from error

    @contextmanager
    def _stream(
        self, download: Download, path: str, query: Mapping[str, Any] | None
    ) -> Iterator[tuple[httpx2.Response, str]]:
        """What answers with the file, and what the server calls it."""
        details: dict[str, Any] = {"headers": {"Accept": "*/*"}, "timeout": UPLOAD_TIMEOUT_S}
        with (
            _there(self.base_url),
            self._http.stream("GET", path.lstrip("/"), params=_given(query), **details) as response,
        ):
            name = _name_in(response)
            link = _link_in(response) if download.by_link else None
            if link is None:
                _require_file(response)
                yield response, name
                return
        # Not by our connection: whoever is there gets no token.
        where = f"{link.scheme}://{link.netloc.decode()}"
        with _there(where, "bucket"), httpx2.stream("GET", link, **details) as response:
            _require_file(response)
            yield response, name


@contextmanager
def _there(where: str, what: str = "Clarinet server") -> Iterator[None]:
    try:
        yield
    except httpx2.TransportError as error:
        raise ServerAway(where, what) from error


def _link_in(response: httpx2.Response) -> httpx2.URL | None:
    """Where a bucket hands out what was asked for; a proxy that sends us to the same path is none."""
    if response.status_code != ELSEWHERE or "location" not in response.headers:
        return None
    link = response.url.join(response.headers["location"])
    return None if link.path == response.url.path else link


def _require_file(response: httpx2.Response) -> None:
    if response.status_code not in SUCCESS:
        response.read()
    _require_success(response)


def _require_address(base_url: str) -> None:
    """What is no address is said at once; to wait for somebody there would help nobody."""
    try:
        url = httpx2.URL(base_url)
        can_be = url.scheme in ("http", "https") and bool(url.host)
    except httpx2.InvalidURL:
        can_be = False
    if not can_be:
        raise CannotBe(f"{base_url!r} is no address of a server: it begins with http:// or https://.")


def _given(query: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (query or {}).items() if value is not None}


def _require_success(response: httpx2.Response) -> None:
    if response.status_code in SUCCESS:
        return
    if response.status_code in REDIRECT:  # whoever is there would get the token
        raise ClientError(
            f"The server answers {response.status_code} and sends us to "
            f"{response.headers.get('location', 'nowhere')!r}; give the address that it leads to."
        )
    problem: Any = {}
    if "json" in response.headers.get("content-type", ""):
        try:
            problem = json.loads(response.content)
        except ValueError:  # a proxy's idea of JSON
            problem = {}
    after = response.headers.get("retry-after", "")
    raise refused(
        response.status_code,
        problem if isinstance(problem, dict) else {},
        retry_after_s=float(after) if after.isdecimal() else None,
    )


def _name_in(response: httpx2.Response) -> str:
    """What the server calls a file; never a path."""
    said = response.headers.get("content-disposition", "").partition('filename="')[2].partition('"')[0]
    return Path(said.replace("\\", "/")).name or "download"
