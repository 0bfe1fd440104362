"""Files of strangers are read by a process of their own, with bounds on memory and time. This is its side.

The first line on its standard input is the request. Standard output carries one JSON object per line: what is
done so far, and at the end {"result"} or {"refused"}. `worker/apart.py` is the other side.
"""

import json
import os
import resource
import sys
import threading
from typing import Any


def asked() -> dict[str, Any]:
    """The request. From now on the process dies when its input closes: it cannot outlive who started it."""
    request: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    return request


def bound(*, address_space: int, cpu_s: int) -> None:
    """Take no more memory (bytes) and computing time than this."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 10))
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def tell(**message: Any) -> None:
    """Send a message to who started this process."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _die_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)
