"""Zip files by strangers: list what is inside without believing it, read members while counting."""

import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.datasets.intake.limits import (
    MAX_MEMBER_BYTES,
    MAX_MEMBERS,
    MAX_RATIO,
    MIB,
    RATIO_MATTERS_FROM,
)
from app.datasets.intake.member_names import names_of
from app.datasets.intake.reading import checked_path
from clarinet.files.folders import is_litter
from clarinet.files.refusal import Refused
from clarinet.files.zips import Members, open_zip

LOCAL_HEADER_BYTES = 30
ENCRYPTED = 0x1
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


class Archive(Members):
    """A zip whose list of members has been checked; each member by its path."""

    name: str

    def __init__(self, file: zipfile.ZipFile, name: str, *, packed_bytes: int, encoding: str) -> None:
        _check_overlaps(file, name)
        members, self.encoding = _members(file, name, encoding)
        super().__init__(file, name, members)
        self.comment = file.comment
        _check_ratio(self.members, name, packed_bytes=packed_bytes)

    def head(self, path: str, length: int) -> bytes:
        """The first bytes of a member."""
        with self.open(path) as stream:
            return stream.read(length)

    def read(self, path: str, *, limit: int = MAX_MEMBER_BYTES) -> bytes:
        """A whole member.

        Raises:
            Refused: damaged, or more than `limit` bytes, whatever the archive says of it.
        """
        with self.open(path) as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise Refused(path, f"is larger than {limit // MIB} MB")
        return data


@contextmanager
def open_archive(path: Path, name: str, *, encoding: str = "") -> Iterator[Archive]:
    """Open a zip and check everything that its list of members says.

    Args:
        path: where it lies.
        name: what refusals call it.
        encoding: of file names without a flag; "" finds out.

    Raises:
        Refused: no zip, or one that could hurt.
        EncodingNotKnown: somebody must say what its names are.
    """
    with open_zip(path, name) as file:
        yield Archive(file, name, packed_bytes=path.stat().st_size, encoding=encoding)


def _members(file: zipfile.ZipFile, name: str, encoding: str) -> tuple[dict[str, zipfile.ZipInfo], str]:
    """Plain files by path, folders and litter left out; and in which encoding names without a flag were."""
    if len(file.infolist()) > MAX_MEMBERS:
        raise Refused(name, f"holds more than {MAX_MEMBERS} files")
    members: dict[str, zipfile.ZipInfo] = {}
    names, read_as = names_of(file.infolist(), name, encoding=encoding)
    for info, called in zip(file.infolist(), names, strict=True):
        path = checked_path(called)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            what = "a link" if kind == stat.S_IFLNK else "no plain file"
            raise Refused(path, f"is {what}; only plain files are taken")
        if info.is_dir() or kind == stat.S_IFDIR or is_litter(path):
            continue
        if info.flag_bits & ENCRYPTED:
            raise Refused(path, "is encrypted")
        if info.compress_type not in METHODS:
            raise Refused(path, "is packed in a way that is not supported")
        if path in members:
            raise Refused(path, f"is in {name} twice")
        members[path] = info
    if not members:
        raise Refused(name, "holds no files")
    return members, read_as


def _check_overlaps(file: zipfile.ZipFile, name: str) -> None:
    """Members that share bytes are the dense kind of bomb; Python before 3.11.8 reads them without a word."""
    end = 0
    for info in sorted(file.infolist(), key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise Refused(info.filename, f"shares its bytes with another file of {name}")
        end = info.header_offset + LOCAL_HEADER_BYTES + info.compress_size
    if end > file.start_dir:
        raise Refused(name, "says that it holds more bytes than it has")


def _check_ratio(members: Mapping[str, zipfile.ZipInfo], name: str, *, packed_bytes: int) -> None:
    for path, info in members.items():
        if info.file_size > RATIO_MATTERS_FROM and info.file_size > MAX_RATIO * max(1, info.compress_size):
            raise Refused(path, f"would unpack to more than {MAX_RATIO} times its size, as a zip bomb does")
    total = sum(info.file_size for info in members.values())
    if total > RATIO_MATTERS_FROM and total > MAX_RATIO * packed_bytes:
        raise Refused(name, f"would unpack to more than {MAX_RATIO} times its size, as a zip bomb does")
