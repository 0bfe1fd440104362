"""The commands that talk to a server, and a real server with its workers behind them."""

import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from tests.live import CLARINET, Live, clarinet, free_port, installation
from tests.pictures import grey_png
from worker.cli.main import app as cli
from worker.cli.runs import told


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
    assert told(row | known | scored | {"chance": 0.1}).endswith("without classes; chance 10.00 %")


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

    imported = json.loads(live.clarinet("dataset", "add", str(source), "--name", "Sheets", "--json"))
    assert (imported["state"], imported["train_count"], imported["test_count"]) == ("ready", 250, 250)
    live.clarinet("dataset", "add", str(target))
    assert "target" in live.clarinet("dataset", "list")
    wishes = ("--dataset", "Sheets", "--modes", "grid", "--open", "--json")
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

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"clarinet: {told}")


def refused(live: Live, *words: str, **environment: str) -> str:
    """What a refused command says."""
    done = clarinet(live.environment | environment, *words)
    assert (done.returncode, done.stdout) == (1, "")
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
    done = subprocess.run(  # a process of its own, as people and scripts start it
        [CLARINET, "dataset", "add", str(broken)],
        env=live.environment | {"CLARINET_URL": away},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"clarinet: No Clarinet server answers at {away}.\n"
