"""Pages of runs, as a browser without JavaScript sees them."""

import re
from datetime import timedelta
from html import unescape

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.datasets.models import Dataset, DatasetVersion
from app.runs import trials
from app.runs.faults import Fault
from app.runs.logs import LOG_BYTES, log_key
from app.runs.models import Run, Trial, TrialState
from app.stores.folder import FolderStorage
from clarinet.recipes.doing import Doing
from tests.app.registry.conftest import publish
from tests.app.runs.conftest import ESTIMATE, TOO_FEW, reported
from tests.factories import NOW, make_dataset, make_run

HTML = {"accept": "text/html"}


class TestShowRun:
    def test_a_running_one_follows_the_stream_and_its_fragment_is_in_the_page(
        self, client: TestClient, run: Run
    ) -> None:
        page = client.get(f"/runs/{run.id}", headers=HTML).text
        part = client.get(f"/runs/{run.id}", headers=HTML | {"HX-Request": "true"}).text

        assert f'data-live="/live" data-run="{run.id}"' in page
        assert hero_of(part).startswith("75.0 % 95 % interval 58.8 to 87.3 %; 1 seed on the target, ")
        assert "90.0" not in hero_of(part)
        assert "<dt>Chance</dt><dd>50.0 %</dd>" in part
        assert '<abbr title="setting CC">learns from “no” answers alone</abbr>' in part
        assert "What to do next" not in part
        assert "<html" not in part
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

    def test_what_a_trial_is_doing_is_said_where_its_epochs_are(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        run = make_run(session, storage, seeds=(3, 4), train=2)
        claim = trials.claim_trial(session, run.trials[1].id, by="worker", now=NOW)
        assert claim is not None
        trials.record_doing(session, claim, Doing("features", 1024, 3718))
        session.commit()
        session.expire_all()

        page = client.get(f"/runs/{run.id}", headers=HTML).text
        part = client.get(f"/runs/{run.id}", headers=HTML | {"HX-Request": "true"}).text

        said = '<p class="quiet">Seed 4: Computing the features of the images: 1\u0020024 of 3\u0020718.</p>'
        assert said in part
        assert page.count(said) == 1
        assert page.count("Computing the features") == 1
        assert "aria-live" not in part  # every two seconds would be chatter

    def test_a_run_of_one_seed_needs_no_seed_beside_what_it_is_doing(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        run = make_run(session, storage, train=2)
        claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
        assert claim is not None
        trials.record_doing(session, claim, Doing("fine-tuning", 40, 150))
        session.commit()
        session.expire_all()

        page = client.get(f"/runs/{run.id}", headers=HTML).text

        assert '<p class="quiet">Fine-tuning the network: 40 of 150 steps.</p>' in page

    def test_what_set_a_seed_back_is_told_while_it_is_tried_again_until_an_epoch_ends(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        run = make_run(session, storage, train=2)
        trial = run.trials[0]
        first = trials.claim_trial(session, trial.id, by="worker", now=NOW)
        assert first is not None
        reason = "The weights of x could not be downloaded from a.example: no network. Put a file there."
        trials.set_back(session, first, reason=reason, fault=Fault.MACHINE, by="worker", now=NOW)
        again = trials.claim_trial(session, trial.id, by="worker", now=NOW + timedelta(minutes=1))
        assert again is not None
        session.commit()
        session.expire_all()
        page, runs = (client.get(path, headers=HTML).text for path in (f"/runs/{run.id}", "/runs"))
        report = trials.Report(
            epoch=1, epochs=2, step=3, seconds=1.5, losses={}, target_accuracy=None, source_estimate=None
        )
        trials.record_epoch(session, again, report, now=NOW + timedelta(minutes=2))
        session.commit()
        session.expire_all()
        after, runs_after = (client.get(path, headers=HTML).text for path in (f"/runs/{run.id}", "/runs"))

        told = (
            f"Seed 0 is being tried again: a worker could not train it, through no fault of the run. {reason}"
        )
        assert told in page
        assert "It was set back 1 time of 6." in page
        assert "set back: The weights of x could not be downloaded from a.example: no network</small>" in runs
        assert "could not" not in after + runs_after

    def test_cancelling_from_the_page(self, client: TestClient, session: Session, run: Run) -> None:
        response = client.post(f"/runs/{run.id}/cancel", headers=HTML)

        session.expire_all()
        assert response.status_code == 303
        assert session.get_one(Run, run.id).cancel_requested_at is not None
        page = client.get(f"/runs/{run.id}", headers=HTML).text
        assert "Being cancelled" in page
        assert "<p>Its trials end within seconds.</p>" in page, "and not how long it would have trained"

    def test_a_failed_one_says_why_in_words_and_does_not_poll(
        self, client: TestClient, session: Session, storage: FolderStorage
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
        self, client: TestClient, session: Session, storage: FolderStorage
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

        assert "25 % of the answers it learnt from were simulated" in page
        assert f"Not the published images of {name}: regenerated, seed 0." in page
        assert f"Not the published images of {source_name}: drawn by hand." in page
        assert "2 seeds, 70.0 to 90.0 %, standard deviation 14.1" in page
        assert "80.0 % (70.0 to 90.0 %)" in client.get("/runs", headers=HTML).text
        assert "±" not in page
        assert ">18</a></td>" in page  # the two matrices added up
        merged = [line for line in page.splitlines() if "takes hardly any picture" in line]
        assert len(merged) == 1
        assert (
            f"Seed 1 takes hardly any picture of {name} for “{run.snapshot_facts['classes'][1]}”" in merged[0]
        )
        assert "Being cancelled" not in page
        assert "<progress" not in page
        assert f'href="/models?run_id={run.id}"' in page

    def test_one_that_cannot_be_told_from_guessing_says_so_wherever_its_accuracy_stands(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        runs = [make_run(session, storage, train=2) for _ in range(2)]
        for run, accuracy in zip(runs, (0.5, 1.0), strict=True):
            claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
            assert claim is not None
            publish(session, storage, run.trials[0], target_accuracy=accuracy)
            trials.succeed_trial(session, claim, target_accuracy=accuracy, result={"scored_on": 8}, now=NOW)
        session.commit()
        guess, good = runs
        ids = [session.scalars(select(Trial.id).where(Trial.run_id == run.id)).one() for run in runs]
        session.expire_all()

        pages = [client.get(f"/runs/{run.id}", headers=HTML).text for run in (guess, good)]
        models = [client.get(f"/trials/{id_}/model", headers=HTML, follow_redirects=True).text for id_ in ids]
        compared = client.get(f"/runs/compare?run={guess.id}&run={good.id}", headers=HTML).text

        told = "This cannot be told from guessing among 2 classes"
        assert '<abbr title="method clarinet-plus">CLARINET plus</abbr>, ' in models[0]
        assert '<abbr title="preset digits-quick">for digits, quick</abbr> · ' in models[0]
        listed = client.get("/models", headers=HTML).text
        assert listed.count('<abbr title="setting CC">“no” answers</abbr>') == 2
        assert [told in page for page in (*pages, *models)] == [True, False, True, False]
        assert "<h2>What may be wrong</h2>" in pages[0]
        assert "or download it" not in pages[0]
        assert "or download it" in pages[1]
        assert all("; chance 50.0 % on the target" in hero_of(page) for page in models)
        assert compared.count("chance 50.0 %") == 2
        for path in ("/runs", "/models"):
            assert client.get(path, headers=HTML).text.count("no better than chance") == 1

    def test_a_cancelled_one_says_how_far_it_came_and_promises_no_figure(
        self, client: TestClient, session: Session, run: Run
    ) -> None:
        session.execute(update(Trial).values(state=TrialState.CANCELLED))
        session.commit()

        page = client.get(f"/runs/{run.id}", headers=HTML).text

        assert "<progress" not in page
        assert "after the first epoch" not in page
        assert "1 of 4 epochs" in page
        assert hero_of(page) == "Not measured on the target: no seed has ended well"

    def test_how_it_trained_is_a_part_of_its_own(self, client: TestClient, run: Run) -> None:
        page = unescape(client.get(f"/runs/{run.id}?part=training", headers=HTML).text)
        part = client.get(f"/runs/{run.id}?part=training", headers=HTML | {"HX-Request": "true"}).text

        assert f'data-run="{run.id}/training"' in page
        assert "<h2>Loss: complementary</h2>" in part
        assert "<h2>Steps a second</h2>" in part  # 3 steps in 1.5 seconds
        assert '"unit": "number", "values": [2.0]' in page or '"values": [2.0' in page
        assert "Learning rate" not in part  # which this one did not tell
        assert "Seeds</h2>" not in part
        assert client.get(f"/runs/{run.id}?part=other", headers=HTML).status_code == 422

    def test_the_end_of_its_logs_is_shown_whatever_became_of_it(
        self, client: TestClient, session: Session, storage: FolderStorage, run: Run
    ) -> None:
        path = storage.path(log_key(session.scalars(select(Trial.id).where(Trial.seed == 0)).one()))
        path.parent.mkdir(parents=True)
        path.write_text("first\n" + "x" * LOG_BYTES + "\n<b>last</b>\n")

        page = client.get(f"/runs/{run.id}?part=log", headers=HTML).text

        assert "&lt;b&gt;last&lt;/b&gt;" in page
        assert "xxx" not in page
        assert "Nothing was written, or the log is gone." in page  # of the other seed


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
    def run(self, session: Session, storage: FolderStorage) -> Run:
        target = make_dataset(session, storage, name="Streets", train=4, class_names=None)
        return make_run(session, storage, train=2, target=target)

    def page_of(self, client: TestClient, session: Session, run: Run, **figures: object) -> str:
        """The page after an epoch that told these."""
        reported(session, run, **figures)
        session.commit()
        session.expire_all()
        return unescape(client.get(f"/runs/{run.id}", headers=HTML).text)

    def test_the_headline_says_so_from_the_beginning(
        self, client: TestClient, session: Session, run: Run
    ) -> None:
        session.commit()

        page, runs = (client.get(path, headers=HTML).text for path in (f"/runs/{run.id}", "/runs"))

        told = "its images came without classes; once a run has ended, people can judge its predictions"
        assert hero_of(page) == f"Not measured on the target, Streets: {told}"
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
        few = self.page_of(client, session, run, source_estimate=TOO_FEW)
        source = select(DatasetVersion).where(DatasetVersion.dataset_id == run.source_dataset_id)
        session.scalars(source).one().train_count = 10_000
        session.commit()
        page = client.get(f"/runs/{run.id}", headers=HTML).text

        assert "there are 96, and the source has too few pictures for more: let people judge" in few
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
