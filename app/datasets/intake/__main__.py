"""`python -m app.datasets.intake`: read one file in a process of its own, with bounds on memory and time.

It is asked {"root": storage folder, "prefix": where to put shards, "upload": {...}}, and tells {"done",
"total"} now and then.
"""

import re
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from PIL import Image

from app import apart
from app.datasets.intake.arrays import read_arrays
from app.datasets.intake.folders import read_folders, read_with_table
from app.datasets.intake.limits import BASE_CPU_S, CPU_S_PER_MIB, MAX_ADDRESS_SPACE, MAX_TABLE_BYTES, MIB
from app.datasets.intake.member_names import EncodingNotKnown, title_of
from app.datasets.intake.reading import Reading
from app.datasets.intake.shards import ShardWriter
from app.datasets.intake.tables import read_table
from app.datasets.intake.zips import Archive, open_archive
from app.datasets.uploads import SAY_ENCODING, SKIP_BAD
from app.stores.folder import FolderStorage
from clarinet.files.arrays import SUFFIX
from clarinet.files.folders import class_list
from clarinet.files.names import NO_LABEL, are_numbers, class_lines
from clarinet.files.no_class import VOID
from clarinet.files.refusal import MOST_NAMED, Refused, shown
from clarinet.recipes.counting import many

REPORT_EVERY_S = 0.5


def main() -> None:
    """Do what standard input asks for."""
    request = apart.asked()
    storage = FolderStorage(Path(request["root"]))
    upload: dict[str, Any] = request["upload"]
    size_bytes = storage.path(upload["data"]).stat().st_size
    apart.bound(address_space=MAX_ADDRESS_SPACE, cpu_s=BASE_CPU_S + CPU_S_PER_MIB * size_bytes // MIB)
    # pictures.py refuses far below Pillow's limit, which only warns up to twice of it.
    Image.MAX_IMAGE_PIXELS = None
    warnings.simplefilter("ignore")
    try:
        apart.tell(result=take_in(storage, request["prefix"], upload))
    except FilesRefused as refusal:
        mend = SKIP_BAD if refusal.can_go_on else None
        apart.tell(refused=str(refusal), faults=_faults(refusal.refused), mend=mend)
    except EncodingNotKnown as refusal:
        apart.tell(refused=str(refusal), faults=[], mend=SAY_ENCODING)
    except Refused as refusal:
        apart.tell(refused=str(refusal), faults=[])
    except MemoryError:
        apart.tell(refused=str(Refused(upload["name"], "needs more memory than an import may use")))


class FilesRefused(Exception):
    """Some of the files in an archive are not taken; perhaps the others can be."""

    def __init__(self, refused: Sequence[Refused], *, can_go_on: bool) -> None:
        self.refused = refused
        self.can_go_on = can_go_on
        count = f"More than {MOST_NAMED}" if len(refused) > MOST_NAMED else f"{len(refused):,}"
        told = f"{count} files cannot be taken in. The first: {refused[0]}"
        super().__init__(str(refused[0]) if len(refused) == 1 else told)


def take_in(storage: FolderStorage, prefix: str, upload: dict[str, Any]) -> dict[str, Any]:
    """Pack the pictures of an upload into shards below `prefix`; gives what the dataset's row says of them.

    Files that are not taken are left out where the upload says `skip_bad`; else all of them are looked at,
    so that the refusal can name them.

    Raises:
        Refused, FilesRefused: what was written so far is of no use.
    """
    with ExitStack() as stack:
        opened = open_archive(
            storage.path(upload["data"]), upload["name"], encoding=upload.get("encoding", "")
        )
        archive = stack.enter_context(opened)
        reading = _reading(archive, storage, upload)
        refused = [*archive.refused, *reading.refused]
        shards = stack.enter_context(ShardWriter(storage, prefix))
        reported, readable = 0.0, 0
        for done, incoming in enumerate(reading.pictures):
            if time.monotonic() - reported > REPORT_EVERY_S:
                reported = time.monotonic()
                apart.tell(done=done, total=reading.total)
            if isinstance(incoming, Refused):
                refused.append(incoming)
            else:
                readable += 1
                if upload.get("skip_bad") or not refused:
                    shards.add(incoming)
            if not upload.get("skip_bad") and len(refused) > MOST_NAMED:
                break
        if refused and not (upload.get("skip_bad") and readable):
            raise FilesRefused(refused, can_go_on=readable > 0)
    return {
        "made": reading.made,
        "class_names": reading.class_names,
        "channels": shards.channels,
        "shards": shards.shards,
        "counts": shards.counts,
        "digest": shards.digest,
        "size_bytes": shards.size_bytes,
        "notes": _notes(archive, reading, refused),
        "faults": _faults(refused),
        "contradictions": _faults(reading.contradictions),
    }


def _notes(archive: Archive, reading: Reading, refused: Sequence[Refused]) -> list[str]:
    """What the admin should know of an import, in sentences."""
    told = [*archive.remarks, *reading.remarks]
    if archive.encoding:
        told.append(f"The names in {archive.name} were read as {title_of(archive.encoding)}")
    told += [
        f"{many(count, 'picture')} {'was' if count == 1 else 'were'} {change}"
        for change, count in reading.changes.items()
    ]
    if refused:
        told.append(f"{many(len(refused), 'file')} {'was' if len(refused) == 1 else 'were'} left out")
    return [f"{sentence}." for sentence in told]


def _faults(refused: Sequence[Refused]) -> list[dict[str, str]]:
    return [{"file": one.name, "why": one.why} for one in refused[:MOST_NAMED]]


def _reading(archive: Archive, storage: FolderStorage, upload: dict[str, Any]) -> Reading:
    """Choose the reader by what is inside; a file name says little."""
    known: Sequence[str] = upload.get("class_names") or ()  # of the dataset that the images join
    if "table" in upload:
        _refuse_numbering(upload)
        data = storage.read(upload["table"], length=MAX_TABLE_BYTES + 1)
        if len(data) > MAX_TABLE_BYTES:
            raise Refused(upload["table_name"], f"is larger than {MAX_TABLE_BYTES // MIB} MB")
        table = read_table(data, upload["table_name"])
        return read_with_table(archive, table, class_names=known, no_label=upload.get("no_label", ""))
    given = class_lines(upload.get("classes", ""))
    # A list of classes may lie beside the arrays.
    listed = class_list(archive.members)
    paths = [path for path in archive.members if path != listed]
    has_arrays = bool(paths) and all(path.endswith(SUFFIX) for path in paths)
    if upload["kind"] == "npz" or (upload["kind"] == "auto" and has_arrays):
        first = _first_class(upload, known)
        return read_arrays(archive, given, first_class=first, no_label=_no_label(upload, known))
    _refuse_numbering(upload)
    return read_folders(archive, class_names=known, no_label=upload.get("no_label", ""))


def _refuse_numbering(upload: dict[str, Any]) -> None:
    """Raises Refused of what is said about numbered classes beside files that have theirs by name."""
    said = {"classes": class_lines(upload.get("classes", "")), "first_class": upload.get("first_class")}
    if found := [name for name, value in said.items() if value]:
        raise Refused(
            upload["name"],
            "is no npz of numbered classes, so that its folders or its table name them, and "
            f"{' and '.join(found)} cannot be used; write the names into the table, and leave the "
            f"{'field' if len(found) == 1 else 'fields'} empty",
        )


def _first_class(upload: dict[str, Any], known: Sequence[str]) -> int | None:
    """From which number an npz counts: as is said, or as the numbered classes do that its images join."""
    if said := upload.get("first_class"):
        return int(said)
    return next((first for first in (0, 1) if are_numbers(known) and str(first) in known), None)


def _no_label(upload: dict[str, Any], known: Sequence[str]) -> int | None:
    """What stands for no class in an npz: as is said; 255 is one where its images join a class of that name.

    Raises:
        Refused: it is no whole number, as labels are.
    """
    said: str = upload.get("no_label", "")
    if said:
        if not re.fullmatch(r"-?[0-9]{1,9}", said):
            raise Refused(upload["name"], f'numbers its classes, and no_label "{shown(said)}" is no number')
        return int(said)
    return NO_LABEL if str(VOID) in known else None


if __name__ == "__main__":
    main()
