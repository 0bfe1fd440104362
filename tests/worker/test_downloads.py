"""What a worker tells of trained weights: those that it has, and those that it could not fetch."""

from pathlib import Path

import pytest
from sqlalchemy import select

from app.clock import utc_now
from app.runs.models import Worker
from clarinet.networks.backbones import Backbone
from clarinet.networks.weights import load_pretrained
from clarinet.recipes.errors import WeightsNotDownloaded
from tests.clarinet.factories import make_network
from tests.worker.conftest import wait_until
from worker.context import Context
from worker.downloads import downloaded_weights
from worker.heartbeat import Heartbeat
from worker.trainer.faults import trouble_in


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches of torch and of the Hugging Face hub, each with one network and what is none."""
    checkpoints = tmp_path / "torch/hub/checkpoints"
    hub = tmp_path / "huggingface/hub"
    begun, whole = hub / "models--timm--begun.in1k/refs", hub / "models--timm--resnet18.a1_in1k/snapshots/0a"
    for folder in (checkpoints, begun, whole, hub / "datasets--x--y/snapshots/0a"):
        folder.mkdir(parents=True)
    (checkpoints / "efficientnet-lite0-57934424.pth").write_bytes(b"x")
    (checkpoints / "efficientnet-lite0-57934424.pth.partial").write_bytes(b"x")
    for name in ("TORCH_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("caches")
def test_a_worker_tells_what_it_has_downloaded(context: Context) -> None:
    began = utc_now()
    heartbeat = Heartbeat(context, "w", ["gpu"])
    heartbeat.start()

    def told() -> list[str] | None:
        with context.reading() as session:
            return session.scalar(select(Worker.weights).where(Worker.name == "w", Worker.seen_at >= began))

    wait_until(lambda: told() is not None)
    heartbeat.stop()

    assert told() == ["efficientnet-lite0-57934424.pth", "resnet18.a1_in1k"]


def test_caches_elsewhere_are_found_and_none_is_no_fault(
    caches: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    assert downloaded_weights() == []

    monkeypatch.setenv("TORCH_HOME", str(caches / "torch"))
    monkeypatch.setenv("HF_HOME", str(caches / "huggingface"))

    assert downloaded_weights() == ["efficientnet-lite0-57934424.pth", "resnet18.a1_in1k"]


def test_a_download_that_fails_is_told_in_a_sentence_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # where nobody listens
    network = make_network("resnet18").extractor
    assert isinstance(network, Backbone)

    with pytest.raises(WeightsNotDownloaded) as refused:
        load_pretrained(network, "hub")

    told = trouble_in(refused.value) or ""
    assert told.startswith(
        "The trained weights of resnet18 could not be downloaded from download.pytorch.org: "
    )
    assert "start a run by a preset without trained weights" in told
    assert "Errno" not in told


def test_a_cache_below_a_home_that_is_none_has_nothing(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", "~nobody-has-this-name/torch")

    assert downloaded_weights() == ["resnet18.a1_in1k"]

    monkeypatch.setenv("TORCH_HOME", str(caches / "torch"))
    monkeypatch.setenv("HF_HUB_CACHE", "~nobody-has-this-name/hub")

    assert downloaded_weights() == ["efficientnet-lite0-57934424.pth"]
