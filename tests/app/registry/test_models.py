"""Published models: list, card, download."""

import hashlib
import io
import json
import zipfile
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.datasets.models import DatasetVersion
from app.registry import service
from app.registry.models import Model
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_run

HTML = {"accept": "text/html"}


def test_a_downloaded_zip_holds_the_weights_and_the_card(client: TestClient, model: Model) -> None:
    response = client.get(f"/api/v1/models/{model.id}/download")

    with zipfile.ZipFile(io.BytesIO(response.content)) as file:
        weights = file.read("model.safetensors")
        card = json.loads(file.read("model.json"))
    assert hashlib.sha256(weights).hexdigest() == model.digest
    assert card == model.card
    assert "attachment" in response.headers["content-disposition"]


class TestOnnx:
    def test_it_is_downloaded_alone_and_in_the_zip(self, client: TestClient, with_onnx: Model) -> None:
        alone = client.get(f"/api/v1/models/{with_onnx.id}/onnx")
        everything = client.get(f"/api/v1/models/{with_onnx.id}/download")

        assert alone.content == b"graph"
        assert alone.headers["content-disposition"].endswith('-seed0.onnx"')
        assert alone.headers["cache-control"] == "no-store"
        with zipfile.ZipFile(io.BytesIO(everything.content)) as file:
            assert file.read("model.onnx") == b"graph"
            assert file.read("MODEL_CARD.md") == b"# Model card"

    def test_files_that_are_lost_are_said(
        self, client: TestClient, storage: FolderStorage, with_onnx: Model
    ) -> None:
        storage.delete_tree(with_onnx.key)

        for file in ("onnx", "download"):
            answer = client.get(f"/api/v1/models/{with_onnx.id}/{file}")
            assert (answer.status_code, answer.json()["type"]) == (409, "/problems/stored-file-missing")

    @pytest.mark.parametrize(
        ("name", "files"), [("model.onnx", {"onnx", "download"}), ("model.safetensors", {"download"})]
    )
    def test_files_that_are_damaged_are_said(
        self, name: str, files: set[str], client: TestClient, storage: FolderStorage, with_onnx: Model
    ) -> None:
        storage.put(f"{with_onnx.key}/{name}", b"grap")

        answers = {file: client.get(f"/api/v1/models/{with_onnx.id}/{file}") for file in ("onnx", "download")}

        assert {file for file, answer in answers.items() if answer.status_code == 409} == files
        for file in files:
            assert answers[file].json()["type"] == "/problems/stored-file-damaged"

    def test_the_page_leads_to_it(self, client: TestClient, with_onnx: Model) -> None:
        page = client.get(f"/models/{with_onnx.id}", headers=HTML)

        assert f"/api/v1/models/{with_onnx.id}/onnx" in page.text

    def test_where_it_could_not_be_written_the_page_says_why(
        self, client: TestClient, session: Session, model: Model
    ) -> None:
        model.card = model.card | {"onnx": {"missing": "ONNX export needs the package onnx"}}
        session.commit()

        page = client.get(f"/models/{model.id}", headers=HTML)
        refused = client.get(f"/api/v1/models/{model.id}/onnx")

        assert "Not there: ONNX export needs the package onnx" in page.text
        assert f"{model.id}/onnx" not in page.text
        assert refused.status_code == 404
        assert refused.json()["type"] == "/problems/model-without-onnx"

    def test_a_model_from_before_it_existed_has_none(self, client: TestClient, model: Model) -> None:
        assert client.get(f"/api/v1/models/{model.id}/onnx").status_code == 404
        assert "older than this file" in client.get(f"/models/{model.id}", headers=HTML).text


def test_models_are_listed_newest_first_in_pages(
    client: TestClient, session: Session, storage: FolderStorage, model: Model
) -> None:
    run = make_run(session, storage, train=2, seeds=(0, 1))
    for trial in run.trials:
        service.publish_model(
            session, trial_id=trial.id, key="k", digest="d", size_bytes=1, card=model.card, now=NOW
        )
    session.commit()

    first = client.get("/api/v1/models", params={"limit": 2}).json()
    second = client.get("/api/v1/models", params={"limit": 2, "after": first["next"]}).json()

    ids = [item["id"] for item in first["items"] + second["items"]]
    assert len(ids) == len(set(ids)) == 3
    assert second["next"] is None


def test_the_card_is_a_page_and_the_trial_leads_to_it(client: TestClient, model: Model) -> None:
    page = client.get(f"/models/{model.id}", headers=HTML)
    listed = client.get("/models", headers=HTML)
    led = client.get(f"/trials/{model.trial_id}/model", headers=HTML)

    assert page.status_code == listed.status_code == 200
    assert "87.5" in page.text
    assert "on the target, 8 test images" in page.text  # as cards of earlier versions say it
    assert "95 % interval 47.3 to 99.7 %" in page.text
    assert "cat, &lt;dog&gt;" in page.text
    assert f"/models/{model.id}" in listed.text
    assert led.headers["location"].endswith(f"/models/{model.id}")


def test_a_model_that_was_measured_on_the_targets_own_images_says_so(
    client: TestClient, session: Session, model: Model
) -> None:
    model.card = model.card | {"scored": {"split": "train", "images": 8, "of": 1009}}
    session.commit()

    page = client.get(f"/models/{model.id}", headers=HTML).text

    told = "8 of its 1 009 training images, those of a known class that is one of these"
    assert page.count(f"{told}; training saw the images without classes") == 2


def test_a_target_without_known_classes_is_said_to_be_unmeasured_in_words(
    client: TestClient, session: Session, model: Model
) -> None:
    estimate = {"estimate": 0.9, "low": 0.8, "high": 0.95, "held_out": 300, "needed": 200, "missing": 0}
    nothing = {"target_accuracy": None, "per_class_accuracy": None, "confusion": None, "scored_on": 0}
    model.card = model.card | nothing
    session.commit()
    old = client.get(f"/models/{model.id}", headers=HTML).text
    model.card = model.card | {"source_estimate": estimate}
    session.commit()
    page, listed = (client.get(path, headers=HTML).text for path in (f"/models/{model.id}", "/models"))

    headline = page[page.index('<p class="hero">') :].partition("</p>")[0]
    assert "Not measured" in headline
    assert "%" not in headline
    assert "On the source 90.0 %, an estimate: 80.0 to 95.0 % with 95 % confidence" in page
    assert "not measured" in listed
    assert "Not measured" in old
    assert "On the source" not in old


def test_no_more_answers_are_asked_for_than_there_are_pictures(
    client: TestClient, session: Session, model: Model
) -> None:
    few = {"estimate": None, "low": None, "high": None, "held_out": 96, "needed": 200, "missing": 2080}
    model.card = model.card | {"source_estimate": few}
    session.commit()

    small = client.get(f"/models/{model.id}", headers=HTML).text
    session.execute(update(DatasetVersion).values(train_count=10_000))
    session.commit()
    large = client.get(f"/models/{model.id}", headers=HTML).text

    assert "there are 96, and the source has too few pictures for more: let people judge the model" in small
    assert "more “no” answer" not in small
    assert "there are 96: about 2 080 more “no” answers of the campaign" in large


def test_the_recipe_stands_on_the_page_and_an_earlier_preset_by_its_name_of_today(
    client: TestClient, session: Session, model: Model
) -> None:
    model.card = model.card | {"method": "clarinet-plus", "preset": "quick", "recipe": "digits: LeNet"}
    session.commit()

    page, listed = (client.get(path, headers=HTML).text for path in (f"/models/{model.id}", "/models"))

    assert "<dt>Recipe</dt><dd>digits: LeNet</dd>" in page
    for shown in (page, listed):
        assert '<abbr title="method clarinet-plus">CLARINET plus</abbr>, ' in shown
        assert '<abbr title="preset digits-quick">for digits, quick</abbr>' in shown


def test_the_configuration_of_any_version_is_shown_in_its_groups(
    client: TestClient, session: Session, model: Model
) -> None:
    now = client.get(f"/models/{model.id}", headers=HTML).text
    model.card = model.card | {
        "config": {"method": "clarinet", "epochs": 7, "trade_off": 0.5, "momentum": 0.8}
    }
    session.commit()
    then = client.get(f"/models/{model.id}", headers=HTML).text

    assert "<h3>Self training</h3>" in now
    assert '<dt title="average_decay">Average decay</dt>' in now
    assert '<dt title="epochs">Epochs</dt><dd>7</dd>' in then
    assert '<dt title="adaptation_weight">Adaptation weight</dt><dd>0.5</dd>' in then
    assert '<dt title="momentum">Momentum</dt><dd>0.8</dd>' in then.split("<h3>Of an earlier version</h3>")[1]


def test_the_page_says_with_which_trained_weights_it_began(
    client: TestClient, session: Session, model: Model
) -> None:
    before = client.get(f"/models/{model.id}", headers=HTML).text
    model.card = model.card | {"pretrained": {"name": "<net>.pt", "digest": "5f" * 32}}
    session.commit()
    after = client.get(f"/models/{model.id}", headers=HTML).text

    assert "Began with" not in before
    assert f"the trained weights &lt;net&gt;.pt, SHA-256 <code>{'5f' * 32}</code>" in after


def test_without_models_the_list_says_what_one_is(client: TestClient) -> None:
    assert "No model yet" in client.get("/models", headers=HTML).text


@pytest.mark.parametrize("path", ["", "/download", "/onnx"])
def test_an_unknown_model_is_not_found_and_annotators_see_none(
    client: TestClient, annotator_client: TestClient, model: Model, path: str
) -> None:
    assert client.get(f"/api/v1/models/{uuid4()}{path}").status_code == 404
    assert annotator_client.get(f"/api/v1/models/{model.id}{path}").status_code == 403
