"""`clarinet doctor`: one line for each thing that this machine's part of the installation needs."""

import asyncio
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from app import clock
from app.db import Database, connect
from app.health import OK, Readiness
from app.proxies import warning_at_start
from app.runs.workers import DOCTOR
from app.settings import Settings
from worker.heartbeat import look_at_device

CLOCKS_AGREE_S = 2.0
TRAINED_WITH = ("torch", "torchvision")

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How one thing is."""

    name: str
    state: State
    words: str


def look() -> list[Finding]:
    """Look at everything. What is written: the data folder, a row that says so, a file that is gone again."""
    try:
        settings = Settings()
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        return [Finding("settings", "failed", told.removeprefix(": "))]
    return [Finding("settings", "ok", f"{settings.environment}, data in {settings.data_dir}"), *_of(settings)]


def _of(settings: Settings) -> Iterator[Finding]:
    yield _versions()
    yield _folder(settings.data_dir)
    try:
        database = connect(settings.sqlalchemy_url)
    except OSError as error:
        yield Finding("database", "failed", f"its folder cannot be made: {error.strerror}")
        return
    try:
        yield from _readiness(settings, database)
        yield _clock()
    finally:
        database.dispose()
    yield _device(settings)
    warning = warning_at_start(settings, "0.0.0.0")
    yield Finding("address", "warning" if warning else "ok", warning or settings.public_url)


def _versions() -> Finding:
    found = []
    for name in ("clarinet", *TRAINED_WITH):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    state: State = "warning" if any(words.startswith("no ") for words in found) else "ok"
    return Finding("versions", state, ", ".join([f"Python {platform.python_version()}", *found]))


def _folder(path: Path) -> Finding:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
    except OSError as error:
        return Finding("folder", "failed", f"{path} cannot be written: {error.strerror}")
    return Finding("folder", "ok", f"{path} can be written")


def _readiness(settings: Settings, database: Database) -> Iterator[Finding]:
    checks, warnings = asyncio.run(Readiness(settings, database, kind=DOCTOR).look())
    for name, words in checks.items():
        yield Finding(name, "ok" if words == OK else "failed", words)
    for name in ("workers", "upkeep", "broker"):
        if name in warnings or name == "broker" or checks.get("migrations") == OK:
            yield Finding(name, "warning" if name in warnings else "ok", warnings.get(name, OK))


def _clock() -> Finding:
    if not clock.is_followed():
        return Finding("clock", "warning", "not compared: the database does not answer")
    ahead = clock.host_ahead_s()
    words = f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database's"
    if abs(ahead) <= CLOCKS_AGREE_S:
        return Finding("clock", "ok", words)
    return Finding("clock", "warning", f"{words}, which everybody goes by; set this host's clock")


def _device(settings: Settings) -> Finding:
    device = look_at_device(settings.device)
    if settings.device == "cuda" and device.words.startswith("CPU"):
        return Finding("device", "failed", "CLARINET_DEVICE is cuda, and nvidia-smi finds no GPU")
    memory = f", {device.memory_bytes / 1024**3:.0f} GB" if device.memory_bytes else ""
    return Finding("device", "ok", f"{device.words}{memory}")


def lines(found: list[Finding]) -> Iterator[str]:
    """One for each, with what is wrong first on its line."""
    width = max(len(item.name) for item in found)
    for item in found:
        yield f"{item.state:<7}  {item.name:<{width}}  {item.words}"


def as_dicts(found: list[Finding]) -> list[dict[str, str]]:
    """The same for programs."""
    return [asdict(item) for item in found]
