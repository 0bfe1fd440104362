"""What an import makes of a file, in this process: the reader's own work, without rows."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

from app.datasets.intake.__main__ import FilesRefused, take_in
from app.datasets.intake.shards import Record, read_records
from app.stores.folder import FolderStorage
from clarinet.files.refusal import Refused

NAME, TABLE, PREFIX = "upload.zip", "table.csv", "d"


def taken(root: Path, data: bytes, *, table: bytes | None = None, **choices: Any) -> dict[str, Any]:
    """The result of an import, with its records by file name; or {"refused": ...}."""
    storage = FolderStorage(root)
    storage.put("u/data", data)
    upload = {"kind": "auto", "name": NAME, "data": "u/data", **choices}
    if table is not None:
        storage.put("u/table", table)
        upload |= {"table": "u/table", "table_name": TABLE}
    try:
        result = take_in(storage, PREFIX, upload)
    except (Refused, FilesRefused) as refusal:
        return {"refused": str(refusal)}
    return result | {"records": records_of(root)}


def records_of(root: Path) -> dict[str, Record]:
    """The last import's records, by file name."""
    found = [record for some in read_records(FolderStorage(root), PREFIX, chunk=100) for record in some]
    return {str(record.filename): record for record in found}


def places(result: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    """Split and class of each file."""
    names = result["class_names"] or []
    return {
        name: (record.split, None if record.true_class is None else names[record.true_class])
        for name, record in result["records"].items()
    }


class Packed(zipfile.ZipInfo):
    """A member whose name is in some encoding, without a flag."""

    encoding = "gbk"

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802 - zipfile calls it
        return self.filename.encode(self.encoding), self.flag_bits


def packed_as(encoding: str, files: dict[str, bytes]) -> bytes:
    """A zip as Windows and older systems pack it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            info = Packed(name)
            info.encoding = encoding
            archive.writestr(info, data)
    return out.getvalue()


def as_finder_packs(data: bytes) -> bytes:
    """The same zip without the flag that its names are UTF-8."""
    changed = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := changed.find(signature, at + 1)) >= 0:
            (flags,) = struct.unpack_from("<H", changed, at + offset)
            struct.pack_into("<H", changed, at + offset, flags & ~0x800)
    return bytes(changed)
