"""Whether this machine can train now: its folder, the room on its disk, its device, its programs.

A worker looks before it takes a training, and its heartbeat looks at the machine alone now and then. What it
lacks is its own fault: it takes nothing, says why, and leaves what waits to others. Imports no torch.
"""

import shutil
import tempfile
from pathlib import Path

from sqlalchemy import select

from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset, DatasetState
from app.datasets.service import prefix_of
from app.db import Database
from app.settings import Settings
from app.storage import Storage, StorageAway, StorageRefused
from app.stores.chosen import cache_of
from worker.device import look_at_device
from worker.outages import OUTAGES

MEGABYTE = 1024**2
LOOKED_FOR = 5  # data sets of which at least one must be in this machine's folder


def trouble_of(settings: Settings, database: Database, storage: Storage) -> str | None:
    """What keeps this machine from training, in a sentence; None: nothing that can be seen quickly."""
    return trouble_here(settings) or _other_folder(database, storage)


def trouble_here(settings: Settings) -> str | None:
    """The same, of this machine alone: it waits for nobody.

    A bucket is not asked: obstore works in no process that was forked after it was used, and Celery forks.
    """
    return (
        folder_trouble(settings.data_dir)
        or _no_room(settings)
        or device_trouble(settings.device)
        or _no_weights(settings.weights_dir)
    )


def folder_trouble(path: Path) -> str | None:
    """Why nothing can be written into a folder, which is made; None: it can."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}."
    return None


def device_trouble(wanted: str) -> str | None:
    """Why trials cannot train on the device that the settings ask for; None: they can, or nobody asked."""
    if wanted.startswith("cuda") and look_at_device(wanted).words.startswith("CPU"):
        return "CLARINET_DEVICE is cuda, and nvidia-smi finds no GPU."
    return None


def _no_room(settings: Settings) -> str | None:
    path, min_free_mb = settings.data_dir, settings.min_free_mb
    try:
        if settings.s3_bucket:  # what is kept of it is worth less than a training
            cache_of(settings).make_room(min_free_mb * MEGABYTE)
        free_mb = shutil.disk_usage(path).free / MEGABYTE
    except OSError as error:
        return f"The disk of {error.filename or path} cannot be looked at: {error.strerror}."
    if free_mb >= min_free_mb:
        return None
    return (
        f"There are {free_mb:.0f} MB left on the disk of {path}, and a training needs {min_free_mb} MB "
        "(CLARINET_MIN_FREE_MB). Make room; what waits goes on from its last checkpoint."
    )


def _other_folder(database: Database, storage: Storage) -> str | None:
    query = (
        select(Dataset)
        .where(Dataset.state == DatasetState.READY, Dataset.train_count + Dataset.test_count > 0)
        .order_by(Dataset.created_at.desc())
        .limit(LOOKED_FOR)
    )
    try:
        with database.read.begin() as session:
            keys = [shard_key(prefix_of(dataset), 0) for dataset in session.scalars(query)]
        if not keys or any(storage.about(key) for key in keys):
            return None
    except StorageRefused as refusal:
        return refusal.sentence
    except (*OUTAGES, StorageAway):
        return None  # which is nothing that this machine could mend
    return (
        f"{storage.words} has no file of the data sets in the database. CLARINET_DATA_DIR names another "
        "folder than that of the server (or CLARINET_S3_BUCKET another bucket), or its disk is not mounted."
    )


def _no_weights(folder: Path | None) -> str | None:
    try:
        if folder is None or folder.is_dir():
            return None
    except OSError as error:  # a folder around it that is closed to us
        return f"CLARINET_WEIGHTS_DIR is {folder}, which cannot be looked into: {error.strerror}."
    return f"CLARINET_WEIGHTS_DIR is {folder}, and there is no such folder."
