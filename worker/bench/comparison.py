"""The paper's methods beside ours, on real images, through a running server: what its comparison page is for.

Each step looks for what an earlier start has made and goes on after it, so it may be interrupted at any time.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from app.runs.launching import PAPER
from clarinet_client import Client, NotFound, Refused
from clarinet_client.shapes.campaigns import Campaign
from clarinet_client.shapes.datasets import Dataset, NewDataset
from clarinet_client.shapes.runs import RunChoices
from worker.demo.annotators import Plan, simulate
from worker.demo.perception import read_truth

DIGITS = "\n".join(str(digit) for digit in range(10))  # a name a line
OURS = "clarinet-plus"
METHODS = (OURS, *PAPER)
OVER = {"failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class Images:
    """A dataset that is there or is sent: what it is called, and its file in the folder of data."""

    name: str
    file: str
    classes: str = DIGITS  # "": the file's own


@dataclass(frozen=True, slots=True)
class Pair:
    """Where people answer, where predictions are wanted, and the presets there; None is what fits."""

    source: Images
    target: Images
    preset: str | None = "short"
    ours: str | None = None

    def preset_of(self, method: str) -> str | None:
        """Of one of the paper's methods, or of ours."""
        return self.ours if method == OURS else self.preset


USPS, MNIST = Images("USPS", "usps_28x28.npz"), Images("MNIST", "mnist.npz")
MNIST_M = Images("MNIST-M", "mnist_m.npz")
PHOTOS = Images("PACS photographs", "pacs_photo.zip", "")
PAINTINGS = Images("PACS paintings", "pacs_art_painting.zip", "")
SKETCHES = Images("PACS sketches", "pacs_sketch.zip", "")
KEPT = "photographs-quick"
PAIRS: Mapping[str, Pair] = {
    "U-M": Pair(USPS, MNIST),
    "M-U": Pair(MNIST, USPS),
    "M-MM": Pair(MNIST, MNIST_M),
    "P-A": Pair(PHOTOS, PAINTINGS, KEPT, KEPT),
    "A-P": Pair(PAINTINGS, PHOTOS, KEPT, KEPT),
    "P-S": Pair(PHOTOS, SKETCHES, KEPT, KEPT),
}
"""By the name that the command gives it. On photographs all methods learn from the same kept features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to launch of each pair; `changes` are fields of the config that differ from the presets'.

    `download_weights`: a worker may fetch trained weights that none has, as photographs need them.
    """

    data: Path
    methods: Sequence[str] = METHODS
    seeds: Sequence[int] = (0, 1, 2)
    answers: int | None = None  # None: until nothing is left to ask
    changes: Mapping[str, bool | int | float | str] | None = None
    download_weights: bool = False


@dataclass(frozen=True, slots=True)
class Launched:
    """The runs of a pair by method, what the server refused by method, and where they stand side by side."""

    runs: Mapping[str, int]
    refused: Mapping[str, str]
    url: str


def launch_comparison(client: Client, pair: Pair, wanted: Wanted, *, say: Callable[[str], None]) -> Launched:
    """Make what is missing of a pair: datasets, a campaign, its answers and a run of each method.

    Raises:
        FileNotFoundError: images that the server lacks are not in the folder of data, either.
        Refused: the server took something else than a run's method.
    """
    source, target = (_dataset(client, each, wanted.data, say) for each in (pair.source, pair.target))
    campaign = _campaign(client, source, say)
    # Further answers would give later runs other labels than those that stand beside them.
    known = [run for run in client.runs.all(campaign_id=campaign["id"]) if run["state"] not in OVER]
    if not known:
        _answer(client, campaign, wanted.answers, say)
    runs: dict[str, int] = {}
    ids: list[str] = []
    refused: dict[str, str] = {}
    seeds = list(wanted.seeds)
    for method in wanted.methods:
        choices: RunChoices = {"method": method, "seeds": seeds, "config": dict(wanted.changes or {})}
        if preset := pair.preset_of(method):
            choices["preset"] = preset
        if wanted.download_weights:
            choices["download_weights"] = True
        found = next(
            (
                run
                for run in known
                if run["method"] == method
                and run["seeds"] == seeds
                and run["target_dataset_id"] == target["id"]
                and run["preset"] == choices.get("preset", run["preset"])
            ),
            None,
        )
        try:
            row = found or client.runs.launch(campaign["id"], target["id"], **choices)
        except Refused as error:
            refused[method] = str(error)
            say(f"{method}: {error}")
            continue
        runs[method] = row["number"]
        ids.append(row["id"])
        say(f"{method}: run {row['number']}{', there already' if found else ''}")
    query = urlencode([("run", run_id) for run_id in ids])
    return Launched(runs, refused, f"{client.base_url}/runs/compare?{query}")


def _dataset(client: Client, images: Images, data: Path, say: Callable[[str], None]) -> Dataset:
    try:
        return client.datasets.wait(client.datasets.find(images.name)["id"])
    except NotFound:
        pass
    path = data / images.file
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there, and the server has no dataset called {images.name}.")
    say(f"Sending {path.name}")
    choices: NewDataset = {"name": images.name}
    if images.classes:
        choices["classes"] = images.classes
    return client.datasets.add(path, **choices)


def _campaign(client: Client, source: Dataset, say: Callable[[str], None]) -> Campaign:
    name = f"Comparison: {source['name']}"
    try:
        campaign = client.campaigns.find(name)
    except NotFound:
        say(f"Drawing the questions about {source['name']}")
        campaign = client.campaigns.create(name, source["id"])
    return client.campaigns.open(campaign["id"]) if campaign["state"] == "draft" else campaign


def _answer(client: Client, campaign: Campaign, limit: int | None, say: Callable[[str], None]) -> None:
    say(f"Simulated annotators answer {campaign['name']}")
    plan = Plan(limit=limit)
    truth = read_truth(client, campaign)
    stop = threading.Event()
    tally = simulate(client, campaign, plan, stop=stop, truth=truth, on_progress=lambda _: None)
    say(f"{tally.answers} answers, {tally.wrong} of them wrong")
