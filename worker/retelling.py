"""What a training prints, told again in the log of its worker, which machines read."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import structlog

from app.lines import Tracebacks

EVERY_S = 1.0
AT_ONCE_BYTES = 256 * 1024
LONGEST = 8000  # characters of one text

log = structlog.get_logger()


@contextmanager
def retold(path: Path, **ids: str) -> Iterator[None]:
    """Log what is written to the file while the block lasts, with these ids; tracebacks in one line."""
    ended = threading.Event()
    tracebacks = Tracebacks()

    def look(file: IO[bytes]) -> bool:
        begin = file.tell()
        found = file.read(AT_ONCE_BYTES)
        # A line that fills all of it is told in parts: what comes after it must be told as well.
        length = found.rfind(b"\n") + 1 or (len(found) if len(found) == AT_ONCE_BYTES else 0)
        file.seek(begin + length)
        lines = found[:length].decode(errors="replace").removesuffix("\n")
        for line in lines.split("\n") if length else []:
            for text in tracebacks.given(_seen(line)):
                _tell(text, ids)
        return length > 0

    def watch(file: IO[bytes]) -> None:
        while not ended.wait(EVERY_S):
            look(file)

    with path.open("ab+") as file:  # at its end: earlier attempts were told
        thread = threading.Thread(target=watch, args=(file,), name="retelling", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            while look(file):
                pass
            rest = file.read(AT_ONCE_BYTES).decode(errors="replace")  # of a line that does not end
            for text in (*tracebacks.given(_seen(rest)), *tracebacks.rest()):
                _tell(text, ids)


def _seen(line: str) -> str:
    """What a terminal leaves of a line: a bar of progress begins it anew for each state."""
    return line.rstrip("\r").rpartition("\r")[2]


def _tell(text: str, ids: dict[str, str]) -> None:
    if not text.strip():
        return
    said: Any = text[:LONGEST]
    if text.startswith("{"):  # our own lines are JSON already
        with suppress(ValueError):
            said = json.loads(text)
    log.info("trainer.said", said=said, **ids)
