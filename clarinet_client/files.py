"""Files that are sent: by path or already open."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

File = str | Path | IO[bytes]


@contextmanager
def opened(file: File, filename: str) -> Iterator[tuple[IO[bytes], str]]:
    """The open file and what it is called; what was open stays open."""
    if isinstance(file, str | Path):
        with Path(file).open("rb") as stream:
            yield stream, filename or Path(file).name
    else:
        yield file, filename or Path(str(getattr(file, "name", "file"))).name


def texts(choices: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a form."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in choices.items()
    }
