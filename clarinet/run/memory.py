"""Memory of tensors on the CPU that is used again instead of being fetched from the system anew."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of mallopt(3)
KEPT_BYTES = 2**31 - 1  # freed memory at the end of the heap that stays: all that an int can say
# Above the largest tensor of a step; a whole data set is larger and goes back to the system when it is freed.
LARGEST_BYTES = 256 * 2**20


def keep_freed_memory() -> bool:
    """Let this process keep what tensors on the CPU free, for the next step's.

    By default glibc hands large blocks back to the system, which clears and maps their pages again in the
    next step. Where page faults are dear, that takes a fifth of a training's time. It holds for the whole
    process. So a process that trains calls it, once and before. Its memory then stays at the peak of its
    steps.

    Returns:
        Whether the C library took it; False without glibc, where nothing changes.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEPT_BYTES) and mallopt(MMAP_THRESHOLD, LARGEST_BYTES))
