"""Pages of runs, as a browser without JavaScript sees them."""

import hashlib
import re
from html import unescape
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.runs import configs, trials
from app.runs.models import Metric, Run
from app.settings import Settings
from app.storage import Storage
from tests.app.runs.conftest import ESTIMATE, TOO_FEW, answered
from tests.factories import NOW, make_dataset, make_run

HTML = {"accept": "text/html"}


def inputs_of(page: str) -> dict[str, str]:
    """Names and values of the form's inputs and selects, as a browser would send them."""
    values = {
        unescape(name): unescape(value)
        for name, value in re.findall(r'<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"', page)
    }
    for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options) or re.search(r'value="([^"]*)"', options)
        if chosen:
            values[name] = chosen[1]
    values.pop("csrf_token", None)
    return values


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
        assert run.config == configs.config_for("clarinet-plus", "cc", "digits-quick", {}, looks="digits")

    def test_the_sentence_and_the_values_follow_the_target(
        self, client: TestClient, session: Session, storage: Storage, campaign: Campaign, target: Dataset
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

    def test_a_recipe_for_other_images_is_told_before_and_after_it_starts(
        self, client: TestClient, session: Session, storage: Storage, campaign: Campaign
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

    def test_photographs_are_trained_though_the_form_was_loaded_for_digits(
        self, client: TestClient, session: Session, storage: Storage, campaign: Campaign, target: Dataset
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
            "clarinet-plus", "cc", "photographs", {"epochs": 7}, looks="photographs"
        )

    def test_a_target_that_cannot_work_is_told_beside_it(
        self, client: TestClient, session: Session, storage: Storage, campaign: Campaign
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
        typed = {f"config.{name}": configs.written(value) for name, value in whole.items()}

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
        self, client: TestClient, session: Session, storage: Storage, annotator: User, target: Dataset
    ) -> None:
        campaign = answered(session, storage, answers=5, by=annotator)
        session.commit()
        url = f"/campaigns/{campaign.id}/runs/new"

        page = client.get(url, headers=HTML)
        refused = client.post(url, data=inputs_of(page.text) | {"target_dataset_id": str(target.id)})

        assert "until a run can start" in page.text
        assert refused.status_code == 422
        assert "until a run can start" in refused.text

    def test_every_method_can_be_chosen_and_is_explained(
        self, client: TestClient, campaign: Campaign
    ) -> None:
        page = unescape(client.get(f"/campaigns/{campaign.id}/runs/new", headers=HTML).text)

        for method, (title, sentence) in configs.methods().items():
            assert f'value="{method}/default"' in page
            assert f"<dt>{title}</dt><dd>{sentence}</dd>" in page

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


class TestShowRun:
    def test_a_running_one_follows_its_events_and_its_fragment_is_in_the_page(
        self, client: TestClient, run: Run
    ) -> None:
        page = client.get(f"/runs/{run.id}", headers=HTML).text
        part = client.get(f"/runs/{run.id}", headers=HTML | {"HX-Request": "true"}).text

        assert f'data-live="http://testserver/api/v1/runs/{run.id}/events"' in page
        assert hero_of(part).startswith("75.0 % 1 seed on the target")
        assert "90.0" not in hero_of(part)
        assert "<html" not in part
        assert "data-live-done" not in part
        assert "No training worker was ever seen" in part
        headings = re.compile(r"<h[12]>.*?</h[12]>", re.DOTALL)
        assert headings.findall(part) == headings.findall(page)

    def test_the_configuration_of_any_version_is_shown_in_its_groups(
        self, client: TestClient, session: Session, run: Run
    ) -> None:
        now = client.get(f"/runs/{run.id}", headers=HTML).text
        run.config = {"method": "clarinet", "epochs": 7, "trade_off": 0.5, "discrepancy_weight": 0.0}
        session.commit()
        then = client.get(f"/runs/{run.id}", headers=HTML).text

        assert "<h3>Self training</h3>" in now
        assert '<dt title="average_decay">Average decay</dt><dd>' in now
        assert '<dt title="norm_per_domain">Norm per domain</dt><dd>' in now
        assert not re.search(r"<dd>(True|False|None|\d+\.0|\d+e-\d+)</dd>", now)
        assert re.findall(r"<h3>(\w+)</h3>", then) == ["Length", "Adaptation"]
        assert '<dt title="epochs">Epochs</dt><dd>7</dd>' in then
        assert '<dt title="adaptation_weight">Adaptation weight</dt><dd>0.5</dd>' in then

    def test_cancelling_from_the_page(self, client: TestClient, session: Session, run: Run) -> None:
        response = client.post(f"/runs/{run.id}/cancel", headers=HTML)

        session.expire_all()
        assert response.status_code == 303
        assert session.get_one(Run, run.id).cancel_requested_at is not None
        assert "Being cancelled" in client.get(f"/runs/{run.id}", headers=HTML).text

    def test_a_failed_one_says_why_in_words_and_does_not_poll(
        self, client: TestClient, session: Session, storage: Storage
    ) -> None:
        run = make_run(session, storage, train=2)
        claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
        assert claim is not None
        trials.fail_trial(session, claim, reason="The loss <b>grew</b>.\n\nlast lines", now=NOW)
        session.commit()
        session.expire_all()

        page = client.get(f"/runs/{run.id}", headers=HTML).text

        assert "Seed 0 failed: The loss &lt;b&gt;grew&lt;/b&gt;." in page
        assert "last lines" in page
        assert "data-live=" not in page

    def test_a_finished_one_shows_classes_confusion_and_simulated_share(
        self, client: TestClient, session: Session, storage: Storage
    ) -> None:
        run = make_run(session, storage, train=2, seeds=(0, 1))
        run.snapshot_facts = run.snapshot_facts | {"simulated_share": 0.25}
        target = session.get_one(Dataset, run.target_dataset_id)
        target.made, name = "regenerated, seed 0", target.name
        source = session.get_one(Dataset, session.get_one(Campaign, run.campaign_id).dataset_id)
        source.made, source_name = "drawn by hand", source.name
        for trial, accuracy in zip(run.trials, (0.9, 0.7), strict=True):
            claim = trials.claim_trial(session, trial.id, by="worker", now=NOW)
            assert claim is not None
            result = {
                "per_class_accuracy": [1.0, None],
                "confusion": [[9, 1], [0, 0]],
                "scored_on": 10,
                "merged_class": 1 if trial.seed else None,
            }
            trials.succeed_trial(session, claim, target_accuracy=accuracy, result=result, now=NOW)
        session.commit()
        session.expire_all()

        page = client.get(f"/runs/{run.id}", headers=HTML).text

        assert "25 % of these answers were simulated" in page
        assert f"Not the published images of {name}: regenerated, seed 0." in page
        assert f"Not the published images of {source_name}: drawn by hand." in page
        assert "2 seeds, 70.0 to 90.0 %, standard deviation 14.1" in page
        assert "80.0 % (70.0 to 90.0 %)" in client.get("/runs", headers=HTML).text
        assert "±" not in page
        assert ">18</td>" in page  # the two matrices added up
        merged = [line for line in page.splitlines() if "takes hardly any picture" in line]
        assert len(merged) == 1
        assert (
            f"Seed 1 takes hardly any picture of {name} for “{run.snapshot_facts['classes'][1]}”" in merged[0]
        )
        assert "Being cancelled" not in page


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

        assert 'href="http://testserver/weights"' in form
        assert annotator_client.get("/weights", headers=HTML).status_code == 403


class TestNotes:
    def test_a_note_is_written_shown_and_taken_away(self, client: TestClient, run: Run) -> None:
        bare = client.get(f"/runs/{run.id}", headers=HTML).text
        written = client.post(f"/runs/{run.id}/note", data={"note": "one\r\ntwo"}, headers=HTML)
        page = client.get(f"/runs/{run.id}", headers=HTML).text
        client.post(f"/runs/{run.id}/note", data={"note": ""}, headers=HTML)
        after = client.get(f"/runs/{run.id}", headers=HTML).text

        assert written.status_code == 303
        assert '<p class="lines">one\ntwo</p>' in page
        assert "Write a note" in bare
        assert "Change the note" in page
        assert 'class="lines"' not in bare + after

    def test_a_long_one_is_refused_and_what_was_typed_stays(self, client: TestClient, run: Run) -> None:
        refused = client.post(f"/runs/{run.id}/note", data={"note": "y" * 501}, headers=HTML)

        assert refused.status_code == 422
        assert 'id="note-error">At most 500 characters fit here.' in refused.text
        assert "y" * 501 in refused.text

    def test_hostile_text_is_only_text(self, client: TestClient, run: Run) -> None:
        hostile = "</textarea><script>alert(1)</script>{{ 7 * 7 }}\"' onload=x"
        client.post(f"/runs/{run.id}/note", data={"note": hostile}, headers=HTML)

        for path in (f"/runs/{run.id}", "/runs", "/journal"):
            page = client.get(path, headers=HTML).text
            assert "<script>alert" not in page
            assert "&lt;/textarea&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{ 7 * 7 }}" in page

    def test_the_list_shortens_it(self, client: TestClient, run: Run) -> None:
        client.post(f"/runs/{run.id}/note", data={"note": "word " * 90}, headers=HTML)

        page = client.get("/runs", headers=HTML).text

        assert page.count("word") < 17
        assert "word..." in page


class TestWithoutTestLabels:
    """Nothing measures the accuracy on such a target, and no estimate about the source takes its place."""

    @pytest.fixture
    def run(self, session: Session, storage: Storage) -> Run:
        target = make_dataset(session, storage, name="Streets", train=4, class_names=None)
        return make_run(session, storage, train=2, target=target)

    def page_of(self, client: TestClient, session: Session, run: Run, **figures: object) -> str:
        """The page after an epoch that told these."""
        session.add(
            Metric(
                trial_id=run.trials[0].id,
                epoch=1,
                epochs=2,
                step=3,
                seconds=1.5,
                losses={},
                recorded_at=NOW,
                **figures,
            )
        )
        session.commit()
        session.expire_all()
        return unescape(client.get(f"/runs/{run.id}", headers=HTML).text)

    def test_the_headline_says_so_from_the_beginning(
        self, client: TestClient, session: Session, run: Run
    ) -> None:
        session.commit()

        page, runs = (client.get(path, headers=HTML).text for path in (f"/runs/{run.id}", "/runs"))

        assert hero_of(page) == "Not measured on the target: Streets has no test labels of these classes"
        assert "not measured" in runs
        assert "data-curve-for" not in page

    def test_an_estimate_stands_smaller_with_its_interval(
        self, client: TestClient, session: Session, run: Run
    ) -> None:
        page = self.page_of(client, session, run, source_estimate=ESTIMATE)

        assert hero_of(page).startswith("Not measured")
        assert (
            "<dt>Estimated on the source</dt><dd>90.0 %</dd><dd>80.0 to 95.0 % with 95 % confidence" in page
        )
        assert "from 300 held-out “no” answers" in page
        assert "90.0 % (80.0 to 95.0 %)" in page  # of the seed
        assert "on the source, estimated from held-out “no” answers, with its 95 % interval" in page

    def test_too_few_held_out_answers_are_counted_instead(
        self, client: TestClient, session: Session, run: Run
    ) -> None:
        page = self.page_of(client, session, run, source_estimate=TOO_FEW)

        assert (
            "<dd>An estimate needs 200 held-out answers; there are 96: about 2 080 more “no” answers of the "
            "campaign</dd>"
        ) in page
        assert "data-curve-for" not in page

    def test_a_figure_of_an_earlier_version_follows_the_same_rule(
        self, client: TestClient, session: Session, run: Run
    ) -> None:
        page = self.page_of(
            client, session, run, source_accuracy_estimate=-0.499, source_accuracy_error=0.469
        )

        assert hero_of(page).startswith("Not measured")
        assert "49.9" not in page
        assert "46.9" not in page
        assert "An estimate needs 200 held-out answers" in page


def hero_of(page: str) -> str:
    """The words of the largest type and below it."""
    found = re.search(r'<p class="hero">(.*?)</p>', page, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def test_the_list_shows_runs_or_what_a_run_is(client: TestClient, session: Session, run: Run) -> None:
    assert f"/runs/{run.id}" in client.get("/runs", headers=HTML).text
    session.execute(delete(Run))
    session.commit()
    assert "No run yet" in client.get("/runs", headers=HTML).text
