"""Files of strangers are read by a process of their own, with bounds on memory and time. This is its side.

The first line on its standard input is the request. Standard output carries one JSON object per line: what is
done so far, and at the end {"result"} or {"refused"}. `worker/apart.py` is the other side.
"""

import json
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any

import app


def asked() -> dict[str, Any]:
    """The request. From now on the process dies when its input closes: it cannot outlive who started it."""
    request: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    return request


def environment() -> dict[str, str]:
    """What such a process is started with: our own environment holds secrets."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(Path(next(iter(app.__path__))).parent),
        # One thread for each library: their stacks count as memory.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }


def bound(*, address_space: int, cpu_s: int) -> None:
    """Take no more memory (bytes) and computing time than this."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 10))
    bound_memory(address_space)


def bound_memory(address_space: int) -> None:
    """Take no more memory (bytes) than this, and leave no image of it behind."""
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def allow(cpu_s: int) -> None:
    """From now on compute for so long and no longer: for a process that is given one thing after another."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + cpu_s, hard))


def tell(**message: Any) -> None:
    """Send a message to who started this process."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _die_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)
