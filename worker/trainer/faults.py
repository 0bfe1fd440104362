"""What a training ran into: whether it is this machine's fault, and which sentence tells it."""

import errno
import os
import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit

import structlog
import torch

from app.claims import ClaimLost
from app.storage import StorageAway, StorageRefused, StoredFileDamaged, StoredFileMissing
from clarinet.recipes.errors import (
    CheckpointNotWritten,
    ClarinetError,
    ConfigError,
    ExportError,
    WeightsNotDownloaded,
)
from worker.outages import OUTAGES
from worker.trainer.exits import Exit
from worker.trainer.given import Given

# In the words of torch's allocator of the CPU and of oneDNN, which raise a plain RuntimeError.
_NO_MEMORY = ("can't allocate memory", "not enough memory", "could not create a primitive", "std::bad_alloc")
_NO_DEVICE = (
    "CUDA error",
    "CUDA driver",
    "No CUDA GPUs",
    "CUDA unknown error",
    "cuDNN error",
    "CUBLAS_STATUS",
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

log = structlog.get_logger()


class WorkerUnfit(Exception):
    """This worker lacks what a trial needs; another one may have it. The message is a sentence."""


class NoRoom(Exception):
    """Memory did not suffice for a trial beside others of its process; alone it may."""


def exit_for(error: Exception, given: Given) -> Exit:
    """What to tell the supervisor of what ended a training; of a machine's fault also a sentence."""
    trial = str(given.trial_id)
    if isinstance(error, ClaimLost):
        log.warning("trial.claim_lost", trial_id=trial, claim=given.claim_number)
        return Exit.CLAIM_LOST
    if isinstance(error, StorageRefused):
        given.teller.say(error.sentence)
        log.exception("trial.storage_refused")
        return Exit.MACHINE
    if isinstance(error, StorageAway):
        log.exception("trial.storage_away")
        return Exit.STORAGE_AWAY
    if isinstance(error, OUTAGES):
        log.exception("trial.database_away")
        return Exit.DATABASE_AWAY
    trouble = trouble_in(error)
    if trouble is None:
        traceback.print_exc()  # its last line is what people are told
        return Exit.UNFORESEEN
    given.teller.say(trouble)
    # Where the sentence says it all, the log needs no trace of our own code.
    is_plain = isinstance(error, (WorkerUnfit, WeightsNotDownloaded))
    log.error("trial.machine_failed", trial_id=trial, trouble=trouble, exc_info=not is_plain)
    return Exit.MACHINE


def is_memory(error: BaseException) -> bool:
    """Whether memory did not suffice, of the device or of the host."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def trouble_in(error: Exception) -> str | None:
    """The sentence of a fault that is the machine's; None: it is the run's, or nobody's that we know."""
    if isinstance(error, ClarinetError):
        return _in_library(error)
    if is_memory(error):  # beside the training itself, which knows what fits
        return f"Memory did not suffice: {_first_line(error) or type(error).__name__}."
    if isinstance(error, OSError):
        return _of_disk(error) or f"The system refused {error.filename or 'a call'}: {_said(error)}."
    if isinstance(error, ImportError):
        return f"The worker's program is not whole: {error}."
    if isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_DEVICE):
        return f"The device failed: {_first_line(error)}."
    return str(error) if isinstance(error, (WorkerUnfit, StoredFileMissing, StoredFileDamaged)) else None


def _in_library(error: ClarinetError) -> str | None:
    if isinstance(error, CheckpointNotWritten):
        return _of_disk(error.__cause__) or _sentence(str(error))
    if isinstance(error, WeightsNotDownloaded):
        return (
            f"The trained weights of {error.network} could not be downloaded from "
            f"{urlsplit(error.address).hostname}: the worker has no network, or nothing answers there. Put "
            "a file of them on the server (Trained weights), or start a run by a preset without trained "
            "weights."
        )
    if isinstance(error, ConfigError) and isinstance(error.__cause__, OSError):
        return _sentence(str(error))  # a file of trained weights that this machine does not have
    if isinstance(error, ExportError) and any(
        is_memory(cause) or isinstance(cause, ImportError) for cause in _behind(error)
    ):
        return _sentence(str(error))  # a part of the program cannot be loaded, or there is no room for it
    return None


def _behind(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _of_disk(error: BaseException | None) -> str | None:
    # The writer of safetensors tells the number of the system's error in its words alone.
    number = getattr(error, "errno", None)
    if number in _FULL or (error is not None and any(os.strerror(code) in str(error) for code in _FULL)):
        return "There is no room left on the worker's disk. Make room; it goes on from its last checkpoint."
    return None


def _said(error: OSError) -> str:
    return error.strerror or str(error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:500]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")
