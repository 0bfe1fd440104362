"""Artefacts in a bucket of an S3 store, each as one object.

Nothing half-written is ever there: S3 shows an object whole, once all of its parts have come. Each carries
the SHA-256 of its bytes, by which what is fetched is known to be whole.
"""

import errno
import hashlib
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import obstore
import structlog
from obstore.exceptions import BaseError, PermissionDeniedError, PreconditionError, UnauthenticatedError
from obstore.store import S3Store

from app.storage import (
    UNFINISHED,
    About,
    Storage,
    StorageAway,
    StorageRefused,
    StoredFileDamaged,
    StoredFileMissing,
)
from app.stores.ahead import Ahead
from app.stores.cache import Cache
from app.stores.folder import FolderStorage
from app.stores.objects import PART, about_of, checked, first_line, pieces_of, refuse_after_fork

PARTS_AT_ONCE = 4
LISTED = 1000  # S3 lists no more at once
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 10.0
SENDING_S = 60.0  # patience with what is sent in parts: to begin anew costs more than to wait
AWAY_S = 2.0  # for so long nobody else waits for a store that did not answer
DIGEST = "sha256"  # of an object's metadata
LINK = timedelta(minutes=5)  # that a signed address holds; a download that has begun goes on
NO_BUCKET = "NoSuchBucket"  # in the answer of a store that has none of this name
TRIES = 3  # for bytes that are not those that were written

Result = TypeVar("Result")

log = structlog.get_logger()


class _Cut(Exception):
    """Fewer bytes came than there are, or others."""


class BucketStorage(Storage):
    """A bucket, with a cache on this machine. Safe to use from several threads, not across a fork.

    Args:
        store: the bucket, from the prefix on.
        cache: what this machine keeps of it.
        words: where that is, for people.
        patience_s: for so long the store is asked again before it counts as away.
        beat: called at each request, and with each piece that is sent.
        gives_links: whether `link` gives addresses of the bucket.
    """

    def __init__(
        self,
        store: S3Store,
        cache: Cache,
        *,
        words: str,
        patience_s: float,
        beat: Callable[[], None] = lambda: None,
        gives_links: bool = False,
    ) -> None:
        self._store = store
        self._cache = cache
        self._words = words
        self._patience_s = patience_s
        self._beat = beat
        self._gives_links = gives_links
        self._ahead = Ahead(self.file)
        self._away_until = 0.0  # on the monotonic clock

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """As Storage has it: it is written on this machine, then sent."""
        with tempfile.TemporaryFile(dir=self._cache.spool()) as file:
            yield file
            file.flush()
            self._send(checked(key), file)

    def read(self, key: str, *, offset: int = 0, length: int = -1) -> bytes:
        """As Storage has it; an artefact of which many parts were read is fetched whole."""
        found = self._cache.find(checked(key))
        if found is None and length >= 0:
            self._ahead.note(key)
            got = self._asked(lambda: obstore.get_range(self._store, key, start=offset, length=length))
            return bytes(got)
        with self.open(key) as file:
            file.seek(offset)
            return file.read(length)

    def read_as_written(self, key: str, digest: str, *, offset: int = 0, length: int = -1) -> bytes:
        """As Storage has it; what is damaged on this machine alone is fetched again."""
        try:
            return super().read_as_written(key, digest, offset=offset, length=length)
        except StoredFileDamaged:
            self._cache.drop(key)
            return super().read_as_written(key, digest, offset=offset, length=length)

    def tail(self, key: str, length: int) -> bytes:
        """As Storage has it."""
        about = self.about(key)
        if about is None or about.size == 0:
            return b""
        start = max(0, about.size - length)
        try:
            return bytes(
                self._asked(lambda: obstore.get_range(self._store, key, start=start, end=about.size))
            )
        except StoredFileMissing:
            return b""

    def link(self, key: str, digest: str) -> str | None:
        """As Storage has it: by the digest that the object carries, so that nothing is fetched."""
        if not self._gives_links:
            return None
        about = self._asked(lambda: obstore.get(self._store, checked(key), options={"head": True}))
        written = about.attributes.get(DIGEST)
        if written is None:  # as tools that copy buckets may leave it: only the bytes tell
            return None
        if written != digest:
            raise StoredFileDamaged
        return self._asked(lambda: obstore.sign(self._store, "GET", key, LINK))

    def file(self, key: str) -> Path:
        """As Storage has it: a copy on this machine, which may make room for others later."""
        return self._cache.fetched(checked(key), lambda file: self._fetch(key, file))

    def open(self, key: str) -> BinaryIO:
        """As Storage has it."""
        for _ in range(TRIES):
            try:
                return self.file(key).open("rb")
            except FileNotFoundError:  # it made room at this very moment
                continue
        raise StorageAway(f"the cache of {self._words} on this machine is too small for what is read at once")

    def about(self, key: str) -> About | None:
        """As Storage has it."""
        try:
            return about_of(self._asked(lambda: obstore.head(self._store, checked(key))))
        except StoredFileMissing:
            return None

    def listed(self, prefix: str = "") -> Iterator[About]:
        """As Storage has it; a listing that breaks off goes on behind what has come."""
        last: str | None = None
        while True:
            chunk = self._asked(lambda after=last: self._some(prefix, after))  # type: ignore[misc]
            if not chunk:
                return
            for found in chunk:
                if not any(part.startswith(UNFINISHED) for part in found["path"].split("/")):
                    yield about_of(found)
            last = chunk[-1]["path"]

    def _some(self, prefix: str, after: str | None) -> list[Any]:
        found = obstore.list(self._store, prefix or None, offset=after, chunk_size=LISTED)
        return list(next(iter(found), []))

    def names(self, prefix: str) -> set[str]:
        """As Storage has it."""
        found = self._asked(lambda: obstore.list_with_delimiter(self._store, prefix))
        paths = [*found["common_prefixes"], *(each["path"] for each in found["objects"])]
        return {path.rstrip("/").rpartition("/")[2] for path in paths}

    def move(self, key: str, to: str) -> None:
        """As Storage has it: the store copies it, then the first is deleted."""
        self._asked(lambda: obstore.copy(self._store, checked(key), checked(to)))
        self._cache.drop(to)
        self.delete(key)

    def delete(self, key: str) -> bool:
        """As Storage has it."""
        there = self.about(key) is not None
        if there:
            self._asked(lambda: obstore.delete(self._store, key))
        self._cache.drop(key)
        return there

    def delete_tree(self, prefix: str) -> None:
        """As Storage has it; as in a folder, what cannot be deleted stays and is logged."""
        try:
            keys = [about.key for about in self.listed(prefix)]
            for start in range(0, len(keys), LISTED):
                some = keys[start : start + LISTED]
                self._asked(lambda some=some: obstore.delete(self._store, some))  # type: ignore[misc]
                for key in some:
                    self._cache.drop(key)
        except StorageAway as error:
            log.warning("storage.not_deleted", prefix=prefix, reason=str(error))

    def drop_empty(self, prefix: str) -> None:
        """As Storage has it: a bucket has no folders."""

    @contextmanager
    def local(self, *keys: str) -> Iterator[FolderStorage]:
        """As Storage has it: a folder of its own, which goes with the block."""
        with self._cache.place() as place:
            folder = FolderStorage(place)
            for key in keys:
                with folder.create(key) as file:
                    self._fetch(key, file)
            yield folder

    def keep(self, folder: FolderStorage, prefix: str) -> None:
        """As Storage has it; of a file that grows, what is there when it is opened."""
        path = folder.path(prefix)
        keys = [prefix] if path.is_file() else [about.key for about in folder.listed(prefix)]
        for key in sorted(keys):
            with folder.path(key).open("rb") as file:
                self._send(key, file)

    def spool(self) -> Path:
        """As Storage has it: in the cache's folder."""
        return self._cache.spool()

    def free_bytes(self) -> int | None:
        """As Storage has it: a bucket does not say."""
        return None

    def holds(self, path: Path) -> bool:
        """As Storage has it."""
        return path.resolve().is_relative_to(self._cache.folder.resolve())

    def check(self) -> None:
        """As Storage has it."""
        key = f"{UNFINISHED}check/{os.uname().nodename}-{os.getpid()}"
        data = os.urandom(16)
        try:
            self.put(key, data)
            with tempfile.TemporaryFile() as file:
                self._fetch(key, file)
                file.seek(0)
                if file.read() != data:
                    raise StorageAway(f"{self._words} gives back other bytes than were written")
            self._asked(lambda: obstore.delete(self._store, key))
        except StoredFileMissing:
            raise StorageAway(f"there is no such bucket, or nothing stays in it: {self._words}") from None

    def patiently(self, patience_s: float, *, beat: Callable[[], None] = lambda: None) -> "BucketStorage":
        """As Storage has it: through the same cache."""
        return BucketStorage(
            self._store,
            self._cache,
            words=self._words,
            patience_s=patience_s,
            beat=beat,
            gives_links=self._gives_links,
        )

    @property
    def words(self) -> str:
        """As Storage has it."""
        return self._words

    @property
    def _no_bucket(self) -> StorageRefused:
        return StorageRefused(f"there is no such bucket: {self._words}")

    def _send(self, key: str, file: BinaryIO) -> None:
        """Store all that the file has at this moment, in parts where it is large."""
        size = file.seek(0, os.SEEK_END)
        digest = hashlib.sha256()
        for piece in pieces_of(file, size):
            digest.update(piece)

        about = {DIGEST: digest.hexdigest()}

        def send_at_once() -> None:
            data = b"".join(pieces_of(file, size))
            obstore.put(self._store, key, data, attributes=about, use_multipart=False)

        def send_in_parts() -> None:
            try:
                obstore.put(
                    self._store,
                    key,
                    self._sent(pieces_of(file, size)),
                    attributes=about,
                    use_multipart=True,
                    chunk_size=PART,
                    max_concurrency=PARTS_AT_ONCE,
                )
            except FileNotFoundError as error:
                # The answer that all parts are one object was lost: who asks again hears of no such upload.
                raise _Cut("the end of an upload is not known") from error

        try:
            if size <= PART:
                self._asked(send_at_once)
            else:
                self._asked(send_in_parts, patience_s=max(self._patience_s, SENDING_S))
        except StoredFileMissing:
            raise self._no_bucket from None
        self._cache.drop(key)

    def _sent(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._beat()
            yield piece

    def _fetch(self, key: str, file: BinaryIO) -> None:
        """Write the whole object into a file, a part after the other.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: these are not the bytes that were written, however often they come.
        """
        for number in range(TRIES):
            try:
                if self._fetch_once(key, file):
                    return
            except PreconditionError:  # it was replaced meanwhile
                continue
            except OSError as error:
                if error.errno != errno.ENOSPC or number:
                    raise
                self._cache.make_room(math.inf)  # others have taken what was free
        raise StoredFileDamaged

    def _fetch_once(self, key: str, file: BinaryIO) -> bool:
        """Write what is there now; whether it is what was written."""
        about = self._asked(lambda: obstore.get(self._store, key, options={"head": True}))
        size, tag = about.meta["size"], about.meta["e_tag"]
        file.seek(0)
        file.truncate()
        self._cache.make_room(size + PART)
        digest = hashlib.sha256()
        for start in range(0, size, PART):
            stop = min(start + PART, size)
            part = self._asked(lambda: self._part(key, tag, start, stop))  # noqa: B023 - called at once
            digest.update(part)
            file.write(part)
        file.flush()  # a full disk tells here
        return about.attributes.get(DIGEST, digest.hexdigest()) == digest.hexdigest()

    def _part(self, key: str, tag: str | None, start: int, stop: int) -> bytes:
        got = obstore.get(self._store, key, options={"range": (start, stop), "if_match": tag}).bytes()
        if len(got) != stop - start:
            raise _Cut(f"{len(got)} bytes of {stop - start}")
        return bytes(got)

    def _asked(self, step: Callable[[], Result], *, patience_s: float | None = None) -> Result:
        """What the store answers; asked again with growing pauses while it does not.

        Raises:
            StoredFileMissing: there is no such object.
            StorageRefused: it refuses us.
            StorageAway: it does not answer for longer than anybody's patience.
        """
        refuse_after_fork()
        if time.monotonic() < self._away_until:
            raise StorageAway(f"{self._words} did not answer a moment ago")
        until = time.monotonic() + (self._patience_s if patience_s is None else patience_s)
        pause = FIRST_PAUSE_S
        while True:
            self._beat()
            try:
                return step()
            except FileNotFoundError as error:
                if NO_BUCKET in str(error):
                    raise self._no_bucket from error
                raise StoredFileMissing from None
            except PreconditionError:
                raise
            except (PermissionDeniedError, UnauthenticatedError) as error:
                raise StorageRefused(f"{self._words} refuses us: {first_line(error)}") from error
            except (BaseError, _Cut) as error:
                if NO_BUCKET in str(error):  # what lists gets no FileNotFoundError
                    raise self._no_bucket from error
                if time.monotonic() + pause > until:
                    self._away_until = time.monotonic() + AWAY_S
                    raise StorageAway(f"{self._words} does not answer: {first_line(error)}") from error
                log.info("storage.asked_again", error=first_line(error))
            time.sleep(pause * random.uniform(0.5, 1))  # so that many do not come back at one moment
            pause = min(2 * pause, LONGEST_PAUSE_S)
