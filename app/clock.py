"""The one place that reads the wall clock, so that rules take time as an argument."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, in UTC, with its zone."""
    return datetime.now(UTC)
