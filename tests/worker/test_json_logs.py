"""Where a machine reads the logs, each line of every process is JSON, whoever wrote it."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from app import jobs
from app.clock import utc_now
from app.db import connect
from app.lines import Tracebacks
from app.runs.models import TrialState
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import make_run
from tests.live import installation
from tests.worker.conftest import PYTHON, trainers_of, trial_of, wait_until
from worker.context import Context
from worker.retelling import AT_ONCE_BYTES, LONGEST, retold

NOISE = """
import logging, sys, threading, time, traceback, warnings

def noise():
    while type(sys.stderr).__name__ != "Lines" and "worker.trainer.training" not in sys.modules:
        time.sleep(0.05)
    warnings.warn("a package warns")
    print("a package\\nprints two lines")
    try:
        1 / 0
    except ZeroDivisionError:
        traceback.print_exc()
        logging.getLogger("package").exception("a package logs %s", "it")
    logging.getLogger("package").error("badly %d", "formatted")
    raise RuntimeError("in a thread")

threading.Thread(target=noise, daemon=True).start()
"""
"""What packages may do in any process of ours; as `sitecustomize` it is imported by each."""

DYING = """
import sys
from app.lines import print_lines
from app.logs import configure_logs
from app.settings import Settings
print_lines()
configure_logs(Settings(environment="production", log_format="json", session_secret="x" * 40, _env_file=None))
sys.stdout.write("never ended")
raise SystemError("nobody catches this")
"""


def parsed(text: str) -> list[dict[str, Any]]:
    """The lines, each of which is an object with an event and its time."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            pytest.fail(f"a line that is not JSON: {line!r}")
        assert {"event", "level", "timestamp"} <= found[-1].keys(), line
    return found


def exceptions_of(lines: list[dict[str, Any]]) -> set[str]:
    return {each["exc_type"] for line in lines for each in line.get("exception", [])}


@pytest.mark.long
def test_each_line_of_all_processes_and_of_a_training_with_its_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise, log = tmp_path / "noise", tmp_path / "log"
    noise.mkdir()
    (noise / "sitecustomize.py").write_text(NOISE)
    monkeypatch.setenv("PYTHONPATH", f"{noise}:{os.environ.get('PYTHONPATH', '')}")
    with installation(tmp_path / "data", log, CLARINET_LOG_FORMAT="json") as live:
        address = urlsplit(live.url)
        with socket.create_connection((address.hostname, address.port)) as visitor:
            visitor.sendall(b"no request\r\n\r\n")
            visitor.recv(1000)
        settings = Settings(data_dir=live.data_dir, _env_file=None)
        database = connect(settings.sqlalchemy_url)
        context = Context(settings, database, FolderStorage(settings.artefact_dir), jobs.publisher(settings))
        with context.unit_of_work() as session:
            run = make_run(session, context.storage, config={"epochs": 100_000}, queued_at=utc_now())
            trial_id, run_id = str(run.trials[0].id), str(run.id)
            jobs.enqueue(session, jobs.TRAIN_TRIAL, trial_id)
        wait_until(lambda: trial_of(context, run.trials[0].id).state is TrialState.RUNNING)
        wait_until(lambda: "trial.training" in log.read_text() and "trainer.said" in log.read_text())
        [trainer] = trainers_of(run.trials[0].id)
        supervisor = int(Path(f"/proc/{trainer}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: "job.lost" in log.read_text())
        database.dispose()

    lines = parsed(log.read_text())
    events = [line["event"] for line in lines]
    assert "a package\nprints two lines" in events
    assert any(event.startswith("Traceback") and event.endswith("by zero") for event in events)
    assert any("UserWarning: a package warns" in event for event in events)
    assert {"a package logs it", "Invalid HTTP request received.", "log.not_written"} <= set(events)
    assert exceptions_of(lines) >= {"RuntimeError", "ZeroDivisionError", "TypeError", "WorkerLostError"}
    assert any(line.get("said") == "worker: Warm shutdown (MainProcess)" for line in lines)
    told = [line for line in lines if line["event"] == "trainer.said"]
    assert {(line["run_id"], line["trial_id"]) for line in told} == {(run_id, trial_id)}
    assert any("trial.training" in line["said"]["event"] for line in told if isinstance(line["said"], dict))
    assert any(str(line["said"]).endswith("ZeroDivisionError: division by zero") for line in told)
    [claimed] = [line for line in lines if line["event"] == "trial.claimed"]
    assert (claimed["run_id"], claimed["trial_id"]) == (run_id, trial_id)
    [lost] = [line for line in lines if line["event"] == "job.lost"]
    assert (lost["job"], lost["row_id"]) == (jobs.TRAIN_TRIAL, trial_id)


def test_the_end_of_a_process_that_nobody_foresaw() -> None:
    done = subprocess.run([PYTHON, "-c", DYING], capture_output=True, text=True, check=False)

    lines = parsed(done.stderr)
    assert (done.returncode, done.stdout) == (1, "")
    assert exceptions_of(lines) == {"SystemError"}
    assert [line["event"] for line in lines] == ["process.failed", "never ended"]


LEAVING = """
import os, sys, traceback
from app.lines import end_lines, print_lines
from app.logs import configure_logs
from app.settings import Settings
print_lines()
configure_logs(Settings(environment="production", log_format="json", session_secret="x" * 40, _env_file=None))
try:
    1 / 0
except ZeroDivisionError:
    sys.stderr.write("Exception in package:\\n" + traceback.format_exc())
sys.stderr.write("Traceback (most recent call last):\\n")
sys.stdout.write("never ended")
if sys.argv[1:]:
    end_lines()
os._exit(0)
"""


def test_nothing_is_lost_where_a_process_ends_at_once() -> None:
    without, told = (
        subprocess.run([PYTHON, "-c", LEAVING, *words], capture_output=True, text=True, check=True).stderr
        for words in ([], ["end lines"])
    )

    [traceback] = [line["event"] for line in parsed(without)]
    assert traceback.startswith("Exception in package:\nTraceback")
    assert traceback.endswith("by zero")
    assert [line["event"] for line in parsed(told)] == [traceback, "never ended", traceback.split("\n")[1]]


def test_a_line_that_does_not_end_is_told_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.retelling.EVERY_S", 0.01)
    path, bar = tmp_path / "log", b"".join(b"\r%3d%% of the weights" % percent for percent in range(100))
    path.write_bytes(b"of an earlier attempt\n")

    with capture_logs() as logged, retold(path, trial_id="7"), path.open("ab") as log:
        log.write(b"begin" + bar + b"\n")
        log.write(b"x" * (3 * AT_ONCE_BYTES) + b"\n")
        log.write(bar * 200 + b"\r\nafter it\nnever ended")

    said = [line["said"] for line in logged]
    assert {line["trial_id"] for line in logged} == {"7"}
    assert said[0] == " 99% of the weights"
    assert said[1] == "x" * LONGEST
    assert said[-3:] == [" 99% of the weights", "after it", "never ended"]


def test_a_traceback_is_one_text_and_what_is_none_is_not_held_back() -> None:
    tracebacks = Tracebacks()
    lines = ["a", "Traceback (most recent call last):", '  File "b", line 1', "ValueError: c", " d"]

    whole = [text for line in lines for text in tracebacks.given(line)]

    assert whole == ["a", "\n".join(lines[1:4]), " d"]
    assert list(tracebacks.rest()) == []


def test_lines_that_were_written_at_once_are_looked_at_one_by_one() -> None:
    tracebacks = Tracebacks()
    begun = 'Exception in thread 1:\nTraceback (most recent call last):\n  File "b", line 1'

    assert list(tracebacks.given(f"{begun}\nValueError: c")) == [f"{begun}\nValueError: c"]
    assert list(tracebacks.given(begun)) == []
    assert list(tracebacks.given("ValueError: c")) == [f"{begun}\nValueError: c"]
