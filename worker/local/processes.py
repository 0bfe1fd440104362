"""Processes that must not outlive each other: starting, stopping, and dying with one's parent."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from pydantic import SecretStr

from app.settings import Settings

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
LOG_BYTES = 4000  # of a log that are shown


class Orphaned(Exception):
    """The parent was gone before we could tie our life to it."""


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process the moment its parent's process (or forking thread) ends.

    Args:
        parent: the pid that should be our parent, to notice that it ended before this call.

    Raises:
        Orphaned: it did.
        OSError: the kernel refused.
    """
    if sys.platform == "linux":  # elsewhere only the watch over the parent's pid remains
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise Orphaned


def environment_of(settings: Settings) -> dict[str, str]:
    """This process's environment with every setting written out, for a child that must see the same ones."""
    given = dict(os.environ)
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            text = value.get_secret_value()
        elif isinstance(value, (tuple, dict)):  # which are read as JSON
            text = json.dumps(value, default=str)
        else:
            text = "" if value is None else str(value)  # set to nothing, also where a .env file says more
        given[f"CLARINET_{name.upper()}"] = text
    return given


def start(
    module: str,
    *arguments: str,
    environment: Mapping[str, str],
    log: IO[bytes],
    pass_fds: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `python -m module` as a fresh interpreter in a process group of its own.

    Fresh, because CUDA cannot be initialised in a forked child. A group, so that a Ctrl-C in the terminal
    reaches the supervisor only, and a kill reaches everything the child has started.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=dict(environment),
        start_new_session=True,
        pass_fds=pass_fds,
    )


def stop(process: subprocess.Popen[bytes], *, grace_s: float) -> None:
    """SIGTERM, then SIGKILL after a grace; returns when the process is gone and reaped."""
    if process.poll() is None and grace_s > 0:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
    kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for the process and all of its group."""
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # The group's id is the child's pid; members may be left after the child itself was reaped.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def last_lines(path: Path) -> list[str]:
    """The last lines of a log that say something."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES))
        text = file.read().decode(errors="replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()]
