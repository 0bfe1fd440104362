"""The page that starts a run: its form, and what is wrong beside its field."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets import service as datasets
from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset
from app.runs import configs
from app.runs.models import Run
from app.stores.folder import FolderStorage
from tests.app.runs.conftest import answered, inputs_of
from tests.factories import make_dataset

HTML = {"accept": "text/html"}
Damage = Callable[[Path], None]


def cut_off(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])


def overwritten(shard: Path) -> None:
    shard.write_bytes(bytes(shard.stat().st_size))


def now_a_folder(shard: Path) -> None:
    shard.unlink()
    shard.mkdir()


def latest_run(session: Session) -> Run:
    return session.scalars(select(Run).order_by(Run.number.desc())).first()  # type: ignore[return-value]


class TestNewRun:
    def test_the_form_as_it_comes_starts_a_run_with_the_presets_values(
        self, client: TestClient, session: Session, campaign: Campaign, target: Dataset
    ) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"
        page = client.get(url, params={"recipe": "clarinet-plus/digits-quick"}, headers=HTML)
        assert page.status_code == 200

        typed = inputs_of(page.text)
        assert typed["target_dataset_id"] == str(target.id)
        response = client.post(url, data=typed, headers=HTML)

        run = latest_run(session)
        assert response.status_code == 303
        assert response.headers["location"].endswith(f"/runs/{run.id}")
        assert (run.method, run.preset) == ("clarinet-plus", "digits-quick")
        assert run.config == configs.config_for("clarinet-plus", "pc", "digits-quick", {}, looks="digits")

    def test_the_sentence_and_the_values_follow_the_target(
        self,
        client: TestClient,
        session: Session,
        storage: FolderStorage,
        campaign: Campaign,
        target: Dataset,
    ) -> None:
        street = make_dataset(session, storage, looks="photographs", name="Street")
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"
        asked = {"recipe": "clarinet-plus/default"}

        page = client.get(url, params=asked | {"target_dataset_id": str(target.id)}, headers=HTML).text
        part = client.get(
            url, params=asked | {"target_dataset_id": str(street.id)}, headers=HTML | {"HX-Request": "true"}
        ).text

        assert '<p id="trained" aria-live="polite">This trains digits: LeNet at 28 pixels.</p>' in page
        assert inputs_of(page)["loaded"] == "clarinet-plus/digits"
        assert '<p id="trained" aria-live="polite" hx-swap-oob="true">This trains photographs: ' in part
        assert inputs_of(part)["loaded"] == "clarinet-plus/photographs"
        assert inputs_of(part)["config.distortion_kind"] == "photographs"

    def test_pictures_that_are_lost_are_said_instead_of_a_fault(
        self, client: TestClient, session: Session, storage: FolderStorage, campaign: Campaign
    ) -> None:
        lost = make_dataset(session, storage, looks=None, name="Lost")
        storage.delete_tree(datasets.prefix_of(lost))
        session.commit()

        page = client.get(
            f"/campaigns/{campaign.id}/runs/new", params={"target_dataset_id": str(lost.id)}, headers=HTML
        )

        assert page.status_code == 409
        assert "Restore it from a backup, or make this anew." in page.text

    @pytest.mark.parametrize("damage", [cut_off, overwritten, now_a_folder])
    def test_pictures_that_are_damaged_are_said_in_the_form_and_the_api(
        self,
        damage: Damage,
        client: TestClient,
        session: Session,
        storage: FolderStorage,
        campaign: Campaign,
    ) -> None:
        target = make_dataset(session, storage, looks=None)
        damage(storage.path(shard_key(datasets.prefix_of(target), 0)))
        session.commit()
        chosen = {"target_dataset_id": str(target.id)}

        page = client.get(f"/campaigns/{campaign.id}/runs/new", params=chosen, headers=HTML)
        started = client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=chosen)

        assert page.status_code == 409
        assert "it is damaged or cannot be read. Restore it from a backup" in page.text
        assert (started.status_code, started.json()["type"]) == (409, "/problems/stored-file-damaged")

    def test_a_recipe_for_other_images_is_told_before_and_after_it_starts(
        self, client: TestClient, session: Session, storage: FolderStorage, campaign: Campaign
    ) -> None:
        street = make_dataset(session, storage, looks="photographs", name="Street")
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"

        page = client.get(
            url, params={"recipe": "gac/short", "target_dataset_id": str(street.id)}, headers=HTML
        ).text
        client.post(url, data=inputs_of(page), headers=HTML)

        told = "The images look like photographs, but preset short is made for digits; preset photographs is"
        assert told in page
        shown = client.get(f"/runs/{latest_run(session).id}", headers=HTML).text
        assert "It trains digits: LeNet at 28 pixels." in shown
        assert told in shown

    def test_the_form_and_the_run_say_that_kept_features_are_not_the_papers_network(
        self, client: TestClient, session: Session, storage: FolderStorage, campaign: Campaign
    ) -> None:
        street = make_dataset(session, storage, looks="photographs", name="Street")
        session.commit()
        url, recipe = f"/campaigns/{campaign.id}/runs/new", "clarinet/photographs-quick"
        said = "the paper&#39;s losses on kept features of a frozen backbone; not the paper&#39;s network."

        page = client.get(url, params={"recipe": recipe, "target_dataset_id": str(street.id)}, headers=HTML)
        client.post(url, data=inputs_of(page.text), headers=HTML)

        assert said in page.text
        assert said in client.get(f"/runs/{latest_run(session).id}", headers=HTML).text

    def test_photographs_are_trained_though_the_form_was_loaded_for_digits(
        self,
        client: TestClient,
        session: Session,
        storage: FolderStorage,
        campaign: Campaign,
        target: Dataset,
    ) -> None:
        """Without JavaScript another target does not load the values of its recipe."""
        street = make_dataset(session, storage, looks="photographs", name="Street")
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"
        params = {"target_dataset_id": str(target.id)}
        typed = inputs_of(client.get(url, params=params, headers=HTML).text)

        client.post(
            url, data=typed | {"target_dataset_id": str(street.id), "config.epochs": "7"}, headers=HTML
        )

        run = latest_run(session)
        assert run.preset == "photographs"
        assert run.config == configs.config_for(
            "clarinet-plus", "pc", "photographs", {"epochs": 7}, looks="photographs"
        )

    def test_a_target_that_cannot_work_is_told_beside_it(
        self, client: TestClient, session: Session, storage: FolderStorage, campaign: Campaign
    ) -> None:
        trees = make_dataset(session, storage, class_names=["oak", "elm"], name="Trees")
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"

        response = client.post(url, data={"seeds": "0", "target_dataset_id": str(trees.id)}, headers=HTML)

        assert response.status_code == 422
        assert "has oak, elm: none in common." in unescape(response.text)
        assert 'id="target_dataset_id-error"' in response.text

    def test_another_recipe_brings_its_values_though_the_form_was_not_reloaded(
        self, client: TestClient, session: Session, campaign: Campaign, target: Dataset
    ) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"
        typed = inputs_of(client.get(url, headers=HTML).text)
        assert typed["target_dataset_id"] == str(target.id)

        client.post(url, data=typed | {"recipe": "clarinet/paper", "config.epochs": "70"}, headers=HTML)

        run = latest_run(session)
        assert (run.method, run.config["length"]["epochs"]) == ("clarinet", 70)

    def test_what_is_wrong_stands_beside_its_field_and_what_was_typed_stays(
        self, client: TestClient, campaign: Campaign, target: Dataset
    ) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"
        typed = {"target_dataset_id": str(target.id), "seeds": "1 1", "recipe": "clarinet/paper"}

        wrong = {"config.epochs": "none", "config.batch_size": "1"}
        response = client.post(url, data=typed | wrong, headers=HTML)

        assert response.status_code == 422
        assert "Epochs is 'none', but must be a whole number." in unescape(response.text)
        assert "Batch size is 1, but must lie between 2 and 4096." in response.text
        assert 'value="none"' in response.text
        again = client.post(url, data=typed, headers=HTML)
        assert again.status_code == 422
        assert "Each seed can be given once" in again.text

    def test_a_note_is_kept_with_the_run_or_refused_beside_its_field(
        self, client: TestClient, session: Session, campaign: Campaign, target: Dataset
    ) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"
        typed = inputs_of(client.get(url, headers=HTML).text) | {"target_dataset_id": str(target.id)}

        refused = client.post(url, data=typed | {"note": "x" * 501}, headers=HTML)
        started = client.post(url, data=typed | {"note": "why\r\nnot"}, headers=HTML)

        assert refused.status_code == 422
        assert 'id="note-error">At most 500 characters fit here.' in refused.text
        assert "x" * 501 in refused.text
        assert started.status_code == 303
        assert latest_run(session).note == "why\nnot"

    def test_processes_are_kept_with_the_run_or_refused_beside_their_field(
        self,
        client: TestClient,
        session: Session,
        storage: FolderStorage,
        campaign: Campaign,
        target: Dataset,
    ) -> None:
        street = make_dataset(session, storage, looks="photographs", name="Street")
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"
        typed = inputs_of(client.get(url, headers=HTML).text) | {"target_dataset_id": str(target.id)}

        many, words = (client.post(url, data=typed | {"processes": it}, headers=HTML) for it in ("65", "two"))
        keeps = {"target_dataset_id": str(street.id), "processes": "2"}
        kept = client.post(url, data=typed | keeps, headers=HTML)
        empty = client.post(url, data=typed | {"processes": ""}, headers=HTML)
        alone = latest_run(session)
        started = client.post(url, data=typed | {"processes": "2"}, headers=HTML)

        run = latest_run(session)
        refusal = 'id="processes-error">Please give a whole number from 1 to 64.'
        assert (many.status_code, refusal in many.text, words.status_code) == (422, True, 422)
        assert "<details open>" in many.text
        assert kept.status_code == 422
        assert 'id="processes-error">Preset photographs computes the features of each image once' in kept.text
        assert (empty.status_code, alone.processes) == (303, 1)
        assert (started.status_code, run.processes) == (303, 2)
        assert "2 processes share each batch" in client.get(f"/runs/{run.id}", headers=HTML).text
        again = inputs_of(client.get(url, params={"like": str(run.id)}, headers=HTML).text)
        assert again["processes"] == "2"

    def test_settings_stand_in_their_groups_with_the_presets_values_in_words(
        self, client: TestClient, campaign: Campaign
    ) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"
        page = client.get(url, params={"recipe": "clarinet/paper"}, headers=HTML).text

        groups = re.findall(r"<legend><h2>(.*?)</h2></legend>", page)
        assert groups == [group.title for group in configs.form_groups()]
        assert "Preset: 0.00005." in page
        assert "Preset: no." in page
        assert "Preset: none." in page  # trained weights
        assert not re.search(r"Preset: (true|false|\S+e-\d+|)\.", page)

    def test_what_belongs_to_the_recipe_is_said_beside_the_recipe(
        self, client: TestClient, campaign: Campaign, target: Dataset
    ) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"
        whole = configs.preset_values("clarinet-plus", "digits", "digits")
        typed = {
            f"config.{field.name}": configs.written(whole[field.name]) for field in configs.form_fields()
        }

        response = client.post(
            url,
            data={"target_dataset_id": str(target.id), "seeds": "0"}
            | {"recipe": "gac/short", "loaded": "gac/short"}
            | typed,
            headers=HTML,
        )

        assert response.status_code == 422
        reason = re.search(r'<p class="error" id="recipe-error">(.*?)</p>', response.text)
        assert reason
        assert "clarinet-plus" in reason[1]

    def test_a_campaign_with_too_few_answers_says_how_many_are_missing(
        self, client: TestClient, session: Session, storage: FolderStorage, annotator: User, target: Dataset
    ) -> None:
        campaign = answered(session, storage, answers=5, by=annotator)
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"

        page = client.get(url, headers=HTML)
        refused = client.post(url, data=inputs_of(page.text) | {"target_dataset_id": str(target.id)})

        assert "until a run can start" in page.text
        assert '<button data-kind="primary" id="start" disabled="disabled">' in page.text
        assert "hx-disabled-elt" not in page.text  # which htmx would end by enabling the button
        assert refused.status_code == 422
        assert "until a run can start" in refused.text

    def test_every_method_can_be_chosen_and_is_explained(
        self, client: TestClient, campaign: Campaign
    ) -> None:
        page = unescape(client.get(f"/campaigns/{campaign.id}/runs/new", headers=HTML).text)

        for method, (title, sentence) in configs.methods().items():
            assert f'value="{method}/default"' in page
            assert f"<dt>{title}</dt><dd>{sentence}</dd>" in page

    def test_what_is_recommended_comes_first_in_words_and_the_chosen_method_is_explained(
        self, client: TestClient, campaign: Campaign
    ) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"
        page = unescape(client.get(url, headers=HTML).text)
        asked = {"recipe": "clarinet-ce/short"}
        part = unescape(client.get(url, params=asked, headers=HTML | {"HX-Request": "true"}).text)

        choices = page[page.index('<select id="recipe"') :].partition("</select>")[0]
        groups = re.findall(r'<optgroup label="([^"]+)">(.*?)</optgroup>', choices, re.DOTALL)
        assert [title for title, _ in groups] == ["Recommended", *(t for t, _ in configs.methods().values())]
        first = re.findall(r">([^<>]+)</option>", groups[0][1])
        assert first[0] == "CLARINET plus, what fits the images"
        assert "CLARINET plus, for photographs, without trained weights" in first
        assert '"clarinet-ce/short">CLARINET with L_CE, shortened</option>' in choices
        assert choices.count(" selected>") == 1
        assert f'id="about" aria-live="polite">{configs.methods()["clarinet-plus"][1]}</p>' in page
        assert f'id="about" hx-swap-oob="true">{configs.methods()["clarinet-ce"][1]}</p>' in part
        assert '<button data-kind="primary" id="start">' not in page  # there is no target yet

    def test_a_method_that_cannot_use_the_labels_says_so_beside_them(
        self, client: TestClient, campaign: Campaign, target: Dataset
    ) -> None:
        typed = {"target_dataset_id": str(target.id), "seeds": "0", "recipe": "dann/paper", "setting": "cc"}

        response = client.post(f"/campaigns/{campaign.id}/runs/new", data=typed, headers=HTML)

        assert response.status_code == 422
        assert "choose the setting pc." in response.text

    def test_a_fragment_has_only_the_settings(self, client: TestClient, campaign: Campaign) -> None:
        url = f"/campaigns/{campaign.id}/runs/new"

        part = client.get(url, params={"recipe": "clarinet/paper"}, headers=HTML | {"HX-Request": "true"})

        assert "<html" not in part.text
        assert 'name="config.epochs"' in part.text
