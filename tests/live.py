"""A whole installation in real processes: web, workers and upkeep as `clarinet up` starts them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
from typer.testing import CliRunner

from worker.cli.main import app as cli

CLARINET = Path(sys.executable).parent / "clarinet"
EMAIL, PASSWORD = "lead@example.org", "a long enough password"
START_S = 300


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Done:
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


def clarinet(environment: Mapping[str, str], *words: str, given: str = "", cwd: Path | None = None) -> Done:
    """Run a `clarinet` command in this process, which has loaded what another one would load for a second.

    What is no refusal in words is raised.
    """
    with chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(cli, words, input=given, env=environment, catch_exceptions=False)
    return Done(done.exit_code, done.stdout, done.stderr)


@dataclass
class Live:
    """A running installation and an admin's way in."""

    environment: dict[str, str]
    data_dir: Path
    url: str = ""
    token: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def clarinet(self, *arguments: str, given: str = "", cwd: Path | None = None) -> str:
        """Run a `clarinet` command in this installation; gives what it printed."""
        done = clarinet(self.environment, *arguments, given=given, cwd=cwd)
        assert done.returncode == 0, f"clarinet {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def api(self, method: str, path: str, **details: Any) -> Any:
        """Call the API as the admin; gives the JSON."""
        response = httpx.request(
            method,
            f"{self.url}/api/v1{path}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
            **details,
        )
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    def wait(self, path: str, *, until: Any, timeout_s: float = 300) -> Any:
        """Ask the API until `until(answer)` holds."""
        deadline = time.monotonic() + timeout_s
        while not until(answer := self.api("GET", path)):
            assert time.monotonic() < deadline, f"{path} after {timeout_s} s: {json.dumps(answer)[:2000]}"
            time.sleep(0.2)
        return answer

    def dataset(self, name: str, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
        """Import a dataset from arrays through the API and wait until it is ready."""
        buffer = BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]  # its stub takes no mapping
        made = self.api(
            "POST", "/datasets", data={"name": name}, files={"file": ("a.npz", buffer.getvalue())}
        )
        return self.wait(f"/datasets/{made['id']}", until=lambda row: row["state"] != "importing")

    def open_campaign(self, name: str, dataset: Any, **details: Any) -> Any:
        """A campaign over a dataset's own classes, open for answers."""
        body = {
            "name": name,
            "dataset_id": dataset["id"],
            "classes": [{"name": c} for c in dataset["class_names"]],
            **{f"least_{what}_ms": 0 for what in ("card", "page", "picture")},  # tests answer without a look
        }
        made = self.api("POST", "/campaigns", json=body | details)
        self.api("POST", f"/campaigns/{made['id']}/open")
        return self.wait(f"/campaigns/{made['id']}", until=lambda row: row["state"] == "open")


@contextmanager
def installation(data_dir: Path, log: Path, **environment: str) -> Iterator[Live]:
    """Start `clarinet up` with an admin; everything it started is gone at the end."""
    live = Live(
        data_dir=data_dir,
        environment=os.environ
        | {"CLARINET_DATA_DIR": str(data_dir), "CLARINET_TRAINER_THREADS": "1", **environment},
    )
    live.clarinet("db", "upgrade")
    live.clarinet("user", "add", EMAIL, "--name", "Ada Lead", "--admin", "--password-stdin", given=PASSWORD)
    live.token = json.loads(live.clarinet("token", "add", EMAIL, "tests", "--json"))["token"]
    with running(live, log):
        yield live


@contextmanager
def running(live: Live, log: Path) -> Iterator[None]:
    """Start `clarinet up` on what is there; everything it started is gone at the end."""
    port = free_port()  # just before it is taken: other tests look for one at the same time
    live.url = f"http://127.0.0.1:{port}"
    with log.open("ab") as output:
        command: list[str | Path] = [CLARINET, "up", "--port", str(port), "--data-dir", str(live.data_dir)]
        live.process = subprocess.Popen(
            command, env=live.environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_for(live, log)
        yield
    finally:
        live.process.send_signal(signal.SIGTERM)
        try:
            live.process.wait(300)
        except subprocess.TimeoutExpired:
            os.killpg(live.process.pid, signal.SIGKILL)
            raise


def wait_for(live: Live, log: Path, *, path: str = "/readyz") -> None:
    """Wait until the installation can serve, or answers well at another path."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            if httpx.get(f"{live.url}{path}", timeout=2).is_success:
                return
        except httpx.HTTPError:
            pass
        assert live.process is not None
        assert live.process.poll() is None, log.read_text(errors="replace")[-4000:]
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
        time.sleep(0.2)
