"""What a request for a part of a file means (RFC 9110, section 14): one range of bytes, or the whole."""

import re

_RANGE = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*")


class OutsideFile(Exception):
    """The range begins behind the last byte."""


def asked_range(text: str, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last that a `Range` asks for; None: the whole file.

    Several ranges, and what is not understood, are answered with the whole, as the standard lets us.

    Raises:
        OutsideFile: nothing of the file is in it.
    """
    found = _RANGE.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:  # the last so many
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= stop:
        raise OutsideFile
    return start, stop


def is_among(etag: str, given: str) -> bool:
    """Whether a list of `ETag`s, as `If-None-Match` has it, has this one, compressed or not; * is any."""
    known = {one.strip().removeprefix("W/") for one in given.split(",")}
    return bool(given) and (etag in known or "*" in known)
