"""How a training process says why it ended."""

import enum


class Exit(enum.IntEnum):
    """Exit codes of `python -m worker.trainer`; any other is an error nobody foresaw."""

    ENDED = 0  # the row says how
    INTERRUPTED = 75  # asked to stop; a checkpoint is on disk
    CLAIM_LOST = 76  # somebody else has the trial
    DATABASE_AWAY = 77  # longer than anybody's patience
    ORPHANED = 78  # the supervisor is gone
