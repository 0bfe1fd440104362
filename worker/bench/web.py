"""The web process that is measured."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from worker.context import Context

START_S = 30
Execution = Literal["fast", "plain"]


class Server(NamedTuple):
    """A web process that serves."""

    port: int
    process_id: int
    host: str = "127.0.0.1"

    def cpu_s(self) -> float | None:
        """Seconds that the process has spent computing."""
        try:
            told = Path(f"/proc/{self.process_id}/stat").read_text()
        except OSError:
            return None
        # What comes before may have spaces; then state is the first, time of its own the twelfth.
        own, kernel = told.rpartition(")")[2].split()[11:13]
        return (int(own) + int(kernel)) / os.sysconf("SC_CLK_TCK")


def free_port(address: str = "127.0.0.1") -> int:
    """A port of an address on which nobody listens at the moment."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(context: Context, execution: Execution) -> Iterator[Server]:
    """`clarinet serve` over the context's database."""
    port = free_port()
    environment = os.environ | {
        "CLARINET_ENVIRONMENT": "test",
        "CLARINET_LOG_FORMAT": "json",  # as in production
        "CLARINET_DATA_DIR": str(context.settings.data_dir),
        "CLARINET_DATABASE_URL": context.settings.database_url,
    }
    # As the command does, which has no option for the path: it is no setting of an installation.
    details = {"host": "127.0.0.1", "port": port, "migrate": False, "parent": None, "answering": execution}
    code = f"from worker.cli.serve import run_serve; run_serve(**{details!r})"
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        _wait(port, process)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("The web process did not start.")
