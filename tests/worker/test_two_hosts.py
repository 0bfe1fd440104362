"""Two hosts that share a database, a broker and a bucket, and no folder: from images to a model."""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from sklearn.datasets import load_digits

from app.settings import Settings
from app.stores.chosen import storage_of
from tests.buckets import new_bucket, s3_server
from tests.conftest import postgres_database
from tests.live import CLARINET, EMAIL, PASSWORD, Live, free_port, wait_for

IMAGES = 200
CONFIG = {"epochs": 2, "steps_per_epoch": 2, "batch_size": 32}


@contextmanager
def running(environment: dict[str, str], log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a host; it is gone at the end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [CLARINET, *words], env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


@dataclass(frozen=True)
class Hosts:
    """The web host as an installation that can be asked, and the workers' host."""

    live: Live
    work: Path  # the workers' folder
    shared: dict[str, str]  # what the environment of each host has
    worker: subprocess.Popen[bytes]
    log: Path


@pytest.fixture
def hosts(tmp_path: Path, redis_url: str) -> Iterator[Hosts]:
    """Both of them, at work."""
    web, work = tmp_path / "web", tmp_path / "work"
    with ExitStack() as stack:
        port = stack.enter_context(s3_server())
        shared = os.environ | {
            "CLARINET_DATABASE_URL": stack.enter_context(postgres_database()),
            "CLARINET_BROKER_URL": redis_url,
            "CLARINET_S3_BUCKET": new_bucket(port),
            "CLARINET_S3_PREFIX": "lab",
            "CLARINET_S3_ENDPOINT": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "key",  # as AWS's own tools have it
            "AWS_SECRET_ACCESS_KEY": "secret",
            "CLARINET_TRAINER_THREADS": "1",
            "CLARINET_DEVICE": "cpu",
        }
        there = shared | {"CLARINET_DATA_DIR": str(work)}
        live = Live(data_dir=web, environment=shared | {"CLARINET_DATA_DIR": str(web)})
        live.clarinet("db", "upgrade")
        live.clarinet(
            "user", "add", EMAIL, "--name", "Ada Lead", "--admin", "--password-stdin", given=PASSWORD
        )
        live.token = json.loads(live.clarinet("token", "add", EMAIL, "tests", "--json"))["token"]
        http = free_port()
        live.url = f"http://127.0.0.1:{http}"
        log = tmp_path / "log"
        worker: subprocess.Popen[bytes] | None = None
        for environment, words in (
            (live.environment, ["serve", "--port", str(http), "--no-migrate"]),
            (there, ["worker", "--queues", "io,gpu"]),
            (there, ["upkeep"]),
        ):
            process = stack.enter_context(running(environment, log, *words))
            live.process = live.process or process
            worker = process if words[0] == "worker" else worker
        wait_for(live, log)
        assert worker is not None
        yield Hosts(live, work, shared, worker, log)


def digits(first: int, *, test: bool) -> dict[str, np.ndarray]:
    """Some handwritten digits; the last fifth as the test split of a target."""
    images, classes = load_digits(return_X_y=True)
    pixels = (images.reshape(-1, 8, 8) * 15.9).astype(np.uint8)[first : first + IMAGES]
    labels = classes.astype(np.uint8)[first : first + IMAGES]
    if not test:
        return {"x_train": pixels, "y_train": labels}
    cut = IMAGES * 4 // 5
    return {"x_train": pixels[:cut], "x_test": pixels[cut:], "y_test": labels[cut:]}


def work_by_paths(live: Live, source: Any, campaign: Any, target: Any, model: Any) -> None:
    """All else that reads or writes files: further images, labels from a file, predictions, a deletion."""
    buffer = BytesIO()
    np.savez(buffer, **digits(2 * IMAGES, test=False))  # type: ignore[arg-type]  # its stub takes no mapping
    added = live.api("POST", f"/datasets/{source['id']}/images", files={"file": ("b.npz", buffer.getvalue())})
    csv = b"position,class\n0,0\n1,1\n"
    taken = live.api("POST", f"/campaigns/{campaign['id']}/imports", files={"file": ("a.csv", csv)})
    asked = live.api("POST", f"/models/{model['id']}/predictions", json={"dataset_id": target["id"]})
    unused = live.dataset("Unused", digits(0, test=False))
    ended = {"ready", "failed"}
    for path in (
        f"/datasets/{source['id']}/versions/{added['id']}",
        f"/campaigns/{campaign['id']}/imports/{taken['id']}",
        f"/models/{model['id']}/predictions/{asked['id']}",
    ):
        row = live.wait(path, until=lambda row: row["state"] in ended)
        assert row["state"] == "ready", row
    grown = live.api("GET", f"/datasets/{source['id']}/examples?after={IMAGES}")["items"]
    headers = {"Authorization": f"Bearer {live.token}"}
    for path in (
        f"/datasets/{source['id']}/examples/{grown[-1]['id']}/image",
        f"/models/{model['id']}/predictions/{asked['id']}/file",
    ):
        sent = httpx.get(f"{live.url}/api/v1{path}", headers=headers)
        assert sent.status_code == 200
        assert sent.content
    live.api("DELETE", f"/datasets/{unused['id']}")
    assert live.api("GET", f"/runs/{model['run_id']}")["state"] == "succeeded"


@pytest.mark.faults
def test_images_labels_training_and_model_meet_in_the_bucket(hosts: Hosts, tmp_path: Path) -> None:
    live, work = hosts.live, hosts.work
    source = live.dataset("Source", digits(0, test=False))
    target = live.dataset("Target", digits(IMAGES, test=True))
    campaign = live.open_campaign("Digits", source)
    live.clarinet(
        "simulate", campaign["id"], "--base-url", live.url, "--token", live.token, "--annotators", "3"
    )
    run = live.api(
        "POST",
        f"/campaigns/{campaign['id']}/runs",
        json={"target_dataset_id": target["id"], "config": CONFIG},
    )
    told = live.wait(
        f"/runs/{run['id']}", until=lambda row: row["state"] in {"succeeded", "failed"}, timeout_s=240
    )

    [trial] = told["trials"]
    assert (told["state"], trial["failure"]) == ("succeeded", None)
    assert 0 <= trial["target_accuracy"] <= 1
    [model] = live.api("GET", "/models")["items"]
    headers = {"Authorization": f"Bearer {live.token}"}
    sent = httpx.get(f"{live.url}/api/v1/models/{model['id']}/files/model.safetensors", headers=headers)
    assert (sent.status_code, len(sent.content)) == (200, model["size_bytes"])
    assert hashlib.sha256(sent.content).hexdigest() == sent.headers["etag"].strip('"') == model["digest"]
    [example, *_] = live.api("GET", f"/datasets/{source['id']}/examples")["items"]
    image = httpx.get(
        f"{live.url}/api/v1/datasets/{source['id']}/examples/{example['id']}/image", headers=headers
    )
    assert image.content.startswith(b"\x89PNG")
    work_by_paths(live, source, campaign, target, model)
    # Neither host keeps anything but what it can fetch again.
    assert not (live.data_dir / "artefacts").exists()
    assert not (work / "artefacts").exists()
    assert not list((work / "bucket" / "places").iterdir())
    # The third host has nothing but the addresses: it copies all of it.
    other = live.environment | {"CLARINET_DATA_DIR": str(tmp_path / "third")}
    Live(environment=other, data_dir=tmp_path / "third").clarinet("backup", str(tmp_path / "copies"))
    [manifest] = tmp_path.glob("copies/*/manifest.json")
    keys = set(json.loads(manifest.read_text())["files"])
    assert {key.partition("/")[0] for key in keys} == {"datasets", "snapshots", "trials", "models"}
    assert f"trials/{trial['id']}/log.txt" in keys
    assert len({key.split("/")[1] for key in keys if key.startswith("datasets/")}) == 2, "one was deleted"
    assert f"trials/{trial['id']}/checkpoint.safetensors" not in keys, "it is needed no more"


@pytest.mark.slow  # a lease must run out
@pytest.mark.faults
def test_a_host_that_dies_is_followed_by_one_that_goes_on_from_its_checkpoint(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = hosts.live
    source = live.dataset("Source", digits(0, test=False))
    target = live.dataset("Target", digits(IMAGES, test=True))
    campaign = live.open_campaign("Digits", source)
    live.clarinet(
        "simulate", campaign["id"], "--base-url", live.url, "--token", live.token, "--annotators", "3"
    )
    long = {"epochs": 60, "steps_per_epoch": 20, "batch_size": 32, "checkpoint_every": 1}
    run = live.api(
        "POST", f"/campaigns/{campaign['id']}/runs", json={"target_dataset_id": target["id"], "config": long}
    )
    [trial] = run["trials"]
    for name, value in hosts.shared.items():
        monkeypatch.setenv(name, value)
    storage = storage_of(Settings(data_dir=tmp_path / "looking", _env_file=None))
    prefix = f"trials/{trial['id']}"
    deadline = time.monotonic() + 300
    while storage.about(f"{prefix}/checkpoint.safetensors") is None:
        assert time.monotonic() < deadline, hosts.log.read_text(errors="replace")[-4000:]
        time.sleep(0.2)

    os.killpg(hosts.worker.pid, signal.SIGKILL)
    environment = hosts.shared | {"CLARINET_DATA_DIR": str(tmp_path / "next")}
    with running(environment, tmp_path / "log-of-the-next", "worker", "--queues", "gpu"):
        told = live.wait(
            f"/runs/{run['id']}", until=lambda row: row["state"] in {"succeeded", "failed"}, timeout_s=300
        )

    assert (told["state"], told["trials"][0]["failure"]) == ("succeeded", None)
    assert [epoch["epoch"] for epoch in live.api("GET", f"/runs/{run['id']}/metrics")["items"]] == list(
        range(1, 61)
    )
    said = storage.tail(f"{prefix}/log.txt", 100_000).decode()
    assert "resumed=True" in said or '"resumed": true' in said, said[-2000:]
    assert storage.about(f"{prefix}/checkpoint.safetensors") is None
