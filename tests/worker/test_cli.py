"""The `clarinet` command, as people and scripts call it: its help, and accounts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.live import CLARINET, EMAIL, clarinet
from worker.cli.main import app as cli


def commands() -> list[list[str]]:
    """Every command and group of commands."""
    found: list[list[str]] = [[]]
    waiting: list[tuple[list[str], Any]] = [([], get_command(cli))]
    while waiting:
        path, group = waiting.pop()
        for name, command in group.commands.items():
            found.append([*path, name])
            if hasattr(command, "commands"):
                waiting.append(([*path, name], command))
    return found


@pytest.mark.parametrize("path", commands(), ids=lambda path: " ".join(path) or "clarinet")
def test_every_command_explains_itself(path: list[str]) -> None:
    shown = CliRunner().invoke(cli, [*path, "--help"], catch_exceptions=False)

    assert shown.exit_code == 0
    assert "usage:" in shown.output.lower()  # the library's commands begin with a small letter


def test_help_needs_no_torch_and_is_quick() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from worker.cli.main import app\n"
        "for words in (['--help'], ['simulate', '--help'], ['train', '--help']):\n"
        "    try: app(words)\n"
        "    except SystemExit as end: assert end.code == 0, words\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "--error" in done.stdout
    assert "--setting" in done.stdout


def over(data_dir: Path) -> dict[str, str]:
    """The environment of a command over a data directory."""
    return os.environ | {"CLARINET_DATA_DIR": str(data_dir)}


def test_accounts_need_a_current_schema(tmp_path: Path) -> None:
    done = clarinet(over(tmp_path), "user", "add", EMAIL, "--link")

    assert done.returncode == 1
    assert done.stderr == "clarinet: The database's schema is not current. Run first: clarinet db upgrade\n"


@pytest.mark.long
def test_a_refusal_ends_a_process_in_words(tmp_path: Path) -> None:
    words = ["user", "add", "not an address", "--link"]
    done = subprocess.run([CLARINET, *words], env=over(tmp_path), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "clarinet: This does not look like an e-mail address\n"


@pytest.mark.long
def test_accounts_from_the_terminal(tmp_path: Path) -> None:
    there = over(tmp_path)
    assert clarinet(there, "db", "upgrade").returncode == 0

    made = clarinet(there, "user", "add", EMAIL, "--admin", "--password-stdin", given="long enough, this\n")
    again = clarinet(there, "user", "add", EMAIL, "--password-stdin", given="long enough\n")
    short = clarinet(there, "user", "add", "b@example.org", "--password-stdin", given="short\n")
    odd = clarinet(there, "user", "add", "not an address", "--link")
    link = clarinet(there, "user", "add", "c@example.org", "--json")  # no terminal to ask for a password

    assert made.returncode == 0, made.stderr
    assert again.stderr == f"clarinet: There is already an account for {EMAIL}.\n"
    assert short.stderr == "clarinet: A password needs at least 10 characters.\n"
    assert odd.stderr == "clarinet: This does not look like an e-mail address\n"
    assert (again.returncode, short.returncode, odd.returncode) == (1, 2, 2)
    assert "/invitations/" in json.loads(link.stdout)["url"]
    reset = clarinet(there, "user", "reset", EMAIL, "--second-factor", "--json")
    assert "/password/" in json.loads(reset.stdout)["url"]
    renamed = clarinet(there, "user", "rename", EMAIL, "Grace <Hopper>", "--json")
    assert json.loads(renamed.stdout)["name"] == "Grace <Hopper>"
    unlinked = clarinet(there, "user", "unlink", EMAIL)
    assert unlinked.stdout == f"{EMAIL} was not linked.\n"
    last = clarinet(there, "user", "erase", EMAIL, "--name", "Grace <Hopper>")
    assert last.stderr.startswith("clarinet: Nobody else can administer this installation.")
    odd_scope = clarinet(there, "token", "add", EMAIL, "script", "--scope", "everything")
    assert odd_scope.returncode == 2
    token = clarinet(there, "token", "add", EMAIL, "script")
    nobody = clarinet(there, "token", "add", "nobody@example.org", "script")
    assert re.fullmatch(r"clt_\S{40,}\n", token.stdout)
    assert nobody.stderr == "clarinet: There is no such person.\n"
    assert nobody.returncode == 1
