"""Files that are no zip: what they are by their first bytes, and what to do with them. Pure."""

from clarinet.files.kinds import begins_as_image

LONG_ENOUGH = 512  # bytes of a file, by which it is told
UNPACK = "unpack it, and pack its files as a zip"
ARRAYS = "save its images and labels with numpy.savez as x_train and y_train"
FILES = "save its images as files, and pack them as a zip with a table filename,class"
ARCHIVES = {
    b"PK\x03\x04": "a zip",
    b"PK\x05\x06": "a zip",
    b"\x1f\x8b": "a gzip file",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
}
_OTHERS = {
    b"PK\x07\x08": ("a part of a zip in several parts", "pack it as one"),
    b"PAR1": ("a Parquet table", FILES),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", ARRAYS),
    b"MATLAB": ("a file of MATLAB", ARRAYS),
    b"\x93NUMPY": ("a single array", ARRAYS),
    b"\0\0\x08\x03": ("a file of images as MNIST has them (idx)", ARRAYS),
    b"\0\0\x08\x01": ("a file of labels as MNIST has them (idx)", ARRAYS),
    b"\x80\x02": ("a pickle", f"pickles are never opened: {ARRAYS}"),
    b"\x80\x03": ("a pickle", f"pickles are never opened: {ARRAYS}"),
    b"\x80\x04": ("a pickle", f"pickles are never opened: {ARRAYS}"),
    b"\x80\x05": ("a pickle", f"pickles are never opened: {ARRAYS}"),
    b"%PDF": ("a PDF", "save its pictures as files, and pack them as a zip"),
}
_TAR = slice(257, 262)


def archive_kind(head: bytes) -> str | None:
    """Which archive a file is that begins so."""
    known = next((kind for start, kind in ARCHIVES.items() if head.startswith(start)), None)
    return known or ("a tar archive" if head[_TAR] == b"ustar" else None)


def why_no_zip(head: bytes) -> str:
    """Why a file that cannot be opened as a zip is none, and what to do, by how it begins."""
    if not head:
        return "is empty, and no zip file at all"
    if head.startswith(b"PK\x03\x04"):
        return "is cut short or no zip file at all"
    archive = archive_kind(head)
    found = (archive, UNPACK) if archive else _other_kind(head)
    if found is None:
        return "is cut short or no zip file at all"
    what, mend = found
    return f"is {what} and no zip file at all; {mend}"


def _other_kind(head: bytes) -> tuple[str, str] | None:
    known = next((found for start, found in _OTHERS.items() if head.startswith(start)), None)
    if known is None and begins_as_image(head):
        return "a picture", "pack pictures as a zip, a single one, too"
    if known is None and _is_text(head):
        return "text", "a table of classes goes with a zip of its images, in it or beside it"
    return known


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.end < len(head):  # the last character may be cut
            return False
        text = head[: error.start].decode("utf-8-sig")
    return all(c.isprintable() or c.isspace() for c in text)
