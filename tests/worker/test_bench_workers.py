"""What `clarinet bench workers` says of its figures; what it measures takes processes and minutes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.live import clarinet
from worker.bench.ending import ending_in_order
from worker.bench.workers import Case, Figures, as_row, as_text


def test_cases_are_compared_with_the_first_by_medians() -> None:
    seconds = {Case(1, 1): [9.0, 5.0, 4.0], Case(2, 1): [2.5], Case(1, 4): [10.0]}
    figures = Figures(seeds=4, epochs=3, steps=2, cores=8, seconds=seconds)

    told = as_text(figures)

    assert "2 workers, 1 at once: 2.5 s, 2.00 times as fast as the first" in told
    assert "one worker, 4 at once: 10.0 s, 0.50 times as fast as the first" in told
    assert told.endswith("Every seed has the same weights in all.")
    figures.are_equal = False
    assert as_text(figures).endswith("WEIGHTS DIFFER.")
    row = json.loads(json.dumps(as_row(figures)))
    assert row["cases"][1] == {"workers": 2, "at_once": 1, "seconds": [2.5], "times_as_fast": 2.0}
    assert (row["cores"], row["same_weights"]) == (8, False)


@pytest.mark.parametrize("case", ["2", "2x", "twice"])
def test_a_case_that_is_none_is_refused(case: str) -> None:
    done = clarinet({}, "bench", "workers", "--case", case)

    assert (done.returncode, "2x1" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_who_asks_a_bench_to_end_lets_it_clean_up(number: signal.Signals, ends: type[BaseException]) -> None:
    before = signal.getsignal(number)

    with pytest.raises(ends), ending_in_order():
        signal.raise_signal(number)

    assert signal.getsignal(number) == before


WORKING = """
import time
from worker.bench.ending import ending_in_order
from worker.bench.workers import Case, working
from app.migrate import upgrade
from app.settings import Settings
from worker.context import Context

context = Context.of(Settings())
upgrade(context.database.engine)
with ending_in_order(), working(context, Case(1, 1)):
    print("there", flush=True)
    time.sleep(600)
"""


@pytest.mark.faults
@pytest.mark.parametrize(("number", "ended"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_worker_outlives_a_bench_that_is_ended(number: signal.Signals, ended: int, tmp_path: Path) -> None:
    environment = os.environ | {"CLARINET_DATA_DIR": str(tmp_path), "CLARINET_TRAINER_THREADS": "1"}
    words = [sys.executable, "-c", WORKING]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdout
        try:
            while bench.stdout.readline() not in {"there\n", ""}:
                pass
            workers = Path(f"/proc/{bench.pid}/task/{bench.pid}/children").read_text(encoding="ascii").split()
            bench.send_signal(number)
            bench.wait(timeout=120)
        finally:
            bench.kill()

    assert (len(workers), bench.returncode) == (1, ended)
    deadline = time.monotonic() + 120
    while any(_runs(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in workers if _runs(pid)]


def _runs(pid: str) -> bool:
    """Whether there is such a process, and not its end that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
