"""`clarinet bench comparison` makes what is missing, and goes on where it was."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from clarinet.recipes.choices import Looks
from clarinet.recipes.fitting import is_for
from clarinet.recipes.methods import config_for
from clarinet_client import Client
from tests.live import Live, clarinet, installation
from worker.bench.comparison import METHODS as METHODS_OF_ALL
from worker.bench.comparison import PAIRS
from worker.cli.main import app as cli

METHODS = ("--method", "clarinet-plus", "--method", "gac")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with installation(tmp_path / "data", tmp_path / "log") as found:
        yield found


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files with the names of the real ones: some handwritten digits as source, others as target."""
    folder = tmp_path / "files"
    folder.mkdir()
    images, classes = load_digits(return_X_y=True)
    pixels, labels = (images.reshape(-1, 8, 8) * 15.9).astype(np.uint8), classes.astype(np.uint8)
    for name, start in (("usps_28x28", 0), ("mnist", 300)):
        train, test = slice(start, start + 200), slice(start + 200, start + 260)
        np.savez(
            folder / f"{name}.npz",
            x_train=pixels[train],
            y_train=labels[train],
            x_test=pixels[test],
            y_test=labels[test],
        )
    return folder


@pytest.mark.slow  # an installation and its trainings
@pytest.mark.long
def test_a_second_start_launches_only_what_is_missing(live: Live, files: Path) -> None:
    server = ("--base-url", live.url, "--token", live.token)
    words = ("bench", "comparison", "U-M", "--data", str(files), "--seeds", "2", "--json", *server)
    shortened = ("--answers", "150", "--set", "epochs=6", "--set", "steps_per_epoch=2")

    first = json.loads(live.clarinet(*words, *shortened, *METHODS))["U-M"]
    with Client(live.url, live.token) as client:
        [campaign] = client.campaigns.all()
        answered = client.campaigns.progress(campaign["id"])["answers"]
    assert answered["yes"] + answered["no"] >= 150
    again = json.loads(live.clarinet(*words, *shortened, *METHODS, "--method", "clarinet"))["U-M"]

    assert (set(first["runs"]), first["refused"]) == ({"clarinet-plus", "gac"}, {})
    assert first["runs"].items() < again["runs"].items()
    with Client(live.url, live.token) as client:
        runs = {run["method"]: run for run in client.runs.all()}
        assert client.campaigns.progress(campaign["id"])["answers"] == answered
    assert {method: run["preset"] for method, run in runs.items() if method != "clarinet-plus"} == {
        "gac": "short",
        "clarinet": "short",
    }
    assert again["url"].count("run=") == 3


@pytest.mark.parametrize("name", PAIRS)
def test_every_method_has_the_preset_that_a_pair_names(name: str) -> None:
    """Photographs are learned from one network by all methods, digits as the paper does."""
    looks: Looks = "digits" if name in {"U-M", "M-U", "M-MM"} else "photographs"
    networks = set()

    for method in METHODS_OF_ALL:
        config = config_for(method, PAIRS[name].preset_of(method), looks=looks)
        assert is_for(config) == looks
        networks.add((config.network.architecture, config.network.image_size, config.network.kept_features))

    assert len(networks) == 1


@pytest.mark.parametrize("options", [[], ["--download-weights"]])
def test_workers_fetch_trained_weights_where_the_command_lets_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str]
) -> None:
    launched: list[dict[str, Any]] = []

    def launch(_campaign: str, _target: str, **choices: Any) -> dict[str, Any]:
        launched.append(choices)
        return {"number": 1, "id": "r"}

    def named(name: str) -> dict[str, Any]:
        return {"id": name, "name": name, "state": "open"}

    @contextmanager
    def connected(*_: str) -> Iterator[SimpleNamespace]:
        """A server with images, answers and runs of another method."""
        other = {"method": "gac+mcc", "state": "succeeded"}
        yield SimpleNamespace(
            datasets=SimpleNamespace(find=named, wait=named),
            campaigns=SimpleNamespace(find=named),
            runs=SimpleNamespace(all=lambda **_: [other], launch=launch),
            base_url="http://here",
        )

    monkeypatch.setattr("worker.cli.bench.connect", connected)

    done = CliRunner().invoke(cli, ["bench", "comparison", "P-A", "--data", str(tmp_path), *options])

    assert done.exit_code == 0, done.output
    assert [each["method"] for each in launched] == list(METHODS_OF_ALL)
    assert {each["preset"] for each in launched} == {"photographs-quick"}
    assert [each.get("download_weights") for each in launched] == [bool(options) or None] * len(launched)


def test_a_pair_that_nobody_knows_is_refused_before_a_server_is_asked() -> None:
    done = clarinet({}, "bench", "comparison", "M-X", "--data", ".")

    assert (done.returncode, "M-X is none of U-M" in done.stderr) == (2, True)
