"""How many pictures a second a running server predicts, over HTTP, for several clients at once."""

import io
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from clarinet_client import Client, TooMany

PAUSE_S = 0.5  # after a refusal
MADE = 64  # different pictures


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured in one case; times are of a request that was answered."""

    clients: int
    batch: int  # pictures of a request
    pictures_per_s: float
    p50_ms: float
    p99_ms: float
    refused: int  # requests that were told to come again
    unread: int  # pictures of which nothing was said


@dataclass
class _Tally:
    times: list[float] = field(default_factory=list)
    refused: int = 0
    unread: int = 0


def measure_predicting(
    connect: Callable[[], Client],
    model_id: str,
    cases: Sequence[tuple[int, int]],
    *,
    pictures: Sequence[tuple[str, bytes]],
    seconds: float,
) -> list[Row]:
    """A row for each number of clients and of pictures a request.

    Args:
        connect: makes a client, one for each thread.
        cases: clients at work at once, and pictures of each request.
        pictures: that are sent, in turns; each with its name.
        seconds: each case takes, after one request that is not counted.
    """
    return [_measured(connect, model_id, case, pictures, seconds) for case in cases]


def _measured(
    connect: Callable[[], Client],
    model_id: str,
    case: tuple[int, int],
    pictures: Sequence[tuple[str, bytes]],
    seconds: float,
) -> Row:
    clients, batch = case
    with connect() as client:
        client.models.predict(model_id, pictures[:batch])  # the process that predicts is there now
    tallies = [_Tally() for _ in range(clients)]
    began = time.perf_counter()

    def work(tally: _Tally, first: int) -> None:
        place = first
        with connect() as client:
            while time.perf_counter() - began < seconds:
                sent = [pictures[(place + step) % len(pictures)] for step in range(batch)]
                place += batch
                asked = time.perf_counter()
                try:
                    said = client.models.predict(model_id, sent)
                except TooMany:
                    tally.refused += 1
                    time.sleep(PAUSE_S)
                    continue
                tally.times.append(time.perf_counter() - asked)
                tally.unread += sum(one["refused"] is not None for one in said["pictures"])

    threads = [
        threading.Thread(target=work, args=(tally, 7 * number)) for number, tally in enumerate(tallies)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    times = sorted(1000 * one for tally in tallies for one in tally.times) or [0.0]
    return Row(
        clients=clients,
        batch=batch,
        pictures_per_s=round(batch * sum(len(tally.times) for tally in tallies) / took, 1),
        p50_ms=round(statistics.median(times), 1),
        p99_ms=round(times[int(0.99 * (len(times) - 1))], 1),
        refused=sum(tally.refused for tally in tallies),
        unread=sum(tally.unread for tally in tallies),
    )


def pictures_to_send(folder: Path | None, side: int, *, colour: bool) -> list[tuple[str, bytes]]:
    """The files of a folder, or noise: grey PNG, or JPEG in colour."""
    if folder is not None:
        return [(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file()]
    noise = np.random.default_rng(0)
    kind, ending = ("JPEG", "jpg") if colour else ("PNG", "png")
    found = []
    for place in range(MADE):
        small = noise.integers(0, 256, (max(1, side // 4),) * 2 + ((3,) if colour else ()), np.uint8)
        out = io.BytesIO()
        Image.fromarray(small).resize((side, side)).save(out, kind)
        found.append((f"{place}.{ending}", out.getvalue()))
    return found


def as_text(row: Row) -> str:
    """For people."""
    return (
        f"{row.clients} clients, {row.batch} a request: {row.pictures_per_s:,.0f} pictures/s, "
        f"median {row.p50_ms:,.0f} ms, p99 {row.p99_ms:,.0f} ms, {row.refused} refused, {row.unread} unread"
    )
