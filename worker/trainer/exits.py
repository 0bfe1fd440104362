"""How a training process says why it ended."""

import enum


class Exit(enum.IntEnum):
    """Exit codes of `python -m worker.trainer`, and of each of several trials of one such process."""

    ENDED = 0  # the row says how; of a process with several trials: each was told
    UNFORESEEN = 1  # an error of which the log has the last words; Python's own code for one
    INTERRUPTED = 75  # asked to stop; a checkpoint is on disk
    CLAIM_LOST = 76  # somebody else has the trial
    DATABASE_AWAY = 77  # longer than anybody's patience
    ORPHANED = 78  # the supervisor is gone
    STORAGE_AWAY = 79  # the place of images and models, for as long
    MACHINE = 80  # the worker's fault, as the supervisor was told; the trial goes on elsewhere
