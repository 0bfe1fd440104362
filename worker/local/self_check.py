"""A closer look of a worker at itself, after a training that failed by its fault."""

import subprocess
import sys

from app.db import Database
from app.settings import Settings
from app.storage import Storage
from worker.fitness import trouble_of
from worker.local.processes import environment_of

TRYING_S = 180.0  # loading torch from a cold disk takes a minute


def thorough_trouble_of(settings: Settings, database: Database, storage: Storage) -> str | None:
    """As `trouble_of`, and whether a process can load what trains and use the device: takes seconds."""
    return trouble_of(settings, database, storage) or _cannot_start(settings)


def _cannot_start(settings: Settings) -> str | None:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "worker.trainer.trying"],
            env=environment_of(settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TRYING_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"A process that trains did not start within {TRYING_S:.0f} s."
    except OSError as error:
        return f"No process can be started: {error.strerror}."
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
    return f"A process that trains does not start: {lines[-1][:500]}."
