"""A log that cannot be written: requests do what they did, the server starts, what was lost is counted."""

import errno
import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import pytest
import structlog
import typer
from fastapi.testclient import TestClient
from structlog.testing import capture_logs

from app import jobs
from app.db import LOG_LINES, Database, unit_of_work
from app.jobs import Job
from app.lines import print_lines
from app.logs import configure_logs
from app.settings import Settings
from app.sink import Sink
from tests.factories import make_user
from worker.cli.serve import _begin, tell_first_admin


def full() -> TextIO:
    """A file on a disk that has no space left."""
    return Path("/dev/full").open("w", buffering=1)


def unread() -> TextIO:
    """A pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", buffering=1)


@pytest.fixture(params=[full, unread, lambda: None], ids=["full", "unread", "none"])
def nowhere(request: pytest.FixtureRequest) -> Iterator[TextIO | None]:
    """A standard error that takes nothing."""
    stream: TextIO | None = request.param()
    yield stream
    if stream is not None:
        with suppress(OSError):
            stream.close()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_requests_do_what_they_did(
    *,
    settings: Settings,
    client: TestClient,
    published: list[Job],
    monkeypatch: pytest.MonkeyPatch,
    nowhere: TextIO | None,
    log_format: str,
) -> None:
    monkeypatch.setattr(sys, "stderr", nowhere)
    configure_logs(settings.model_copy(update={"log_format": log_format}))

    made = client.post("/api/v1/datasets", data={"name": "d"}, files={"file": ("a.zip", b"PK\x03\x04")})
    refused = client.post("/api/v1/datasets", data={"name": "d"}, files={"file": ("a.zip", b"PK\x03\x04")})
    wrong = client.post("/sign-in", data={"email": "a@example.org", "password": "?"})

    assert (made.status_code, refused.status_code, wrong.status_code) == (202, 409, 422)
    assert [job.name for job in published] == [jobs.IMPORT_DATASET]
    logging.getLogger("package").error("as well")


def test_what_is_printed_stops_no_server(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, nowhere: TextIO | None
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", nowhere)
    print_lines()
    configure_logs(settings.model_copy(update={"log_format": "json"}))

    typer.echo("a warning", err=True)
    typer.echo("a link")


def test_jobs_are_sent_before_anything_is_logged(database: Database) -> None:
    with capture_logs() as logged:

        def publish(job: Job) -> None:
            assert not logged, job

        with unit_of_work(database.write, publish) as session:
            session.info[LOG_LINES] = [("something.happened", {})]
            jobs.enqueue(session, jobs.MEASURE_DISK)

    assert [line["event"] for line in logged] == ["something.happened"]


def test_what_was_lost_is_counted_once() -> None:
    stream = TakesAtTimes()
    sink = Sink(stream)
    structlog.configure(logger_factory=lambda *_: sink, processors=[structlog.processors.JSONRenderer()])
    log = structlog.get_logger()

    log.info("first")
    stream.is_full = True
    log.info("lost")
    stream.is_full, stream.is_closing = False, True
    log.error("lost as well")
    stream.is_closing = False
    log.info("last")
    log.info("after it")

    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.pop("event") for line in events] == ["first", "last", "log.lines_lost", "after it"]
    assert events[2] == {"lines": 2}


class TakesAtTimes(io.StringIO):
    """A file that takes what is written again after a while."""

    is_full = is_closing = False

    def write(self, text: str) -> int:
        """Take a text, or not."""
        if self.is_closing:
            raise ValueError("I/O operation on closed file")
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_the_first_link_is_printed_and_no_machine_logs_it(
    settings: Settings,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log_format: str,
) -> None:
    settings = settings.model_copy(update={"log_format": log_format})
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    _begin(settings)

    tell_first_admin(database, settings)

    printed = capsys.readouterr()
    assert ("/invitations/" in printed.out) == (log_format == "console")
    assert "/invitations/" not in printed.err
    assert ("clarinet user add EMAIL --admin --link" in printed.err) == (log_format == "json")
    with database.write.begin() as session:
        make_user(session, role="admin")
    tell_first_admin(database, settings)
    assert capsys.readouterr() == ("", "")
