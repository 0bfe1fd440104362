"""What `make` says while pip works."""

import subprocess
import sys
from pathlib import Path

import pytest

INSTALL = Path(__file__).parent.parent / ".ci" / "install.py"


def install(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, INSTALL, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.long
def test_what_is_there_is_said_to_be_there() -> None:
    done = install("pip")

    assert done.returncode == 0
    assert f"Python packages are in {sys.prefix}" in done.stdout


@pytest.mark.long
def test_a_failure_shows_what_pip_said() -> None:
    done = install("./no-such-folder")

    assert done.returncode != 0
    assert "no-such-folder" in done.stderr
    assert "Python packages are in" not in done.stdout
