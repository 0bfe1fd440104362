"""`python -m app.datasets.intake`: read one file in a process of its own, with bounds on memory and time.

The first line on standard input is the request: {"root": storage folder, "prefix": where to put shards,
"upload": {...}}. Standard output carries one JSON object per line: {"done", "total"} now and then, and at the
end {"result"} or {"refused"}. The process dies when its standard input closes, so that it cannot outlive the
worker that started it.
"""

import json
import os
import resource
import sys
import threading
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from PIL import Image

from app.datasets.intake.arrays import read_arrays
from app.datasets.intake.folders import read_folders, read_table
from app.datasets.intake.limits import BASE_CPU_S, CPU_S_PER_MIB, MAX_ADDRESS_SPACE, MAX_TABLE_BYTES, MIB
from app.datasets.intake.reading import Reading
from app.datasets.intake.shards import ShardWriter
from app.datasets.intake.tables import read_rows
from app.datasets.intake.zips import Archive, open_archive
from app.storage import Storage
from clarinet.files.arrays import SUFFIX
from clarinet.files.refusal import Refused

REPORT_EVERY_S = 0.5


def main() -> None:
    """Do what standard input asks for."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    storage = Storage(Path(request["root"]))
    upload: dict[str, Any] = request["upload"]
    _limit_resources(storage.path(upload["data"]).stat().st_size)
    # pictures.py refuses far below Pillow's limit, which only warns up to twice of it.
    Image.MAX_IMAGE_PIXELS = None
    warnings.simplefilter("ignore")
    try:
        _report(result=take_in(storage, request["prefix"], upload))
    except Refused as refusal:
        _report(refused=str(refusal))
    except MemoryError:
        _report(refused=str(Refused(upload["name"], "needs more memory than an import may use")))


def take_in(storage: Storage, prefix: str, upload: dict[str, Any]) -> dict[str, Any]:
    """Pack the pictures of an upload into shards below `prefix`; gives what the dataset's row says of them.

    Raises:
        Refused: what was written so far is of no use.
    """
    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(storage.path(upload["data"]), upload["name"]))
        reading = _reading(archive, storage, upload)
        shards = stack.enter_context(ShardWriter(storage, prefix))
        reported = 0.0
        for done, incoming in enumerate(reading.pictures):
            if time.monotonic() - reported > REPORT_EVERY_S:
                reported = time.monotonic()
                _report(done=done, total=reading.total)
            shards.add(incoming)
    return {
        "made": reading.made,
        "class_names": reading.class_names,
        "channels": shards.channels,
        "counts": shards.counts,
        "digest": shards.digest,
        "size_bytes": shards.size_bytes,
    }


def _reading(archive: Archive, storage: Storage, upload: dict[str, Any]) -> Reading:
    """Choose the reader by what is inside; a file name says little."""
    tables = [path for path in archive.members if path.lower().endswith(".csv")]
    if "table" in upload:
        data = storage.read(upload["table"], length=MAX_TABLE_BYTES + 1)
        if len(data) > MAX_TABLE_BYTES:
            raise Refused(upload["table_name"], f"is larger than {MAX_TABLE_BYTES // MIB} MB")
        return read_table(archive, read_rows(data, upload["table_name"]), upload["table_name"])
    has_arrays = all(path.endswith(SUFFIX) for path in archive.members)
    if upload["kind"] == "npz" or (upload["kind"] == "auto" and has_arrays):
        return read_arrays(archive)
    if len(tables) > 1:
        raise Refused(tables[1], f"is a second CSV in {archive.name}; one table can describe the images")
    if tables:
        rows = read_rows(archive.read(tables[0], limit=MAX_TABLE_BYTES), tables[0])
        return read_table(archive, rows, tables[0])
    return read_folders(archive)


def _limit_resources(size_bytes: int) -> None:
    cpu_s = BASE_CPU_S + CPU_S_PER_MIB * size_bytes // MIB
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 10))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _die_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def _report(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
