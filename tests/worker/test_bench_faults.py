"""The schedule, the hosts and the books of `clarinet bench faults`, and a small run of all of it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import main_thread
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, text

from app.annotation.models import Answer, AnswerValue
from app.claims import LEASE
from app.db import connect
from app.runs.models import TrialState
from app.runs.trials import checkpoint_key
from tests.factories import NOW, answer, make_campaign, make_run, make_user, questions_of
from tests.worker.conftest import wait_until
from worker.bench.faults.books import lost_and_doubled, orphans
from worker.bench.faults.hosts import Host, Network
from worker.bench.faults.measure import Plan, Run, as_row, measure_faults
from worker.bench.faults.schedule import ANSWERS, NEEDS_NETWORK, TRIALS, Fault, Kind, drawn
from worker.bench.faults.services import start_database
from worker.bench.faults.trainings import different
from worker.context import Context

needs_network = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
)
HOLD = """
import sys, time
from sqlalchemy import text
from app.db import connect
with connect(sys.argv[1]).write.begin() as session:
    session.execute(text("UPDATE held SET by_whom = 'a host'"))
    open(sys.argv[2], "w").close()
    time.sleep(600)
"""


def schedule(seed: int, *, can_cut: bool = True) -> list[Fault]:
    """A schedule of faults that trainings feel."""
    return drawn(TRIALS, 200, seed=seed, most_wait_s=3, can_cut=can_cut)


class TestSchedule:
    def test_a_seed_gives_the_same_faults_again(self) -> None:
        assert schedule(1) == schedule(1)
        assert schedule(1) != schedule(2)

    def test_every_kind_comes_within_its_bounds(self) -> None:
        found = schedule(1)
        assert {fault.kind for fault in found} == set(Kind)
        assert {fault.ahead_s for fault in found if fault.kind is Kind.SKEW} == {-600, 600}
        assert max(fault.for_s for fault in found) <= 40

    def test_without_a_network_nothing_is_cut(self) -> None:
        found = Counter(fault.kind for fault in schedule(1, can_cut=False))
        assert sum(found.values()) == 200
        assert not set(found) & set(NEEDS_NETWORK)

    def test_what_outlives_a_lease_costs_an_attempt(self) -> None:
        for fault in schedule(1):
            if fault.kind in (Kind.CUT, Kind.PAUSE) and fault.on == "gpu":
                assert fault.costs_attempt is (fault.for_s > LEASE.total_seconds()), fault
                assert fault.costs_attempt or fault.for_s < LEASE.total_seconds() / 2

    def test_answers_meet_other_faults(self) -> None:
        assert {chance.on for chance in ANSWERS} == {"web", "database", "broker"}


class TestBooks:
    def test_lost_changed_and_doubled_answers_are_counted(self, context: Context) -> None:
        with context.unit_of_work() as session:
            campaign = make_campaign(session)
            campaign_id = campaign.id
            question_ids = [question.id for question in questions_of(session, campaign)[:2]]
            by = answer(session, campaign, question_ids[0])
            answer(session, campaign, question_ids[1], by=by)
            one, other = map(str, session.scalars(select(Answer.key).order_by(Answer.id)))

        def found(**book: str) -> tuple[int, int]:
            keys = {"one": one, "other": other, "never": str(uuid4())}
            return lost_and_doubled(context, campaign_id, {keys[name]: said for name, said in book.items()})

        assert found(one="no", other="no") == (0, 0)
        assert found(one="yes", other="no") == (1, 0)
        assert found(one="no", other="no", never="no") == (1, 0)
        with context.unit_of_work() as session:
            second = {"user_id": make_user(session).id, "value": AnswerValue.NO, "created_at": NOW}
            session.add(Answer(question_id=question_ids[0], key=uuid4(), **second))
        assert found(one="no", other="no") == (0, 1)

    def test_trials_and_files_that_nobody_answers_for_are_orphans(self, context: Context) -> None:
        with context.unit_of_work() as session:
            run = make_run(session, context.storage, seeds=[0, 1])
            held, ended = run.trials
            held.state = TrialState.RUNNING
            ended.state, ended.finished_at = TrialState.SUCCEEDED, NOW
        context.storage.put(checkpoint_key(held.id), b"needed")
        context.storage.put(
            f"models/{ended.id}/1/model.safetensors", b"of a claim that was lost: upkeep takes it"
        )
        context.storage.put(f"models/{uuid4()}/1/model.safetensors", b"of a trial that there is not")

        trial, file = orphans(context, [])

        assert trial == f"trial {held.id}"
        assert file.startswith("file models/")
        assert str(ended.id) not in file

    def test_what_is_missing_or_other_is_different(self) -> None:
        undisturbed = {0: "a", 1: "b"}
        assert different({(2, 0): "a", (2, 1): "b"}, undisturbed, 2) == 0
        assert different({(2, 0): "a", (2, 1): "x"}, undisturbed, 2) == 1
        assert different({(2, 0): "a"}, undisturbed, 2) == 1


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host with a process that stays."""
    made = Host("a", tmp_path / "a", "127.0.0.1")
    made.run("sleep", sys.executable, "-c", "import time; time.sleep(600)")
    yield made
    made.end()


class TestHost:
    def test_what_ends_is_started_again(self, host: Host) -> None:
        [first] = host.pids()
        host.kill()
        wait_until(lambda: not host.pids())
        host.tend()
        [second] = host.pids()
        assert first != second

    def test_without_power_nothing_starts(self, host: Host) -> None:
        host.power_off()
        wait_until(lambda: not host.pids())
        host.tend()
        assert not host.pids()
        host.power_on()
        host.tend()
        assert host.pids()

    def test_a_pause_stops_it(self, host: Host) -> None:
        [process] = host.pids()
        host.pause()
        wait_until(lambda: Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        host.go_on()
        wait_until(lambda: Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "T")


@pytest.fixture
def network() -> Iterator[Network]:
    """A bridge of the test's own."""
    made = Network()
    yield made
    made.close()


@needs_network
def test_a_cut_loses_packets_until_it_heals(network: Network) -> None:
    plug = network.plug()
    assert plug
    with socket.create_server((network.address, 0)) as server:
        code = f"import socket; socket.create_connection({server.getsockname()!r}, 1)"

        def reaches() -> bool:
            inside = ["ip", "netns", "exec", plug.namespace, sys.executable, "-c", code]
            return subprocess.run(inside, check=False, capture_output=True).returncode == 0

        assert reaches()
        plug.cut()
        assert not reaches()
        plug.heal()
        assert reaches()


@needs_network
@pytest.mark.slow  # a lost host is noticed after half a minute
@pytest.mark.faults
def test_a_host_that_loses_its_power_in_a_transaction_holds_no_row_for_long(
    network: Network, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:  # PostgreSQL's own user comes through
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    server = Host("database", tmp_path / "database", network.address, user="postgres")
    plug = network.plug()
    assert plug
    lost = Host("lost", tmp_path / "lost", plug.address, plug)
    url = start_database(server)
    database = connect(url)
    try:
        with database.write.begin() as session:
            session.execute(text("CREATE TABLE held (by_whom text)"))
            session.execute(text("INSERT INTO held VALUES ('nobody')"))
        lost.run("holder", sys.executable, "-c", HOLD, url, tmp_path / "holds")
        wait_until((tmp_path / "holds").exists)
        lost.power_off()
        begun = time.monotonic()
        with database.write.begin() as session:
            session.execute(text("SET lock_timeout = '90s'"))
            session.execute(text("UPDATE held SET by_whom = 'another'"))
        took_s = time.monotonic() - begun
    finally:
        database.dispose()
        lost.end()
        server.end()
    assert took_s < LEASE.total_seconds() + 5


class Leaving:
    """Trainings during which somebody presses Ctrl-C."""

    def finish(self, _runs: int, **_: object) -> None:
        """As Trainings has it."""
        raise KeyboardInterrupt

    def running_on(self, _host: object) -> list[object]:
        """As Trainings has it."""
        return []


def test_who_is_asked_to_end_waits_for_no_fault_and_nobody() -> None:
    made: Any = SimpleNamespace(
        network=SimpleNamespace(can_cut=False), hosts={"gpu": []}, url="http://127.0.0.1:1"
    )
    run = Run(Plan(people=1, answer_faults=1, trial_faults=1, minutes=600), made, print)
    trainings: Any = Leaving()

    with pytest.raises(KeyboardInterrupt):
        run._endure(uuid4(), ["token"], trainings)

    # Neither those who hit, nor those who answer, keep the process from its end.
    assert run.over.is_set()
    assert [
        thread for thread in threading.enumerate() if thread is not main_thread() and not thread.daemon
    ] == []


@needs_network
@pytest.mark.slow  # minutes: a dozen processes start, and leases of half a minute run out
@pytest.mark.faults
def test_nothing_is_lost_while_hosts_fail() -> None:
    plan = Plan(questions=100, people=4, runs=1, seeds=2, answer_faults=4, trial_faults=4, minutes=1)
    found = measure_faults(plan, None, say=print)
    told = json.loads(json.dumps(as_row(found)))
    assert {name: told[name] for name in ("lost", "doubled", "orphans", "different")} == {
        "lost": 0,
        "doubled": 0,
        "orphans": 0,
        "different": 0,
    }
    assert told["answer_faults"] == 4
    assert told["answers"] >= 100
    assert told["network"] is True
