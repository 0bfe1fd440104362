"""`clarinet doctor`: one line for each thing that this machine's part of the installation needs."""

import asyncio
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from app import clock
from app.accounts.organisation.opening import provider_of
from app.db import Database, connect
from app.errors import AppError
from app.health import OK, Readiness
from app.organisation_settings import back_url
from app.proxies import warning_at_start
from app.runs.workers import DOCTOR
from app.settings import Settings
from app.stores.chosen import StorageNotInstalled, storage_of
from app.tracing.spans import TracesNotInstalled, require
from worker.device import look_at_device
from worker.fitness import device_trouble, folder_trouble

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
        told = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
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
    except StorageNotInstalled as error:
        yield Finding("storage", "failed", str(error))
    else:
        yield _clock()
    finally:
        database.dispose()
    yield _device(settings)
    yield _organisation(settings)
    yield _traces(settings)
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
    trouble = folder_trouble(path)
    return Finding("folder", "failed" if trouble else "ok", trouble or f"{path} can be written")


def _readiness(settings: Settings, database: Database) -> Iterator[Finding]:
    storage = storage_of(settings)
    checks, warnings = asyncio.run(Readiness(settings, database, storage, kind=DOCTOR).look())
    for name, words in checks.items():
        said = f"{storage.words} is written and read" if (name, words) == ("storage", OK) else words
        yield Finding(name, "ok" if words == OK else "failed", said)
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
    if trouble := device_trouble(settings.device):
        return Finding("device", "failed", trouble)
    device = look_at_device(settings.device)
    memory = f", {device.memory_bytes / 1024**3:.0f} GB" if device.memory_bytes else ""
    return Finding("device", "ok", f"{device.words}{memory}")


def _organisation(settings: Settings) -> Finding:
    """Whether the provider by which people sign in answers as the one that the settings name."""
    now = clock.utc_now()
    try:
        provider = provider_of(settings)
        if provider is None:
            return Finding("sign-in", "ok", "with a password alone")
        provider.told(now)
        count = len(provider.keys(now).keys)
    except AppError as error:
        return Finding("sign-in", "failed", error.detail)
    if not count:
        words = f"{settings.oidc_issuer} shows no key that signatures can be checked by"
        return Finding("sign-in", "failed", words)
    words = f"{settings.oidc_issuer} answers; it must know the address {back_url(settings.public_url)}"
    return Finding("sign-in", "ok", words)


def _traces(settings: Settings) -> Finding:
    """Whether a collector takes what this installation does, if it is to be told."""
    if not settings.traces:
        return Finding("traces", "ok", "off")
    try:
        require(settings)
    except TracesNotInstalled as error:
        return Finding("traces", "failed", error.detail)
    from app.tracing.exporting import endpoint, takes_spans

    if takes_spans():
        return Finding("traces", "ok", f"{endpoint()} takes them")
    return Finding("traces", "warning", f"{endpoint()} does not take them; all else works without")


def lines(found: list[Finding]) -> Iterator[str]:
    """One for each, with what is wrong first on its line."""
    width = max(len(item.name) for item in found)
    for item in found:
        yield f"{item.state:<7}  {item.name:<{width}}  {item.words}"


def as_dicts(found: list[Finding]) -> list[dict[str, str]]:
    """The same for programs."""
    return [asdict(item) for item in found]
