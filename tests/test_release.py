"""What is released is whole: built, put where nothing else lies, and used there."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.live import free_port

pytestmark = pytest.mark.slow  # builds a package and trains two runs

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "clarinet", "frontend", "migrations", "worker")
DATA = (
    "frontend/static/**/*",
    "frontend/templates/**/*",
    "frontend/messages/*.po",
    "migrations/*.mako",
    "app/**/*.json",
)
VENDOR = {
    "LICENCES.txt",
    "htmx.min.js",
    "instrument-sans.woff2",
    "swagger-ui-bundle.js",
    "swagger-ui.css",
    "uPlot.esm.js",
    "uPlot.min.css",
}
RUNS_S = 900
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CLARINET"))}


def belonging() -> set[str]:
    """Every file that Clarinet runs from, as it lies in the checkout."""
    patterns = (*(f"{name}/**/*.py" for name in PACKAGES if name != "frontend"), "frontend/*.py", *DATA)
    paths = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    return {str(path.relative_to(ROOT)) for path in paths} - {"frontend/static/vendor/installed"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and source archive, as `make release` builds them."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the wheel; what it depends on is borrowed, 6 GB would take minutes."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--no-deps", next(built.glob("*.whl")))
    # Of the folders named here Python reads no further .pth, so that the checkout's own does not come along.
    borrowed = next(folder.glob("lib/python*/site-packages")) / "borrowed.pth"
    folders = [path for path in sys.path if path.endswith("site-packages")]
    borrowed.write_text("\n".join(folders), encoding="utf-8")
    return folder / "bin"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=OUTSIDE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def demo(clarinet: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """`clarinet demo` in an empty folder; gives what it prints for programs."""
    command: list[str | Path] = [clarinet, "demo", "--json", "--port", str(free_port())]
    with subprocess.Popen(command, cwd=folder, env=OUTSIDE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGTERM)


def test_the_wheel_carries_every_file_that_runs_and_no_other(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        carried = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert {Path(name).name for name in carried if name.startswith("frontend/static/vendor/")} == VENDOR
    assert carried == belonging()


def test_the_source_archive_carries_them_too(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        carried = {name.partition("/")[2] for name in archive.getnames()}

    assert belonging() | {"pyproject.toml", "README.md", "LICENSE"} <= carried


def test_what_is_imported_is_what_was_installed(environment: Path, tmp_path: Path) -> None:
    code = f"import importlib; [print(importlib.import_module(name).__file__) for name in {PACKAGES}]"

    paths = [Path(line) for line in run(environment / "python", "-c", code, cwd=tmp_path).splitlines()]

    assert len(paths) == len(PACKAGES)
    assert all(path.is_relative_to(environment.parent) for path in paths), paths


def test_the_demo_runs_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    with demo(environment / "clarinet", tmp_path) as told:
        page = httpx.get(f"{told['url']}/sign-in", headers={"accept-language": "de"})
        parts = {
            *re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text),
            *(f"/static/vendor/{v}" for v in VENDOR),
        }
        assert page.is_success
        assert "Anmelden" in page.text
        assert [part for part in parts if not httpx.get(told["url"] + part).is_success] == []

        headers = {"Authorization": f"Bearer {told['admin_token']}"}
        with httpx.Client(base_url=f"{told['url']}/api/v1", headers=headers, timeout=60) as client:
            assert [run["state"] for run in ended_runs(client, told["campaign_id"])] == ["succeeded"] * 2

    assert [path.name for path in tmp_path.iterdir()] == ["var"]


def ended_runs(client: httpx.Client, campaign_id: str) -> list[dict[str, Any]]:
    """The demo's two runs, once both have ended."""
    deadline = time.monotonic() + RUNS_S
    while True:
        runs: list[dict[str, Any]] = client.get("/runs", params={"campaign_id": campaign_id}).json()["items"]
        if len(runs) == 2 and all(run["state"] not in {"queued", "running"} for run in runs):
            return runs
        assert time.monotonic() < deadline, runs
        time.sleep(1)
