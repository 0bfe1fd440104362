"""Zip files by strangers: list what is inside without believing it, read members while counting."""

import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from clarinet.files.kinds import is_litter
from clarinet.files.refusal import Refused
from clarinet.files.zips import Members, open_zip

LOCAL_HEADER_BYTES = 30
ENCRYPTED = 0x1
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
WINDOWS = {0, 10, 11, 14}  # systems, as zips number them, on which a backslash parts folders


class Archive(Members):
    """A zip whose list of members has been checked; each member by its path.

    What is bad about single members is in `refused`, so that the others can be taken without them.
    """

    name: str

    def __init__(self, file: zipfile.ZipFile, name: str, *, packed_bytes: int, encoding: str) -> None:
        _check_overlaps(file, name)
        listed = _members(file, name, encoding)
        self.encoding, self.refused, self.remarks = listed.encoding, listed.refused, listed.remarks
        super().__init__(file, name, listed.members)
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


@dataclass(slots=True)
class _Listed:
    """Plain files by path, without folders and litter; in which encoding names without a flag were."""

    encoding: str
    members: dict[str, zipfile.ZipInfo] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)  # members that are not taken, each with why
    remarks: list[str] = field(default_factory=list)


def _members(file: zipfile.ZipFile, name: str, encoding: str) -> _Listed:
    """What the list of members says, all of it looked at; raises Refused where there is nothing."""
    if len(file.infolist()) > MAX_MEMBERS:
        raise Refused(name, f"holds more than {MAX_MEMBERS} files")
    names, read_as = names_of(file.infolist(), name, encoding=encoding)
    listed = _Listed(read_as)
    if _parts_by_backslash(file.infolist(), names):
        names = [called.replace("\\", "/") for called in names]
        listed.remarks.append(f"The names in {name} part folders by backslashes, as some Windows programs do")
    for info, called in zip(file.infolist(), names, strict=True):
        if _nobody_means(called):
            continue
        try:
            path = checked_path(called)
            if called.endswith("/") or _kind(info) == stat.S_IFDIR:
                continue
            _check_member(info, path)
        except Refused as refusal:
            listed.refused.append(refusal)
            continue
        if path in listed.members:
            listed.refused.append(Refused(path, f"is in {name} twice"))
        else:
            listed.members[path] = info
    if not listed.members and not listed.refused:
        raise Refused(name, "holds no files")
    return listed


def _parts_by_backslash(infos: Sequence[zipfile.ZipInfo], names: Sequence[str]) -> bool:
    """Whether a backslash parts folders: by the system that packed it, or because nothing else does."""
    systems = {info.create_system for info, called in zip(infos, names, strict=True) if "\\" in called}
    return bool(systems) and (systems <= WINDOWS or not any("/" in called for called in names))


def _nobody_means(called: str) -> bool:
    """Whether it is litter, whatever else is wrong with its name."""
    parts = [part for part in called.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
    return is_litter("/".join(parts))


def _kind(info: zipfile.ZipInfo) -> int:
    return stat.S_IFMT(info.external_attr >> 16)


def _check_member(info: zipfile.ZipInfo, path: str) -> None:
    """Raises Refused of a member that cannot be read, or could hurt."""
    if _kind(info) not in (0, stat.S_IFREG):
        what = "a link" if _kind(info) == stat.S_IFLNK else "no plain file"
        raise Refused(path, f"is {what}; only plain files are taken")
    if info.flag_bits & ENCRYPTED:
        raise Refused(path, "is encrypted; pack it without a password")
    if info.compress_type not in METHODS:
        raise Refused(path, "is packed in a way that is not supported; pack it as a plain zip (Deflate)")


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
