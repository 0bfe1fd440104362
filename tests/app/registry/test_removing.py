"""What nobody needs can go, in an order that each refusal tells; archived, it is only left out of lists."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.annotation.models import Answer, Question
from app.campaigns.models import Campaign, CampaignState
from app.datasets.models import Dataset, Example
from app.journal.models import Action, Entry
from app.registry.models import Model
from app.runs import service as runs
from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.trials import trial_prefix
from app.stores.folder import FolderStorage
from tests.app.registry.conftest import publish
from tests.factories import NOW, answer, make_campaign, make_dataset, make_run, questions_of

API, HTML = "/api/v1", {"accept": "text/html"}
pytestmark = pytest.mark.dialects


def count(session: Session, what: type[object]) -> int:
    return session.scalar(select(func.count()).select_from(what)) or 0


def actions(session: Session) -> list[Action]:
    return list(session.scalars(select(Entry.action).order_by(Entry.id)))


def test_a_campaign_and_its_datasets_go_once_its_failed_run_has_gone(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=4, state="failed")
    log = storage.path(f"{trial_prefix(run.trials[0].id)}/log.txt")
    storage.put(f"{trial_prefix(run.trials[0].id)}/log.txt", b"why")
    session.add(
        Metric(trial_id=run.trials[0].id, epoch=1, epochs=2, step=1, seconds=1.0, losses={}, recorded_at=NOW)
    )
    campaign = session.get_one(Campaign, run.campaign_id)
    session.commit()
    at = {
        "run": f"{API}/runs/{run.id}",
        "campaign": f"{API}/campaigns/{run.campaign_id}",
        "source": f"{API}/datasets/{run.source_dataset_id}",
        "target": f"{API}/datasets/{run.target_dataset_id}",
    }

    opened = client.delete(at["campaign"])
    campaign.state = CampaignState.CLOSED
    session.commit()
    used = {name: client.delete(at[name]) for name in ("campaign", "source", "target")}
    gone = [client.delete(path).status_code for path in at.values()]

    assert (opened.status_code, opened.json()["type"]) == (409, "/problems/wrong-campaign-state")
    assert {answer.status_code for answer in used.values()} == {409}
    assert used["campaign"].json()["type"] == "/problems/campaign-in-use"
    assert [use["url"] for use in used["campaign"].json()["used_by"]] == [at["run"]]
    assert [use["kind"] for use in used["source"].json()["used_by"]] == ["campaign"]
    assert [use["kind"] for use in used["target"].json()["used_by"]] == ["run"]
    assert gone == [204] * 4
    assert [count(session, kind) for kind in (Run, Trial, Metric, Campaign, Dataset, Example)] == [0] * 6
    assert not log.exists()


def test_a_closed_campaign_goes_with_all_that_people_did_in_it_and_the_journal_stays(
    client: TestClient, session: Session
) -> None:
    kept, campaign = make_campaign(session), make_campaign(session)
    answer(session, kept, questions_of(session, kept)[0].id)
    answer(session, campaign, questions_of(session, campaign)[0].id)
    campaign.state = CampaignState.CLOSED
    session.commit()

    page = client.get(f"/campaigns/{campaign.id}", headers=HTML).text
    gone = client.post(f"/campaigns/{campaign.id}/delete", headers=HTML)

    assert f"Delete “{campaign.name}” with its answers" in page
    assert gone.status_code == 303
    assert session.scalars(select(Question.campaign_id).distinct()).all() == [kept.id]
    assert count(session, Answer) == 1
    told = session.scalars(select(Entry).where(Entry.action == Action.CAMPAIGN_DELETED)).one()
    assert told.details == {
        "campaign": campaign.name,
        "questions": campaign.question_count,
        "commitment": campaign.commitment,
    }


def test_a_run_goes_with_its_models_but_for_one_that_an_alias_stands_for(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=2, seeds=(0, 1), state="succeeded")
    models = [publish(session, storage, trial) for trial in run.trials]
    keys, aliased = [model.key for model in models], models[1].id
    title = models[1].title
    session.commit()
    client.put(f"{API}/models/{models[1].id}/aliases/production")

    refused = client.delete(f"{API}/runs/{run.id}")
    asked = client.get(f"/runs/{run.id}/delete", headers=HTML).text
    client.delete(f"{API}/models/{models[1].id}/aliases/production")
    confirmed = client.get(f"/runs/{run.id}/delete", headers=HTML).text
    gone = client.post(f"/runs/{run.id}/delete", headers=HTML)

    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/run-in-use")
    [use] = refused.json()["used_by"]
    assert (use["kind"], use["url"]) == ("model", f"{API}/models/{aliased}")
    assert use["name"] == f"{title}: production"
    assert "It cannot be deleted while 1 model uses it." in asked
    assert "and 2 models of it," in confirmed
    assert gone.status_code == 303
    assert count(session, Model) == 0
    assert not any(storage.path(key).exists() for key in keys)


def test_a_run_that_trains_stays_and_no_number_is_given_twice(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=2)
    session.commit()
    refused = client.delete(f"{API}/runs/{run.id}")
    run.trials[0].state = TrialState.CANCELLED
    session.commit()
    page = client.get(f"/runs/{run.id}", headers=HTML).text
    gone = client.delete(f"{API}/runs/{run.id}")
    twin = Run(
        campaign_id=run.campaign_id,
        target_dataset_id=run.target_dataset_id,
        method="dann",
        setting="cc",
        preset="short",
        config={},
        snapshot_digest=run.snapshot_digest,
        snapshot_facts={},
        created_by_id=run.created_by_id,
        created_at=NOW,
        trials=[],
    )
    runs._add_numbered(session, twin)

    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/run-not-over")
    assert f"/runs/{run.id}/delete" in page
    assert gone.status_code == 204
    assert twin.number == run.number + 1


def test_a_deleted_model_leaves_its_run_and_its_files_are_gone(
    client: TestClient, session: Session, storage: FolderStorage, model: Model
) -> None:
    id_, trial_id, run_id, files = model.id, model.trial_id, model.run_id, storage.path(model.key)

    gone = client.post(f"/models/{id_}/delete", headers=HTML)

    assert gone.status_code == 303
    assert client.get(f"{API}/models/{id_}").status_code == 404
    assert client.get(f"/trials/{trial_id}/model", headers=HTML).status_code == 404
    assert client.get(f"/runs/{run_id}", headers=HTML).status_code == 200
    assert not files.exists()
    assert Action.MODEL_DELETED in actions(session)


def test_what_is_archived_is_left_out_of_lists_until_it_is_asked_for_or_brought_back(
    client: TestClient, session: Session, storage: FolderStorage, model: Model
) -> None:
    dataset, campaign = make_dataset(session, storage), make_campaign(session, state="closed")
    session.commit()
    things = {"datasets": dataset.id, "campaigns": campaign.id, "models": model.id}

    for kind, thing in things.items():
        at = f"{API}/{kind}/{thing}/archived"
        listed, archived = f"{API}/{kind}", f"{API}/{kind}?archived=true"

        def ids(address: str) -> set[str]:
            return {item["id"] for item in client.get(address).json()["items"]}

        put = [client.put(at) for _ in range(2)]
        assert put[0].json()["archived_at"] == put[1].json()["archived_at"] is not None
        assert str(thing) not in ids(listed)
        assert ids(archived) == {str(thing)}
        assert f"/{kind}/{thing}" in client.get(f"/{kind}?archived=true", headers=HTML).text
        assert f"/{kind}/{thing}" not in client.get(f"/{kind}", headers=HTML).text
        assert "Show it in lists again" in client.get(f"/{kind}/{thing}", headers=HTML).text
        assert client.post(f"/{kind}/{thing}/restore", headers=HTML).status_code == 303
        assert str(thing) in ids(listed)
        assert client.post(f"/{kind}/{thing}/archive", headers=HTML).status_code == 303
        assert client.delete(at).json()["archived_at"] is None

    told = [action for action in actions(session) if "archived" in action or "restored" in action]
    assert told == [
        action
        for kind in ("DATASET", "CAMPAIGN", "MODEL")
        for action in [Action[f"{kind}_ARCHIVED"], Action[f"{kind}_RESTORED"]] * 2
    ]


def test_only_where_nobody_answers_a_campaign_can_be_archived_and_opening_brings_it_back(
    client: TestClient, session: Session
) -> None:
    opened, draft = make_campaign(session), make_campaign(session, state="draft")
    session.commit()

    refused = client.put(f"{API}/campaigns/{opened.id}/archived")
    client.put(f"{API}/campaigns/{draft.id}/archived")
    client.post(f"{API}/campaigns/{draft.id}/open")

    assert refused.status_code == 409
    assert client.get(f"{API}/campaigns/{draft.id}").json()["archived_at"] is None


def test_forms_offer_no_archived_dataset_but_the_one_that_a_draft_has(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    dataset = make_dataset(session, storage)
    draft = make_campaign(session, dataset=dataset, state="draft")
    session.commit()
    client.put(f"{API}/datasets/{dataset.id}/archived")

    new = client.get("/campaigns/new", headers=HTML).text
    edited = client.get(f"/campaigns/{draft.id}/edit", headers=HTML).text

    assert (dataset.name in new, f'<option value="{dataset.id}" selected>' in edited) == (False, True)


@pytest.mark.parametrize(
    "path", ["runs/{id}", "models/{id}", "models/{id}/archived", "campaigns/{id}/archived"]
)
def test_annotators_delete_nothing(annotator_client: TestClient, model: Model, path: str) -> None:
    assert annotator_client.delete(f"{API}/{path.format(id=model.id)}").status_code in {403, 404}
