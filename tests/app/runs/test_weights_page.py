"""The page that lists trained weights on the server, and the form that offers them."""

import hashlib
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.clock import utc_now
from app.datasets.models import Dataset
from app.runs.models import Run
from app.runs.workers import Machine, record_worker
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.runs.conftest import inputs_of
from tests.factories import make_dataset

HTML = {"accept": "text/html"}


class TestWeights:
    @pytest.fixture
    def folder(self, app: FastAPI, settings: Settings, tmp_path: Path) -> Path:
        """The operator's, still empty."""
        folder = tmp_path / "weights"
        folder.mkdir()
        app.state.settings = settings.model_copy(update={"weights_dir": folder})
        return folder

    def test_files_are_listed_with_size_and_digest(self, client: TestClient, folder: Path) -> None:
        (folder / "<b>net.safetensors").write_bytes(b"x" * 12_300_000)

        page = client.get("/weights", headers=HTML).text

        assert '<th scope="row">&lt;b&gt;net.safetensors</th>' in page
        assert "12.3 MB" in page
        assert hashlib.sha256(b"x" * 12_300_000).hexdigest() in page

    def test_the_form_offers_them_and_a_run_keeps_the_one_that_was_chosen(
        self, client: TestClient, session: Session, campaign: Campaign, target: Dataset, folder: Path
    ) -> None:
        (folder / "net.pt").write_bytes(b"tensors")
        url = f"/campaigns/{campaign.id}/runs/new"
        page = client.get(url, headers=HTML).text
        typed = inputs_of(page) | {
            "target_dataset_id": str(target.id),
            "config.architecture": "timm/resnet18",
        }

        refused = client.post(url, data=typed | {"config.pretrained": "../net.pt"}, headers=HTML)
        started = client.post(url, data=typed | {"config.pretrained": "net.pt"}, headers=HTML)

        assert '<option value="net.pt">net.pt</option>' in page
        assert '<option value="convnext_tiny"></option>' in page
        assert refused.status_code == 422
        assert "which has no &#39;../net.pt&#39;." in refused.text
        assert started.status_code == 303
        network = session.scalars(select(Run)).one().config["network"]
        assert network["architecture"] == "timm/resnet18"
        assert (network["pretrained"], network["pretrained_digest"]) == (
            "net.pt",
            hashlib.sha256(b"tensors").hexdigest(),
        )

    def test_a_file_for_the_recipes_network_is_offered_in_the_place_of_a_download(
        self, client: TestClient, session: Session, campaign: Campaign, storage: FolderStorage, folder: Path
    ) -> None:
        photographs = make_dataset(session, storage, name="Streets", looks="photographs")
        digits = make_dataset(session, storage, name="Numbers")
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"
        asked = f"{url}?target_dataset_id={photographs.id}"
        before = client.get(asked, headers=HTML).text
        for name in ("any.pt", "efficientnet-lite0-57934424.pth"):
            (folder / name).write_bytes(b"tensors")
        page = client.get(asked, headers=HTML).text
        chosen = {"target_dataset_id": str(photographs.id)}

        for typed in (inputs_of(page) | chosen, inputs_of(page) | {"target_dataset_id": str(digits.id)}):
            assert client.post(url, data=typed, headers=HTML).status_code == 303

        assert inputs_of(before)["config.pretrained"] == "hub"
        choices = page[page.index('name="config.pretrained"') :].partition("</select>")[0]
        assert re.findall(r'option value="([^"]*)"', choices) == [
            "any.pt",
            "efficientnet-lite0-57934424.pth",
            "",
            "hub",
        ]
        assert "trained weights from a file" in page
        assert "trained weights of ImageNet" in before
        told = "lie neither on this server nor with a worker that is there"
        assert (told in before, told in page) == (True, False)
        first, second = session.scalars(select(Run).order_by(Run.number)).all()
        assert (first.preset, first.config["network"]["pretrained"]) == (
            "photographs",
            "efficientnet-lite0-57934424.pth",
        )
        # The form was loaded for photographs, and the file is not for the digits' network.
        assert (second.preset, second.config["network"]["pretrained"]) == ("digits", "")

    def test_weights_that_lie_nowhere_are_said_before_the_start_and_a_recipe_without_is_offered(
        self, client: TestClient, session: Session, campaign: Campaign, storage: FolderStorage
    ) -> None:
        photographs = make_dataset(session, storage, name="Streets", looks="photographs")
        about: dict[str, Any] = {"host": "h", "version": "", "memory_bytes": None, "memory_free_bytes": None}

        def asked(*weights: str, ago: float = 0, recipe: str = "") -> str:
            now = utc_now() - timedelta(seconds=ago)
            machine = Machine(process="h:1", started_at=now, weights=list(weights), **about)
            record_worker(session, "w", queues="gpu", device="CPU", machine=machine, now=now)
            session.commit()
            url = f"/campaigns/{campaign.id}/runs/new?target_dataset_id={photographs.id}&recipe={recipe}"
            return unescape(client.get(url, headers=HTML).text)

        nowhere = asked("resnet18-f37072fd.pth")
        gone = asked("tf_efficientnet_lite0.in1k", ago=300)
        there = asked("tf_efficientnet_lite0.in1k")
        none_needed = asked(recipe="clarinet-plus/photographs-untrained")

        told = "lie neither on this server nor with a worker that is there"
        assert [told in page for page in (nowhere, gone, there, none_needed)] == [True, True, False, False]
        assert "A worker has these weights." in there
        [link] = re.findall(r'<a href="([^"]+)">take the preset without trained weights</a>', nowhere)
        offered = client.get(link, headers=HTML).text
        assert 'value="clarinet-plus/photographs-untrained" selected' in offered
        assert f'value="{photographs.id}" selected' in offered
        assert told not in offered

    def test_a_run_whose_weights_no_worker_has_is_refused_unless_somebody_lets_one_download_them(
        self, client: TestClient, session: Session, campaign: Campaign, storage: FolderStorage
    ) -> None:
        photographs = make_dataset(session, storage, name="Streets", looks="photographs")
        url, typed = f"/campaigns/{campaign.id}/runs", {"target_dataset_id": str(photographs.id)}

        def reported(weights: list[str] | None) -> None:
            now = utc_now()
            about: dict[str, Any] = {"host": "h", "version": "", "memory_bytes": None}
            machine = Machine(process="h:1", memory_free_bytes=None, started_at=now, weights=weights, **about)
            record_worker(session, "w", queues="gpu", device="CPU", machine=machine, now=now)
            session.commit()

        def statuses() -> list[int]:
            return [
                client.post(f"/api/v1{url}", json=typed).status_code,
                client.post(f"{url}/new", data={"seeds": "0", **typed}, headers=HTML).status_code,
            ]

        nobody_there = statuses()
        reported(None)
        nobody_told = statuses()
        reported(["resnet18-f37072fd.pth"])
        program = client.post(f"/api/v1{url}", json=typed).json()
        page = client.post(f"{url}/new", data={"seeds": "0", **typed}, headers=HTML)
        beside = session.scalars(select(Run).order_by(Run.number)).first()
        assert beside
        sweep = client.post(f"/api/v1/runs/{beside.id}/sweeps", json={"methods": ["clarinet-plus"]})
        untrained = client.post(f"/api/v1{url}", json=typed | {"preset": "photographs-untrained"})
        allowed = client.post(f"/api/v1{url}", json=typed | {"download_weights": True})
        ticked = {"seeds": "0", "download_weights": "true", **typed}
        by_hand = client.post(f"{url}/new", data=ticked, headers=HTML)
        reported(["tf_efficientnet_lite0.in1k"])

        assert (nobody_there, nobody_told, statuses()) == ([202, 303], [202, 303], [202, 303])
        assert (program["type"], program["field"]) == ("/problems/bad-config", "download_weights")
        assert "preset photographs-untrained, which needs none" in program["detail"]
        assert page.status_code == 422
        assert 'name="download_weights" type="checkbox" value="true" aria-describedby' in page.text
        assert sweep.status_code == 422
        assert [answer.status_code for answer in (untrained, allowed, by_hand)] == [202, 202, 303]

    def test_an_empty_folder_says_what_it_lacks(self, client: TestClient, folder: Path) -> None:
        page = client.get("/weights", headers=HTML).text

        assert f"The folder {folder} has no file that ends in .safetensors, .pt or .pth." in page

    def test_without_a_folder_it_says_who_names_one(self, client: TestClient) -> None:
        page = client.get("/weights", headers=HTML).text

        assert "No folder is named" in page
        assert "CLARINET_WEIGHTS_DIR" in page

    def test_a_folder_that_is_gone_is_told_in_words(self, client: TestClient, folder: Path) -> None:
        folder.rmdir()

        response = client.get("/weights", headers=HTML)

        assert response.status_code == 200
        assert f'"{folder}", is not there.' in unescape(response.text)

    def test_the_form_of_runs_leads_there_but_no_annotator(
        self, client: TestClient, annotator_client: TestClient, campaign: Campaign
    ) -> None:
        form = client.get(f"/campaigns/{campaign.id}/runs/new", headers=HTML).text

        assert 'href="/weights"' in form
        assert annotator_client.get("/weights", headers=HTML).status_code == 403
