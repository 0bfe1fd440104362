"""Who watches takes a part for hung only when it is: what is away outside says nothing of it."""

import os
import signal
import time
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import pytest

from app.db import connect
from app.migrate import upgrade
from app.runs.workers import WEB
from app.settings import Settings
from tests.worker.conftest import wait_until
from worker.beats import Listener
from worker.local.up import Child, children
from worker.local.watching import Watch

NOWHERE = "redis://127.0.0.1:9/0"


def part(settings: Settings, name: str, log: Path) -> Child:
    """A part of the application that has been started."""
    with log.open("ab") as output:
        found = {child.name: child for child in children(settings, host="127.0.0.1", port=9, log=output)}[
            name
        ]
        found.start()
    return found


@pytest.mark.long
def test_a_worker_whose_broker_and_database_are_away_gives_signs_until_it_hangs(tmp_path: Path) -> None:
    settings = Settings(
        environment="test", data_dir=tmp_path, broker_url=NOWHERE, device="cpu", _env_file=None
    )
    database = connect(settings.sqlalchemy_url)
    upgrade(database.engine)
    database.dispose()
    watch = Watch(host="127.0.0.1", port=9, hung_s=2)
    worker = part(settings, "io worker", tmp_path / "log")
    process = worker.process
    assert process is not None
    try:
        wait_until(worker.listener.heard)
        (tmp_path / "clarinet.db").unlink()
        for _ in range(8):  # longer than what may pass without a sign
            assert not watch.is_hung(worker.name, process.pid, worker.listener)
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.5)
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: watch.is_hung(worker.name, process.pid, worker.listener))
        worker.end_if_hung(watch)
        assert process.returncode == -signal.SIGKILL
    finally:
        worker.end(0)


class Babbler(BaseRequestHandler):
    """Speaks no HTTP."""

    def handle(self) -> None:
        """Answer nonsense."""
        self.request.recv(1000)
        self.request.sendall(b"nonsense\r\n\r\n")


def test_a_web_process_is_asked_past_any_proxy_and_nonsense_is_no_sign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with TCPServer(("127.0.0.1", 0), Babbler) as server, Listener() as listener:
        Thread(target=server.serve_forever, daemon=True).start()
        watch = Watch(host="127.0.0.1", port=server.server_address[1], hung_s=0)

        assert not watch.is_hung(WEB, 1, listener)  # asked about for the first time
        assert watch.is_hung(WEB, 1, listener)
        server.shutdown()
