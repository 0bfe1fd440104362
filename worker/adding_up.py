"""Task: add up what takes the disk, when somebody asks for it between the hours."""

import structlog

from app.clock import utc_now
from app.disk.measuring import measure
from worker.context import Context

log = structlog.get_logger()


def measure_disk(context: Context) -> None:
    """Walk over all files and keep the sums.

    Safe to deliver twice: the second walk tells the same. Safe to lose: upkeep walks once an hour.
    """
    measure(context.database, context.storage, now=utc_now())
    log.info("disk.measured")
