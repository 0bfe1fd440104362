"""Names, versions and aliases of models, and where they come from."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.journal.models import Action, Entry
from app.registry import aliases, naming
from app.registry.errors import AliasNotFound
from app.registry.lineage import lineages
from app.registry.models import Model, ModelVersion
from app.runs.models import Run
from app.stores.folder import FolderStorage
from tests.app.registry.conftest import publish
from tests.factories import NOW, make_run, make_user

API, HTML = "/api/v1", {"accept": "text/html"}
pytestmark = pytest.mark.dialects


@pytest.fixture
def pair(session: Session, storage: FolderStorage) -> list[Model]:
    """Two models of one run."""
    run = make_run(session, storage, train=2, seeds=(0, 1), state="succeeded")
    models = [publish(session, storage, trial) for trial in run.trials]
    session.commit()
    return models


def said(session: Session, action: Action) -> list[dict[str, object]]:
    return [
        entry.details
        for entry in session.scalars(select(Entry).where(Entry.action == action).order_by(Entry.id))
    ]


def test_a_model_is_the_next_version_of_its_campaigns_name(session: Session, pair: list[Model]) -> None:
    run = session.get_one(Run, pair[0].run_id)
    lineage = lineages(session, [run])[run.id]

    assert [(model.name, model.version) for model in pair] == [(lineage.campaign, 1), (lineage.campaign, 2)]


def test_lineage_names_run_labels_and_both_datasets_by_the_digests_of_their_pages(
    client: TestClient, session: Session, model: Model
) -> None:
    run = session.get_one(Run, model.run_id)
    told = client.get(f"{API}/models/{model.id}").json()
    page = client.get(f"/models/{model.id}", headers=HTML).text

    lineage = told["lineage"]
    assert (lineage["run_number"], lineage["label_snapshot"]) == (run.number, run.snapshot_digest)
    for domain, dataset_id in (("source", run.source_dataset_id), ("target", run.target_dataset_id)):
        dataset = client.get(f"{API}/datasets/{dataset_id}").json()
        assert lineage[domain]["digest"] == dataset["digest"]
        assert (lineage[domain]["name"], lineage[domain]["version"]) == (dataset["name"], 1)
        assert dataset["digest"] in page
    assert run.snapshot_digest in page
    assert told["tensors_digest"] == "7e" * 32
    assert told["tensors_digest"] in page


def test_models_of_equal_weights_name_each_other(client: TestClient, pair: list[Model]) -> None:
    page = client.get(f"/models/{pair[1].id}", headers=HTML).text

    assert f'the same weights as <a href="/models/{pair[0].id}">{pair[0].title}</a>' in page


def test_an_admin_registers_a_model_under_a_name_and_numbers_are_never_given_twice(
    client: TestClient, session: Session, pair: list[Model]
) -> None:
    at = [f"{API}/models/{model.id}" for model in pair]
    campaign = pair[0].name

    first = client.patch(at[1], json={"name": "Shop", "notes": "of spring"}).json()
    back = client.patch(at[1], json={"name": campaign}).json()
    again = client.patch(at[1], json={"name": campaign}).json()
    listed = client.get(f"{API}/models", params={"name": campaign}).json()["items"]
    borne = [name["name"] for name in client.get(f"{API}/model-names").json()["items"]]
    anew = client.patch(at[0], json={"name": "Shop"}).json()

    assert (first["name"], first["version"], first["notes"]) == ("Shop", 1, "of spring")
    assert (back["name"], back["version"]) == (again["name"], again["version"]) == (campaign, 3)
    assert {item["version"] for item in listed} == {1, 3}
    assert (borne, anew["version"]) == ([campaign], 2)
    assert [line["before"] for line in said(session, Action.MODEL_CHANGED)] == [
        f"{campaign}, version 2",
        "Shop, version 1",
        f"{campaign}, version 1",
    ]


def test_what_an_earlier_worker_publishes_beside_this_server_gets_its_version(
    session: Session, pair: list[Model]
) -> None:
    session.execute(delete(ModelVersion).where(ModelVersion.model_id == pair[0].id))

    naming.name_the_nameless(session, now=NOW)
    session.expire_all()

    assert [model.version for model in pair] == [3, 2]


def test_an_alias_stands_for_one_version_and_its_move_is_one_act(
    client: TestClient, session: Session, pair: list[Model]
) -> None:
    name = pair[0].name
    put = [client.put(f"{API}/models/{model.id}/aliases/production") for model in (*pair, pair[1])]
    found = client.get(f"{API}/models", params={"name": name, "alias": "production"}).json()["items"]
    [listed] = client.get(f"{API}/model-names").json()["items"]
    kept = client.delete(f"{API}/models/{pair[1].id}")
    renamed = client.patch(f"{API}/models/{pair[1].id}", json={"name": "Shop"})
    not_its = client.delete(f"{API}/models/{pair[0].id}/aliases/production")
    removed = client.delete(f"{API}/models/{pair[1].id}/aliases/production")

    assert [answer.json()["aliases"] for answer in put] == [["production"]] * 3
    assert [item["id"] for item in found] == [str(pair[1].id)]
    assert listed["aliases"] == {"production": str(pair[1].id)}
    assert (listed["versions"], listed["last_version"]) == (2, 2)
    assert (kept.status_code, renamed.status_code, not_its.status_code) == (409, 409, 404)
    assert kept.json()["type"] == "/problems/model-has-aliases"
    assert removed.status_code == 204
    with pytest.raises(AliasNotFound):
        aliases.model_under(session, name, "production", by=make_user(session, role="admin"))
    moved = said(session, Action.ALIAS_MOVED)
    assert [(line["version"], line.get("before")) for line in moved] == [(1, None), (2, "version 1")]
    assert [line["version"] for line in said(session, Action.ALIAS_REMOVED)] == [2]


@pytest.mark.parametrize("alias", ["Production", "1", "a_b", "-a", "a" * 41, "%0Aa"])
def test_an_alias_is_a_plain_word(client: TestClient, model: Model, alias: str) -> None:
    assert client.put(f"{API}/models/{model.id}/aliases/{alias}").status_code == 422


def test_the_page_names_writes_notes_and_moves_aliases(client: TestClient, pair: list[Model]) -> None:
    at = f"/models/{pair[1].id}"
    named = client.post(f"{at}/description", data={"name": "Shop <1>", "notes": "why"}, headers=HTML)
    odd = client.post(f"{at}/aliases", data={"alias": "Not a word"}, headers=HTML)
    put = client.post(f"{at}/aliases", data={"alias": "production"}, headers=HTML)
    refused = client.post(f"{at}/description", data={"name": "Another"}, headers=HTML)
    page = client.get(at, headers=HTML).text
    listed = client.get("/models", params={"alias": "production"}, headers=HTML).text
    removed = client.post(f"{at}/aliases/production/remove", headers=HTML)

    assert (named.status_code, put.status_code, removed.status_code) == (303, 303, 303)
    assert (odd.status_code, refused.status_code) == (422, 422)
    assert 'value="Not a word"' in odd.text
    assert "cannot be renamed while it is &#39;production&#39;" in refused.text
    assert "Shop &lt;1&gt;, <small>version 1</small>" in page
    assert '<p class="lines">why</p>' in page
    assert "It cannot be deleted while it is production" in page
    assert (f"/models/{pair[1].id}" in listed, f"/models/{pair[0].id}" in listed) == (True, False)
