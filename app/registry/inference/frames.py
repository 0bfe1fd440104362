"""What passes between the server and the process that predicts: a line of JSON, and pieces of bytes."""

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any

LENGTHS = "lengths"


def write_frame(to: IO[bytes], about: Mapping[str, Any], pieces: Sequence[bytes] = ()) -> None:
    """Send one message."""
    to.write(json.dumps({**about, LENGTHS: [len(piece) for piece in pieces]}).encode() + b"\n")
    for piece in pieces:
        to.write(piece)
    to.flush()


def read_frame(source: IO[bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next message; None where there is none any more, or only a part of one."""
    line = source.readline()
    if not line.endswith(b"\n"):
        return None
    about: dict[str, Any] = json.loads(line)
    pieces = [source.read(length) for length in about[LENGTHS]]
    if [len(piece) for piece in pieces] != about[LENGTHS]:
        return None
    return about, pieces
