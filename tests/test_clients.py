"""Clients that others' tools make of the OpenAPI document upload, label, launch, and tell what went wrong."""

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import SERVICES_REQUIRED
from tests.live import Live, installation

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / ".clients/bin"
# Of openapi-generator: that it reads OpenAPI 3.1 at all is new, of what it cannot name it makes `Any`, and
# in a list of files it looks for an enumeration.
KNOWN = (
    "OpenAPI 3.1 support is still in beta",
    "Failed to get the schema name",
    "Default to typing.Any",
    "Could not compute datatypeWithEnum from bytes, null",
)

NOT_READY = "Choose a dataset whose import has ended well and that has images to label."


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A whole installation, and beside it two files of images."""
    folder = tmp_path_factory.mktemp("clients")
    chance = np.random.default_rng(0)
    for name in ("a", "b"):
        images = {
            f"x_{split}": chance.integers(0, 255, (count, 28, 28), dtype=np.uint8)
            for split, count in (("train", 40), ("test", 8))
        }
        labels = {"y_train": np.arange(40) % 4, "y_test": np.arange(8) % 4}
        np.savez(folder / f"{name}.npz", **images, **labels)  # type: ignore[arg-type]  # its stub
    with installation(folder / "data", folder / "log") as live:
        yield live


def run(*command: str | Path, **environment: str) -> str:
    """What a command of the tools prints; it ends well."""
    path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        env={"PATH": path, "HOME": os.environ.get("HOME", "/tmp"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def made_by_python_client(document: Path, to: Path) -> str:
    """Make a client; gives what the tool said."""
    config = ROOT / "docs/openapi-python-client.yaml"
    return run(
        *(TOOLS / "openapi-python-client", "generate", "--path", document),
        *("--config", config, "--output-path", to),
    )


def made_by_generator(document: Path, to: Path) -> str:
    """Make a client; gives what the tool said."""
    return run(
        *(TOOLS / "openapi-generator-cli", "generate", "-g", "python", "-i", document, "-o", to),
        "--additional-properties=packageName=clarinet_made",
        JAVA_OPTS="-XX:TieredStopAtLevel=1",  # it runs for seconds
    )


@pytest.mark.long
@pytest.mark.faults  # so that `make check`, which is quick, leaves it out
def test_clients_upload_label_launch_and_tell_what_went_wrong(live: Live, tmp_path: Path) -> None:
    if not (TOOLS / "openapi-generator-cli").exists():
        assert not SERVICES_REQUIRED, "make clients"
        pytest.skip("what makes clients is not installed (make clients)")
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(live.api("GET", "/openapi.json")), encoding="utf-8")
    with ThreadPoolExecutor() as both:
        first = both.submit(made_by_python_client, document, tmp_path / "first")
        second = both.submit(made_by_generator, document, tmp_path / "second")
        said = [first.result(), second.result()]

    assert "WARN" not in said[0]
    warned = [line for line in said[1].splitlines() if "WARN" in line or "ERROR" in line]
    assert [line for line in warned if not any(known in line for known in KNOWN)] == []
    for script, package, name in (
        ("of_python_client", "first", "source"),
        ("of_generator", "second", "source 2"),
    ):
        seen = used(live, script, tmp_path / package)
        assert seen["answered"] == 40
        assert "queued" in seen["run"].lower()
        words = f'There is already a dataset called "{name}". Nothing was stored; choose another name.'
        assert seen["refused"] == [409, "/problems/dataset-name-taken", words]
        assert seen["misspelt"] in (
            [422, "body/name", "String should have at least 1 character."],
            [
                409,
                "/problems/source-not-ready",
                "Choose a dataset whose import has ended well and that has images to label.",
            ],
        )


def used(live: Live, script: str, package: Path) -> Any:
    """What a program saw that uses a client."""
    files = [live.data_dir.parent / f"{name}.npz" for name in ("a", "b")]
    program = ROOT / f"tests/clients/{script}.py"
    printed = run(TOOLS / "python", program, live.url, live.token, *files, PYTHONPATH=str(package))
    return json.loads(printed.splitlines()[-1])
