"""`clarinet up` and `clarinet serve`: real processes that start, come back, and end."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.live import CLARINET, EMAIL, clarinet, free_port
from tests.worker.conftest import wait_until
from worker.local.starting import alone_on
from worker.local.up import bring_up_to_date, children, keep_up, settings_for
from worker.local.watching import Watch

pytestmark = pytest.mark.long

ENDS_S = 10.0  # it takes some two where nothing else runs; nobody who pressed Ctrl-C waits long


def test_production_refuses_to_start_without_a_secret(tmp_path: Path) -> None:
    environment = os.environ | {"CLARINET_DATA_DIR": str(tmp_path), "CLARINET_ENVIRONMENT": "production"}

    done = subprocess.run([CLARINET, "serve"], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "CLARINET_SESSION_SECRET" in done.stderr
    assert "Traceback" not in done.stderr


def descendants(pid: int) -> set[int]:
    """Every process that a process has started, and theirs."""
    children: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, set()).add(int(entry.name))
    found: set[int] = set()
    waiting = {pid}
    while waiting:
        waiting = {child for parent in waiting for child in children.get(parent, set())} - found
        found |= waiting
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def going_up(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """`clarinet up` over an empty folder: the process, its address, and its messages."""
    port, log = free_port(), folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [CLARINET, "up", "--port", str(port), "--data-dir", str(folder / "data")],
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: is_ready(f"http://127.0.0.1:{port}") or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield process, f"http://127.0.0.1:{port}", log
    finally:
        process.kill()
        process.wait()


def is_ready(url: str) -> bool:
    """Whether the server answers and could serve."""
    try:
        return httpx2.get(f"{url}/readyz", timeout=5).is_success
    except httpx2.TransportError:
        return False


def command_of(pid: int) -> list[str]:
    """The words a process was started with."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def assert_ends_all_it_started(process: subprocess.Popen[bytes], url: str, number: signal.Signals) -> None:
    started = descendants(process.pid)
    assert len(started) >= 4  # web, two workers, upkeep

    process.send_signal(number)

    assert process.wait(ENDS_S) == 0
    assert [pid for pid in started if is_alive(pid)] == []
    assert not is_ready(url)


def test_the_first_start_prints_a_link_that_makes_an_admin_and_ctrl_c_ends_all(tmp_path: Path) -> None:
    with going_up(tmp_path) as (process, url, log):
        [link] = re.findall(r"http://\S+/invitations/\S+", log.read_text())

        assert link.startswith(url)
        page = httpx2.get(link, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert "admin of this installation" in page.text
        form = {"name": "Ada", "email": EMAIL, "password": "a long enough password"}
        with httpx2.Client(base_url=url) as browser:
            assert browser.post(link, data=form).status_code == 303
            assert browser.get("/api/v1/me").json()["role"] == "admin"
        assert log.read_text().count(link.rpartition("/")[2]) == 1  # only where it was printed
        assert_ends_all_it_started(process, url, signal.SIGINT)


def test_a_killed_web_process_comes_back_and_ends_with_all_that_up_started_and_nothing_else(
    tmp_path: Path,
) -> None:
    bystander = subprocess.Popen(["sleep", "300"])
    try:
        with going_up(tmp_path) as (process, url, _):
            web = [pid for pid in descendants(process.pid) if "serve" in command_of(pid)]
            assert len(web) == 1

            os.kill(web[0], signal.SIGKILL)

            wait_until(lambda: not is_alive(web[0]))
            wait_until(lambda: is_ready(url))
            assert process.poll() is None
            assert httpx2.get(f"{url}/healthz").json() == {"status": "ok"}
            assert_ends_all_it_started(process, url, signal.SIGTERM)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_nothing_outlives_a_killed_up(tmp_path: Path) -> None:
    with going_up(tmp_path) as (process, _, _):
        started = descendants(process.pid)

        process.kill()

        wait_until(lambda: not any(is_alive(pid) for pid in started))


def test_a_port_in_use_is_said_in_a_sentence(tmp_path: Path) -> None:
    environment = os.environ | {"CLARINET_DATA_DIR": str(tmp_path)}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        done = subprocess.run(
            [CLARINET, "up", "--port", port], env=environment, capture_output=True, text=True, check=False
        )

    assert done.returncode == 2
    assert f"Port {port} is in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("BROKER_URL", "rabbit://here", "CLARINET_BROKER_URL begins with one of filesystem, redis"),
        ("DATABASE_URL", "nonsense", "CLARINET_DATABASE_URL is no address of a database"),
        ("DATABASE_URL", "postgresql://here:port/name", "CLARINET_DATABASE_URL is no address of a database"),
        ("DATABASE_URL", "mysql://here/name", "CLARINET_DATABASE_URL begins with one of sqlite, postgresql"),
        ("PUBLIC_URL", "here", "CLARINET_PUBLIC_URL begins with http:// or https://"),
        ("DEVICE", "gpu", "CLARINET_DEVICE is auto, cpu or cuda"),
        (
            "DATA_DIR",
            "/dev/null/here",
            "cannot be written: Not a directory. Choose another folder: --data-dir",
        ),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence_with_status_2(
    tmp_path: Path, variable: str, value: str, told: str
) -> None:
    there = {"CLARINET_DATA_DIR": str(tmp_path), f"CLARINET_{variable}": value}

    done = clarinet(os.environ | there, "up", "--port", str(free_port()))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("clarinet: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_host_that_is_none_of_ours_is_said(tmp_path: Path) -> None:
    there = os.environ | {"CLARINET_DATA_DIR": str(tmp_path)}
    done = clarinet(there, "up", "--host", "192.0.2.1", "--port", str(free_port()))
    assert done.returncode == 2
    assert "cannot listen on 192.0.2.1" in done.stderr


def test_a_folder_takes_one_start_at_a_time_and_is_free_once_that_is_over(tmp_path: Path) -> None:
    hold = (
        "import sys, time\nfrom pathlib import Path\nfrom worker.local.starting import alone_on\n"
        "with alone_on(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    first = subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        done = clarinet(os.environ, "up", "--port", str(free_port()), "--data-dir", str(tmp_path))
    finally:
        first.kill()
        first.communicate()

    assert done.returncode == 2
    assert f"Clarinet runs on {tmp_path} already (process {first.pid})" in done.stderr
    with alone_on(tmp_path):
        pass


def test_a_web_process_that_hangs_is_killed_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    settings = settings_for(host="127.0.0.1", port=port, data_dir=tmp_path)
    bring_up_to_date(settings)
    ended = threading.Event()
    with (tmp_path / "log").open("wb") as output:
        web = children(settings, host="127.0.0.1", port=port, log=output)[0]
        found: list[int] = []

        def stop_and_wait() -> None:
            try:
                wait_until(lambda: is_ready(f"http://127.0.0.1:{port}"))
                assert web.process is not None
                found.append(web.process.pid)
                os.kill(web.process.pid, signal.SIGSTOP)
                wait_until(lambda: is_ready(f"http://127.0.0.1:{port}"))
                found.append(web.process.pid)
            finally:
                ended.set()

        task = threading.Thread(target=stop_and_wait)
        task.start()
        watch = Watch(host="127.0.0.1", port=port, hung_s=20)
        keep_up([web], ended, watch, watch_every_s=2)
        task.join()

    assert len(set(found)) == 2
