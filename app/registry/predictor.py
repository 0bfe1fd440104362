"""The process that predicts, as servers and workers hold it: started on first use, kept warm, replaced.

What is asked for waits in a line of bounded length. One thread takes from it all that is about the same
model, up to a limit, and lets it run as one batch. So many who ask for one picture each wait little longer
than one.
"""

import io
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any
from uuid import UUID

import numpy as np
import structlog

from app.apart import environment
from app.claims import BEAT_S
from app.registry.inference.frames import read_frame, write_frame
from app.registry.inference.limits import (
    BASE_S,
    IDLE_S,
    LONGEST_S,
    MOST_PICTURES,
    MOST_WAITING,
    MOST_WAITING_BYTES,
    PICTURE_S,
)
from app.registry.pipes import PatientPipe, TooLate
from app.registry.predict_errors import ModelCannotPredict, PredictorBusy
from app.storage import StoredFileDamaged, StoredFileMissing
from clarinet.files.refusal import Refused

COMMAND = (sys.executable, "-m", "app.registry.inference")
LOG_BYTES = 4000
TRIES = 3  # to open a file that has made room for others since it was found
HURTS = "ends the process that predicts, by the memory or the time that it takes; nothing more is known of it"
TOO_LATE = "was not looked at, because other pictures of the request took too long; send it again"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Served:
    """A model as it was when somebody asked; a batch has one of them from its beginning to its end."""

    id: UUID
    name: str
    version: int  # of its name
    digest: str  # of the weights
    classes: tuple[str, ...]
    path: str  # of its ONNX file, as long as it lies there
    sha256: str  # of that file
    side: int | None  # pixels of the square that its network sees, where the file takes any
    # Where the file lies once it has gone from `path`: a bucket's cache makes room for others at any moment.
    again: Callable[[], str] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Sent:
    """A picture that somebody sent."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Said:
    """What a model says of a picture: the probabilities of its classes in order, or why there are none."""

    probabilities: tuple[float, ...] | None
    refused: str = ""
    seen: bytes = b""  # a PNG of what the network sees, where it was asked for


class _Died(Exception):
    """The process ended, or was ended, before it had answered."""


@dataclass(eq=False)
class _Job:
    served: Served
    pictures: Sequence[Sent]
    seen: bool
    said: "Future[list[Said]]" = field(default_factory=Future)

    @property
    def size(self) -> int:
        return sum(len(picture.data) for picture in self.pictures)


class Predictor:
    """Predictions by models that this installation wrote. Safe to ask from several threads.

    Args:
        command: that starts the process.
        longest_s: for all pictures of a batch, with what is started anew on the way.
        patience: seconds for an answer about so many pictures.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = COMMAND,
        longest_s: float = LONGEST_S,
        patience: Callable[[int], float] = lambda pictures: BASE_S + PICTURE_S * pictures,
    ) -> None:
        self._command = command
        self._longest_s = longest_s
        self._patience = patience
        self._lock = threading.Condition()
        self._line: deque[_Job] = deque()
        self._served: list[_Job] = []  # that were taken from it and are not answered yet
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._process: _Process | None = None  # of the thread alone
        self.batches = 0  # that ran, to measure by

    def ask(self, served: Served, pictures: Sequence[Sent], *, seen: bool = False) -> "Future[list[Said]]":
        """What the model says of each picture, once it is known; at most MOST_PICTURES.

        The future raises ModelCannotPredict, StoredFileMissing, StoredFileDamaged or StorageAway.

        Raises:
            PredictorBusy: as many wait, or are worked at, as may.
        """
        assert len(pictures) <= MOST_PICTURES
        job = _Job(served, pictures, seen)
        with self._lock:
            # A request keeps its place in the server until it is answered, whether it waits or is worked at.
            here = [*self._line, *self._served]
            size = sum(other.size for other in here) + job.size
            if self._is_closed or len(here) >= MOST_WAITING or size > MOST_WAITING_BYTES:
                raise PredictorBusy
            self._line.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="predictor", daemon=True)
                self._thread.start()
            self._lock.notify()
        return job.said

    def close(self) -> None:
        """End the process; what waits is refused."""
        with self._lock:
            self._is_closed = True
            waiting, self._line = list(self._line), deque()
            thread, process = self._thread, self._process
            self._lock.notify()
        for job in waiting:
            if job.said.set_running_or_notify_cancel():
                job.said.set_exception(PredictorBusy())
        if process is not None:
            process.kill()
        if thread is not None:
            thread.join()

    def __enter__(self) -> "Predictor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        """Serve batch after batch; ends with the process when nobody has asked for a while."""
        while batch := self._next():
            self._serve(batch)
            with self._lock:
                self._served = []

    def _next(self) -> list[_Job]:
        """Those that wait longest and are about one model, as many as fit; none once nobody asks any more."""
        with self._lock:
            if not self._line and not self._is_closed:
                self._lock.wait(IDLE_S)
            if not self._line:
                self._end()
                self._thread = None
                return []
            first, left = self._line[0], MOST_PICTURES
            taken: list[_Job] = []
            for job in list(self._line):
                if (job.served, job.seen) == (first.served, first.seen) and len(job.pictures) <= left:
                    self._line.remove(job)
                    taken.append(job)
                    left -= len(job.pictures)
            self._served = taken
            return taken

    def _serve(self, taken: Sequence[_Job]) -> None:
        batch = [job for job in taken if job.said.set_running_or_notify_cancel()]
        if not batch:
            return
        pictures = [picture for job in batch for picture in job.pictures]
        self.batches += 1
        try:
            said = self._said(batch[0], pictures, until=time.monotonic() + self._longest_s)
        except Exception as error:  # whatever it is, those who wait must hear of it
            for job in batch:
                job.said.set_exception(error)
            return
        for job in batch:
            job.said.set_result(said[: len(job.pictures)])
            said = said[len(job.pictures) :]

    def _said(self, job: _Job, pictures: Sequence[Sent], *, until: float) -> list[Said]:
        """What is said of each; one that ends the process is found by halves, and the others answered."""
        if self._is_closed:
            raise PredictorBusy
        if time.monotonic() > until:
            return [_refused(picture, TOO_LATE) for picture in pictures]
        self._load(job)
        try:
            return self._exchange(job, pictures)
        except _Died as death:
            self._end()
            log.warning("predictor.died", pictures=len(pictures), reason=str(death))
        if len(pictures) == 1:
            return [_refused(pictures[0], HURTS)]
        half = len(pictures) // 2
        first = self._said(job, pictures[:half], until=until)
        return first + self._said(job, pictures[half:], until=until)

    def _load(self, job: _Job) -> None:
        """Let the process have the model, and be there."""
        with self._lock:  # whoever closes it finds the process, or there will be none
            if self._is_closed:
                raise PredictorBusy
            self._process = self._process or _Process(self._command)
        if job.served.sha256 in self._process.knows:
            return
        try:
            self._exchange(job, ())
        except _Died as death:
            self._end()
            if self._is_closed:
                raise PredictorBusy from death
            log.warning("predictor.died_of_model", model_id=str(job.served.id), reason=str(death))
            raise ModelCannotPredict(
                "loading it takes more memory or time than predicting may use"
            ) from death
        self._process.knows.add(job.served.sha256)

    def _exchange(self, job: _Job, pictures: Sequence[Sent]) -> list[Said]:
        served = job.served
        said, pieces = self._asked(job, pictures, served.path)
        for _ in range(TRIES):
            if "missing" not in said or served.again is None:
                break
            said, pieces = self._asked(job, pictures, served.again())
        if "missing" in said:
            raise StoredFileMissing
        if "damaged" in said:
            raise StoredFileDamaged
        if "cannot" in said:
            raise ModelCannotPredict(said["cannot"])
        return _put_together(said["refused"], pieces, len(pictures), len(served.classes))

    def _asked(self, job: _Job, pictures: Sequence[Sent], path: str) -> tuple[dict[str, Any], list[bytes]]:
        """What the process answers about a model whose file lies there."""
        served, process = job.served, self._process
        assert process is not None
        about = {
            "model": {"path": path, "sha256": served.sha256, "side": served.side},
            "names": [picture.name for picture in pictures],
            "seen": job.seen,
        }
        return process.ask(
            about, [picture.data for picture in pictures], patience_s=self._patience(len(pictures))
        )

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


def _refused(picture: Sent, why: str) -> Said:
    return Said(None, str(Refused(picture.name, why)))


def _put_together(refused: dict[str, str], pieces: list[bytes], count: int, num_classes: int) -> list[Said]:
    rows = np.frombuffer(pieces[0], "<f4").reshape(-1, num_classes).tolist() if pieces else []
    found = iter(zip(rows, pieces[1:] or [b""] * len(rows), strict=True))
    said = []
    for place in range(count):
        why = refused.get(str(place))
        if why is not None:
            said.append(Said(None, why))
            continue
        row, seen = next(found)
        said.append(Said(tuple(row), seen=seen))
    return said


def awaited(said: "Future[list[Said]]", beat: Callable[[], None]) -> list[Said]:
    """What is said, while somebody holds a claim by `beat`, which may raise."""
    while True:
        beat()
        with suppress(TimeoutError):
            return said.result(timeout=BEAT_S / 2)


class _Process:
    """One process that predicts; of one thread alone."""

    def __init__(self, command: Sequence[str]) -> None:
        self.knows: set[str] = set()  # models that it has loaded once; it may load them again
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        self._process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(),
        )
        self._pipes = PatientPipe(_there(self._process.stdin)), PatientPipe(_there(self._process.stdout))
        self._to, self._from = io.BufferedWriter(self._pipes[0]), io.BufferedReader(self._pipes[1])

    def ask(
        self, about: dict[str, Any], pieces: Sequence[bytes], *, patience_s: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Its answer; raises _Died where there is none within so many seconds."""
        for pipe in self._pipes:
            pipe.until = time.monotonic() + patience_s
        try:
            write_frame(self._to, about, pieces)
            answer = read_frame(self._from)
        except (BrokenPipeError, TooLate):
            answer = None
        if answer is None:
            raise _Died(self._last_words())
        return answer

    def kill(self) -> None:
        """End it, whatever it does; from any thread."""
        self._process.kill()

    def end(self) -> None:
        """End it and let go of it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._to, self._from):
            with suppress(BrokenPipeError, TooLate):  # what was not sent
                pipe.close()
        self._errors.close()

    def _last_words(self) -> str:
        self._process.kill()
        code = self._process.wait()
        end = self._errors.seek(0, 2)
        self._errors.seek(max(0, end - LOG_BYTES))
        return f"exit {code}: {self._errors.read().decode(errors='replace')}"


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # both are pipes, as asked for
    return pipe
