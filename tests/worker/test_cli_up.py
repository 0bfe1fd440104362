"""`clarinet up` and `clarinet serve`: real processes that start, come back, and end."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.live import CLARINET, EMAIL, free_port
from tests.worker.conftest import wait_until

pytestmark = pytest.mark.long


def test_production_refuses_to_start_without_a_secret(tmp_path: Path) -> None:
    environment = os.environ | {"CLARINET_DATA_DIR": str(tmp_path), "CLARINET_ENVIRONMENT": "production"}

    done = subprocess.run([CLARINET, "serve"], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 1
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
        wait_until(lambda: is_ready(f"http://127.0.0.1:{port}") or process.poll() is not None, timeout_s=60)
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

    assert process.wait(50) == 0
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

            wait_until(lambda: not is_alive(web[0]), timeout_s=60)
            wait_until(lambda: is_ready(url), timeout_s=60)
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

        wait_until(lambda: not any(is_alive(pid) for pid in started), timeout_s=60)


def test_a_port_in_use_is_said_in_a_sentence(tmp_path: Path) -> None:
    environment = os.environ | {"CLARINET_DATA_DIR": str(tmp_path)}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        done = subprocess.run(
            [CLARINET, "up", "--port", port], env=environment, capture_output=True, text=True, check=False
        )

    assert done.returncode == 1
    assert f"Port {port} is in use" in done.stderr
    assert "Traceback" not in done.stderr
