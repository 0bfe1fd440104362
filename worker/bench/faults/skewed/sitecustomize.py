"""Python loads this at its start where this folder is on its path: then its host's clock is wrong."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app import clock

AHEAD_S = Path(os.environ["CLOCK_AHEAD_S"])  # a file with seconds, which may change at any moment


def skewed() -> datetime:
    """What a clock says that somebody has set wrongly."""
    return datetime.now(UTC) + timedelta(seconds=float(AHEAD_S.read_text() or 0))


clock.host_now = skewed
