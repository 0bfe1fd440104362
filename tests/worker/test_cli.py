"""The `clarinet` command, as people and scripts call it, with real processes behind it."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.main import get_command
from typer.testing import CliRunner

from tests.live import CLARINET, EMAIL, Live, free_port, installation
from tests.pictures import grey_png
from tests.worker.conftest import wait_until
from worker.cli.main import app as cli
from worker.cli.runs import told


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


def test_what_was_not_measured_is_told_as_that_and_an_estimate_with_what_it_is() -> None:
    row: Any = {"number": 7, "state": "succeeded", "seeds": [0], "trials": [], "std_accuracy": None}
    row |= {
        "mean_accuracy": None,
        "scored_on": 0,
        "unscored": "it has no test images",
        "source_estimate": None,
        "recipe": "",
        "recipe_warning": "",
    }
    enough = {"estimate": 0.9, "low": 0.8, "high": 0.95, "held_out": 300, "needed": 200, "missing": 0}
    lacking = enough | {"estimate": None, "low": None, "high": None, "held_out": 96, "missing": 2080}

    first = "Run 7: succeeded, not measured on the target: it has no test images"
    source = "On the source, estimated from held-out answers: "
    assert told(row) == first
    assert told(row | {"source_estimate": enough}) == f"{first}\n{source}90.0 % (80.0 to 95.0 %)"
    assert "needs 200 held-out answers; there are 96: about 2,080 more" in told(
        row | {"source_estimate": lacking}
    )
    known = {"mean_accuracy": 0.75, "interval_low": 0.5, "interval_high": 0.9, "unscored": ""}
    scored = {"scored_on": 9, "scored_split": "train", "scored_of": 9}
    assert told(row | known | scored) == (
        "Run 7: succeeded, 75.00 % (50.00 to 90.00 %) on the target, its 9 training images, whose classes "
        "are known; training saw the images without classes"
    )


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


def clarinet(data_dir: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command over a data directory."""
    environment = os.environ | {"CLARINET_DATA_DIR": str(data_dir)}
    return subprocess.run(
        [CLARINET, *words], input=given, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_accounts_need_a_current_schema(tmp_path: Path) -> None:
    done = clarinet(tmp_path, "user", "add", EMAIL, "--link")

    assert done.returncode == 1
    assert done.stderr == "clarinet: The database's schema is not current. Run first: clarinet db upgrade\n"


@pytest.mark.long
def test_accounts_from_the_terminal(tmp_path: Path) -> None:
    assert clarinet(tmp_path, "db", "upgrade").returncode == 0

    made = clarinet(
        tmp_path, "user", "add", EMAIL, "--admin", "--password-stdin", given="long enough, this\n"
    )
    again = clarinet(tmp_path, "user", "add", EMAIL, "--password-stdin", given="long enough\n")
    short = clarinet(tmp_path, "user", "add", "b@example.org", "--password-stdin", given="short\n")
    odd = clarinet(tmp_path, "user", "add", "not an address", "--link")
    link = clarinet(tmp_path, "user", "add", "c@example.org", "--json")  # no terminal to ask for a password

    assert made.returncode == 0, made.stderr
    assert again.stderr == f"clarinet: There is already an account for {EMAIL}.\n"
    assert short.stderr == "clarinet: A password needs at least 10 characters.\n"
    assert odd.stderr == "clarinet: This does not look like an e-mail address\n"
    assert {again.returncode, short.returncode, odd.returncode} == {1}
    assert "/invitations/" in json.loads(link.stdout)["url"]
    reset = clarinet(tmp_path, "user", "reset", EMAIL, "--second-factor", "--json")
    assert "/password/" in json.loads(reset.stdout)["url"]
    renamed = clarinet(tmp_path, "user", "rename", EMAIL, "Grace <Hopper>", "--json")
    assert json.loads(renamed.stdout)["name"] == "Grace <Hopper>"
    last = clarinet(tmp_path, "user", "erase", EMAIL, "--name", "Grace <Hopper>")
    assert last.stderr.startswith("clarinet: Nobody else can administer this installation.")
    odd_scope = clarinet(tmp_path, "token", "add", EMAIL, "script", "--scope", "everything")
    assert odd_scope.returncode == 2
    token = clarinet(tmp_path, "token", "add", EMAIL, "script")
    nobody = clarinet(tmp_path, "token", "add", "nobody@example.org", "script")
    assert re.fullmatch(r"clt_\S{40,}\n", token.stdout)
    assert nobody.stderr == "clarinet: There is no such person.\n"
    assert "Traceback" not in nobody.stderr


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_up_ends_everything_it_started_and_nothing_else(tmp_path: Path, number: signal.Signals) -> None:
    bystander = subprocess.Popen(["sleep", "300"])
    try:
        with going_up(tmp_path) as (process, url, _):
            started = descendants(process.pid)
            assert httpx2.get(f"{url}/healthz").json() == {"status": "ok"}
            assert len(started) >= 4  # web, two workers, upkeep

            process.send_signal(number)

            assert process.wait(50) == 0
            assert [pid for pid in started if is_alive(pid)] == []
            assert not is_ready(url)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.long
def test_nothing_outlives_a_killed_up(tmp_path: Path) -> None:
    with going_up(tmp_path) as (process, _, _):
        started = descendants(process.pid)

        process.kill()

        wait_until(lambda: not any(is_alive(pid) for pid in started), timeout_s=60)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """A `clarinet up` over an empty folder for several tests."""
    with going_up(tmp_path_factory.mktemp("fresh")) as up:
        yield up


@pytest.mark.long
def test_a_killed_web_process_comes_back(fresh: tuple[subprocess.Popen[bytes], str, Path]) -> None:
    process, url, _ = fresh
    web = [pid for pid in descendants(process.pid) if "serve" in command_of(pid)]
    assert len(web) == 1

    os.kill(web[0], signal.SIGKILL)

    wait_until(lambda: not is_alive(web[0]), timeout_s=60)
    wait_until(lambda: is_ready(url), timeout_s=60)
    assert process.poll() is None


def command_of(pid: int) -> list[str]:
    """The words a process was started with."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


@pytest.mark.long
def test_the_first_start_prints_a_link_that_makes_an_admin(
    fresh: tuple[subprocess.Popen[bytes], str, Path],
) -> None:
    _, url, log = fresh
    # The newest: a web process that was killed and came back has printed one of its own.
    link = re.findall(r"http://\S+/invitations/\S+", log.read_text())[-1]

    assert link.startswith(url)
    page = httpx2.get(link, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert "admin of this installation" in page.text
    form = {"name": "Ada", "email": EMAIL, "password": "a long enough password"}
    with httpx2.Client(base_url=url) as browser:
        assert browser.post(link, data=form).status_code == 303
        assert browser.get("/api/v1/me").json()["role"] == "admin"
    assert log.read_text().count(link.rpartition("/")[2]) == 1  # only where it was printed


@pytest.mark.long
def test_a_port_in_use_is_said_in_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = clarinet(tmp_path, "up", "--port", str(port))

    assert done.returncode == 1
    assert f"Port {port} is in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """An installation in processes of its own."""
    folder = tmp_path_factory.mktemp("cli")
    with installation(folder / "data", folder / "log") as live:
        live.environment |= {"CLARINET_URL": live.url, "CLARINET_TOKEN": live.token}
        yield live


def digits_file(path: Path, start: int, stop: int) -> Path:
    """An npz of handwritten digits, with a test split."""
    images, classes = load_digits(return_X_y=True)
    pixels = (images.reshape(-1, 8, 8) * 15.9).astype(np.uint8)
    pixels = pixels.repeat(4, axis=1).repeat(4, axis=2)
    labels = classes.astype(np.uint8)
    middle = (start + stop) // 2
    np.savez(
        path,
        x_train=pixels[start:middle],
        y_train=labels[start:middle],
        x_test=pixels[middle:stop],
        y_test=labels[middle:stop],
    )
    return path


@pytest.mark.long
def test_the_whole_loop_from_a_script(live: Live, tmp_path: Path) -> None:
    source = digits_file(tmp_path / "source.npz", 0, 500)
    target = digits_file(tmp_path / "target.npz", 500, 700)

    imported = json.loads(live.clarinet("dataset", "add", str(source), "--name", "Paper", "--json"))
    assert (imported["state"], imported["train_count"], imported["test_count"]) == ("ready", 250, 250)
    live.clarinet("dataset", "add", str(target))
    assert "target" in live.clarinet("dataset", "list")
    wishes = ("--dataset", "Paper", "--modes", "grid", "--open", "--json")
    made = json.loads(live.clarinet("campaign", "create", "From a script", *wishes))
    assert (made["state"], made["modes"]) == ("open", "grid")
    assert "open     From a script" in live.clarinet("campaign", "list")
    assert "is paused" in live.clarinet("campaign", "pause", "From a script")
    assert "is open" in live.clarinet("campaign", "open", "From a script")
    live.clarinet("simulate", "From a script", "--annotators", "2")

    words = ["run", "start", "From a script", "--target", "target", "--preset", "quick", "--seeds", "3,4"]
    tiny = ["--set", "epochs=1", "--set", "steps_per_epoch=2", "--wait", "--json"]
    run = json.loads(live.clarinet(*words, *tiny))

    assert run["state"] == "succeeded"
    assert run["seeds"] == [3, 4]
    assert 0 <= run["mean_accuracy"] <= 1
    assert "on the target, 100 test images" in live.clarinet("run", "show", str(run["number"]))
    assert "Epochs is '1" in refused(live, *words, "--set", "epochs=" + "1" * 5_000)
    assert "is closed" in live.clarinet("campaign", "close", "From a script")
    assert "Nothing is wrong." in live.clarinet("audit", "From a script")


@pytest.mark.long
def test_the_examples_of_the_page_for_programs_run(live: Live, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
    examples = dict(re.findall(r"^```(sh|python)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:2])
    digits_file(tmp_path / "paper.npz", 0, 400)
    digits_file(tmp_path / "stone.npz", 500, 600)
    (tmp_path / "models").mkdir()
    (tmp_path / "pictures").mkdir()
    for level in (3, 250):
        (tmp_path / "pictures" / f"{level}.png").write_bytes(grey_png(level, 32))
    last = json.loads("[" + ",".join(live.clarinet("run", "list", "--json").splitlines()) + "]")
    number = str(last[0]["number"] + 1 if last else 1)

    for line in examples["sh"].splitlines():
        command, *words = [number if word == "1" else word for word in shlex.split(line)]
        assert command == "clarinet"
        live.clarinet(*words, cwd=tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", examples["python"]],
        cwd=tmp_path,
        env=live.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert 'There is already a dataset called "Digits on paper".' in done.stdout
    assert "succeeded" in done.stdout
    assert "Traceback" not in done.stderr
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 201  # images and a header
    table = (tmp_path / "classes.csv").read_text().splitlines()
    assert table[0].startswith("file,class,probability_0,probability_1")
    assert [line.split(",")[0] for line in table[1:]] == ["250.png", "3.png"]
    assert len(list((tmp_path / "mlruns").glob("*/*/metrics/target_accuracy"))) == 1
    [model] = (tmp_path / "models").iterdir()
    for archive in (model, tmp_path / "digits.zip"):
        assert "model.safetensors" in zipfile.ZipFile(archive).namelist()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "epochs"], "--set epochs: expected NAME=VALUE"),
        (["--set", "epoch=3"], "--set epoch=3: unknown hyper-parameter 'epoch'; did you mean epochs"),
        (["--set", "seed=3"], "--set seed=3: seed is chosen by an option of its own"),
        (["--seeds", "0,one"], "--seeds 0,one: expected whole numbers with commas, for example 0,1,2."),
        (["--seeds", "1" * 5_000], f"--seeds {'1' * 80}: expected whole numbers"),
    ],
    ids=range(5),
)
def test_a_run_that_cannot_be_meant_is_refused_before_a_server_is_asked(words: list[str], told: str) -> None:
    nowhere = ["--base-url", "http://127.0.0.1:9", "--token", "t"]

    done = CliRunner().invoke(cli, ["run", "start", "Cats", "--target", "Dogs", *nowhere, *words])

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"clarinet: {told}")


def refused(live: Live, *words: str, **environment: str) -> str:
    """What a refused command says."""
    done = subprocess.run(
        [CLARINET, *words], env=live.environment | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.long
def test_refusals_are_sentences(live: Live, tmp_path: Path) -> None:
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 this is no zip")

    assert "broken.npz" in refused(live, "dataset", "add", str(broken), "--name", "Broken")
    assert refused(live, "simulate", "Nothing") == "clarinet: There is no campaign called 'Nothing'.\n"
    assert "Give a token" in refused(live, "campaign", "list", CLARINET_TOKEN="")
    assert "Sign in, or send a bearer token" in refused(live, "campaign", "list", CLARINET_TOKEN="wrong")
    away = f"http://127.0.0.1:{free_port()}"
    assert refused(live, "dataset", "add", str(broken), CLARINET_URL=away) == (
        f"clarinet: No Clarinet server answers at {away}.\n"
    )
