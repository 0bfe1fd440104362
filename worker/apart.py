"""Files of strangers are read by a process of their own (`app/apart.py`); this side starts it and listens.

It holds no claim and knows no rows: who calls does both, at each beat.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import structlog

from app.apart import environment
from app.claims import BEAT_S

LOG_BYTES = 4000
LAST = ("result", "refused")

log = structlog.get_logger()

Beat = Callable[[Mapping[str, Any]], None]


class ImportFailed(Exception):
    """The file is at fault, or we are; a sentence for the admin. Trying again would not help.

    Args:
        sentence: what is wrong.
        faults: single files or lines that are.
        mend: by what choice of the admin it may succeed; None: by none.
    """

    def __init__(
        self, sentence: str, *, faults: Sequence[dict[str, Any]] = (), mend: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.faults = list(faults)
        self.mend = mend


class ImportInterrupted(Exception):
    """Something from outside ended the work; another attempt may succeed."""


def read_apart(module: str, request: Mapping[str, Any], *, name: str, beat: Beat) -> dict[str, Any]:
    """Let `python -m module` read a file; gives its result. It is dead afterwards, however this ends.

    Args:
        module: what reads.
        request: what it is asked.
        name: of the file, for sentences.
        beat: called with each message, and with an empty one at least every BEAT_S / 2; may raise.

    Raises:
        ImportFailed, ImportInterrupted: there is no result.
    """
    with tempfile.TemporaryFile() as errors, _process(module, request, errors) as (process, messages):
        while True:
            message: dict[str, Any] = {}
            try:
                line = messages.get(timeout=BEAT_S / 2)
            except queue.Empty:
                line = ""
            if line is None:
                raise _ending(process, name, errors)
            if line:
                message = json.loads(line)
            if "result" in message:
                result: dict[str, Any] = message["result"]
                return result
            if "refused" in message:
                raise ImportFailed(
                    message["refused"], faults=message.get("faults", ()), mend=message.get("mend")
                )
            beat(message)


@contextmanager
def _process(
    module: str, request: Mapping[str, Any], errors: IO[bytes]
) -> Iterator[tuple[subprocess.Popen[str], "queue.Queue[str | None]"]]:
    """The reading process and the lines it writes, None after the last; it is dead when the block ends."""
    messages: queue.Queue[str | None] = queue.Queue()
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=environment(),
    )
    assert process.stdin is not None  # both are pipes, as asked for
    assert process.stdout is not None
    lines = process.stdout

    def listen() -> None:
        try:
            for line in lines:
                messages.put(line)
        except UnicodeDecodeError:
            process.kill()  # what it says is nothing that ours would say
        finally:  # or who waits would wait for ever
            messages.put(None)

    listener = threading.Thread(target=listen, daemon=True)
    try:
        with process.stdin, process.stdout:
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                listener.start()
                yield process, messages
            finally:
                process.kill()
                process.wait()
                if listener.is_alive():
                    listener.join()
    except BrokenPipeError as error:
        raise ImportInterrupted("the reader died before it had begun") from error


def _ending(process: subprocess.Popen[str], name: str, errors: IO[bytes]) -> Exception:
    """Why a reader ended without a result."""
    code = process.wait()
    if code == -signal.SIGKILL:
        return ImportInterrupted("the reader was killed")
    if code == -signal.SIGXCPU:
        return ImportFailed(f'"{name}" took more computing time than an import may use.')
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - LOG_BYTES))
    log.error("import.reader_failed", code=code, errors=errors.read().decode(errors="replace"))
    return ImportFailed(f'"{name}" could not be read because of a fault on our side; the log says more.')
