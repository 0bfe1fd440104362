"""A training that the system killed because memory ran out: the machine's fault, where the kernel says so."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from app.runs.faults import Fault
from app.runs.models import TrialState
from tests.worker.conftest import trial_of
from tests.worker.test_watch_over_a_training import claimed, watched
from worker.context import Context
from worker.local.memory_kills import memory_kills
from worker.supervision import Ending


def files(root: Path, **contents: str) -> Path:
    """Files of a kernel below a folder; __ stands for /."""
    for name, content in contents.items():
        path = root / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


VMSTAT = "nr_free_pages 5\noom_kill 7\n"


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        (
            {
                "proc__self__cgroup": "0::/system.slice/worker.service\n",
                "sys__fs__cgroup__system.slice__worker.service__memory.events": "oom 4\noom_kill 3\n",
            },
            3,
        ),
        ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__memory.events": "oom_kill 0\nx 2\n"}, 0),
        (
            {
                "proc__self__cgroup": "5:cpu,memory:/docker/a\n0::/\n",
                "sys__fs__cgroup__memory__memory.oom_control": "under_oom 0\noom_kill 2\n",
            },
            2,
        ),
        ({"proc__self__cgroup": "0::/\n"}, 7),  # the host's
        ({}, 7),
    ],
)  # fmt: skip
def test_the_own_groups_number_goes_before_the_hosts(
    contents: dict[str, str], found: int, tmp_path: Path
) -> None:
    assert memory_kills(files(tmp_path, proc__vmstat=VMSTAT, **contents)) == found


def test_where_nothing_tells_nothing_is_known(tmp_path: Path) -> None:
    assert memory_kills(tmp_path) is None
    assert memory_kills(files(tmp_path, proc__vmstat="nr_free_pages 5\n")) is None


@pytest.mark.parametrize(
    ("before", "after", "by", "is_blamed"),
    [
        (3, 4, signal.SIGKILL, True),
        (3, 3, signal.SIGKILL, False),  # somebody else killed it
        (3, 4, signal.SIGSEGV, False),  # another process was killed for memory
        (None, None, signal.SIGKILL, False),
        (None, 1, signal.SIGKILL, False),  # nobody knows whether it rose
    ],
)
def test_a_kill_costs_no_attempt_where_the_kernel_says_that_memory_ran_out(
    context: Context, tmp_path: Path, before: int | None, after: int | None, by: int, *, is_blamed: bool
) -> None:
    trial, claim = claimed(context)
    with watched(context, claim, 60, tmp_path) as started:
        supervision = replace(started, kills=lambda: after, kills_before=before)
        supervision.process.send_signal(by)
        ending = supervision.watch()
        assert ending is Ending.EXITED
        assert supervision.settle_all(ending) is is_blamed

    row = trial_of(context, trial.id)
    assert row.state is TrialState.QUEUED
    if is_blamed:
        assert (row.attempts, row.setbacks, row.fault) == (0, 1, Fault.MACHINE)
        assert row.setback is not None
        assert row.setback.startswith(
            "The memory of this machine ran out, and the system stopped the training"
        )
    else:
        assert (row.attempts, row.setbacks) == (1, 0)
