"""How many processes the system has killed because memory ran out: of this service, or of the host."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")
COUNTED = "oom_kill"  # what the kernel calls the number, wherever it stands
UNIFIED, MEMORY = "", "memory"  # controllers, as /proc/self/cgroup names them


def memory_kills(root: Path = ROOT) -> int | None:
    """The number since the kernel counts it; it only rises. None: nothing here tells.

    The own group's number goes before the host's, which rises by what happens to others, too.

    Args:
        root: below which the kernel's files lie.
    """
    for path in (*_of_group(root), root / "proc/vmstat"):
        if (found := _counted(path)) is not None:
            return found
    return None


def _of_group(root: Path) -> Iterator[Path]:
    """Where the own group's number may stand, in both versions of control groups."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        own = path.lstrip("/")
        if controllers == UNIFIED:
            yield root / "sys/fs/cgroup" / own / "memory.events"
        elif MEMORY in controllers.split(","):
            yield root / "sys/fs/cgroup/memory" / own / "memory.oom_control"
            yield root / "sys/fs/cgroup/memory/memory.oom_control"  # as a container sees its own


def _counted(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{COUNTED} ")), None)
