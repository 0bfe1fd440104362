"""The whole application in one terminal: child processes that are kept alive, and end together."""

import atexit
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from threading import Event
from typing import IO

import structlog

from app.db import connect
from app.errors import AppError
from app.migrate import upgrade
from app.settings import Settings
from worker.beats import BEATS_TO, Listener
from worker.local.processes import environment_of, kill, start
from worker.local.watching import Watch

GRACE_S = 40.0  # a worker gives its training 30 s for a last checkpoint
LOOK_EVERY_S = 0.5
WATCH_EVERY_S = 10.0
QUICK_S = 10.0  # a child that ends sooner did not start
MAX_QUICK_ENDS = 5

log = structlog.get_logger()


class ChildKeepsEnding(AppError):
    """A part of the application does not start."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"The {name} process ends at once (status {code}); its messages are above.")


def settings_for(*, host: str, port: int, data_dir: Path | None) -> Settings:
    """The environment's settings with what the command line says."""
    settings = Settings()
    changed: dict[str, object] = {}
    if data_dir is not None:
        changed["data_dir"] = data_dir.resolve()
    if "public_url" not in settings.model_fields_set:
        changed["public_url"] = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
    return settings.model_copy(update=changed)


def bring_up_to_date(settings: Settings) -> None:
    """Bring the database's schema up to date."""
    database = connect(settings.sqlalchemy_url)
    upgrade(database.engine)
    database.dispose()


@dataclass
class Child:
    """One `clarinet` command as a process of ours."""

    name: str
    arguments: Sequence[str]
    environment: dict[str, str]
    log: IO[bytes]
    process: Popen[bytes] | None = field(default=None, init=False)
    listener: Listener = field(default_factory=Listener, init=False)  # to its beats
    started: float = field(default=0.0, init=False)
    quick_ends: int = field(default=0, init=False)

    def start(self) -> None:
        """Start the process; it dies with us, however we die."""
        self.started = time.monotonic()
        self.process = start(
            "worker.cli.main",
            *self.arguments,
            "--parent",
            str(os.getpid()),
            environment=self.environment | {BEATS_TO: str(self.listener.write_end)},
            log=self.log,
            pass_fds=[self.listener.write_end],
        )

    def look(self) -> None:
        """Start the process again if it has ended, later and later while it keeps ending.

        Raises:
            ChildKeepsEnding: it ended at once, five times in a row.
        """
        if self.process is None:
            if time.monotonic() - self.started > 2.0**self.quick_ends:
                self.start()
            return
        code = self.process.poll()
        if code is None:
            return
        kill(self.process)  # what it has started must not work on without it
        self.process = None
        self.quick_ends = self.quick_ends + 1 if time.monotonic() - self.started < QUICK_S else 0
        log.warning("up.child_ended", child=self.name, status=code)
        if self.quick_ends >= MAX_QUICK_ENDS:
            raise ChildKeepsEnding(self.name, code)

    def end_if_hung(self, watch: Watch) -> None:
        """Kill the process if it gives no sign; the next look starts another one."""
        if self.process is not None and watch.is_hung(self.name, self.process.pid, self.listener):
            log.warning("up.child_hung", child=self.name)
            kill(self.process)

    def ask_to_end(self) -> None:
        """Send SIGTERM to the process alone: what it has started, it ends itself."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)

    def end(self, deadline: float) -> None:
        """Wait for the process until a moment of the monotonic clock, then kill it and its group."""
        if self.process is not None:
            with suppress(TimeoutExpired):
                self.process.wait(max(0.0, deadline - time.monotonic()))
            kill(self.process)


def children(settings: Settings, *, host: str, port: int, log: IO[bytes] | None = None) -> list[Child]:
    """Web, one worker per queue, and upkeep: everything one machine needs."""
    commands = {
        "web": ["serve", "--host", host, "--port", str(port), "--no-migrate"],
        "io worker": ["worker", "--queues", "io"],
        "training worker": ["worker", "--queues", "gpu"],
        "upkeep": ["upkeep"],
    }
    environment = environment_of(settings)
    output = log or sys.stderr.buffer
    return [Child(name, arguments, environment, output) for name, arguments in commands.items()]


@contextmanager
def asked_to_end() -> Iterator[Event]:
    """An event that SIGTERM and Ctrl-C set; a second Ctrl-C interrupts at once.

    Who is asked to end looks for no garbage any more: among a web framework's objects that takes a second.
    Only for processes without torch, whose packages take what is left for leaks and say so.
    """
    atexit.register(gc.freeze)
    ended = Event()

    def on_signal(_number: int, _frame: object) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        ended.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def keep_up(
    running: Sequence[Child], ended: Event, watch: Watch, *, watch_every_s: float = WATCH_EVERY_S
) -> None:
    """Start the children and keep them alive until `ended` is set; then end them all, and only them.

    One that hangs is killed, and starts again.

    Must run in the main thread: the kernel ties a child's life to the thread that started it.

    Raises:
        ChildKeepsEnding: one of them does not start; the others were ended.
    """
    try:
        for child in running:
            child.start()
        watched = time.monotonic()
        while not ended.wait(LOOK_EVERY_S):
            for child in running:
                child.look()
            if time.monotonic() - watched >= watch_every_s:
                for child in running:
                    child.end_if_hung(watch)
                watched = time.monotonic()
    finally:
        for child in running:
            child.ask_to_end()
        deadline = time.monotonic() + GRACE_S
        try:
            for child in running:
                child.end(deadline)
        finally:  # a second Ctrl-C ends the waiting
            for child in running:
                child.end(0.0)
