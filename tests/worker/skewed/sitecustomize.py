"""Python loads this at its start where this folder is on its path: then its host's clock is wrong."""

import os
from datetime import UTC, datetime, timedelta

from app import clock

SKEW = timedelta(seconds=float(os.environ["SKEW_S"]))


def skewed() -> datetime:
    """What a clock says that somebody has set wrongly."""
    return datetime.now(UTC) + SKEW


clock.host_now = skewed
