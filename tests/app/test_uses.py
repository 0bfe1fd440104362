"""What stands in the way of a deletion or a name is said: by name, with links, for programs and people."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.db import Base
from app.errors import Uses
from app.stores.folder import FolderStorage
from app.uses import MOST_NAMED, itself, name_column, restricting, uses_of
from tests.factories import make_campaign, make_dataset, make_run

API, HTML = "/api/v1", {"accept": "text/html"}
pytestmark = pytest.mark.dialects


def test_a_dataset_names_its_campaigns_and_the_runs_that_adapt_to_it(
    session: Session, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=4)
    source, target = (session.get_one(Dataset, id_) for id_ in (run.source_dataset_id, run.target_dataset_id))
    second = make_campaign(session, dataset=source, state="draft")
    first = session.get_one(Campaign, run.campaign_id)

    assert {(use.kind, use.id, use.name) for use in uses_of(source).named} == {
        ("campaign", first.id, first.name),
        ("campaign", second.id, second.name),
    }
    assert [(use.kind, use.id, use.name) for use in uses_of(target).named] == [
        ("run", run.id, f"Run {run.number}")
    ]
    assert uses_of(source).in_words == "2 campaigns"
    assert [use.id for use in uses_of(first).named] == [run.id]
    assert not uses_of(second)


def test_of_many_the_first_are_named_and_all_are_counted(session: Session) -> None:
    campaign = make_campaign(session, state="draft")
    dataset = session.get_one(Dataset, campaign.dataset_id)
    for _ in range(MOST_NAMED):
        make_campaign(session, dataset=dataset, state="draft")

    found = uses_of(dataset)

    assert len(found.named) == MOST_NAMED
    assert (found.counts, found.left_out) == ({"campaign": MOST_NAMED + 1}, 1)


@pytest.mark.parametrize("name", ["dataset", "campaign", "run"])
def test_every_table_that_keeps_one_from_being_deleted_has_names(name: str) -> None:
    tables = [other for other, _ in restricting(Base.metadata.tables[name])]

    assert tables
    assert [table.name for table in tables if name_column(table) is None] == []


def test_a_dataset_in_use_says_by_what_to_a_program(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    dataset = make_dataset(session, storage)
    campaign = make_campaign(session, dataset=dataset)
    session.commit()

    answer = client.delete(f"{API}/datasets/{dataset.id}")

    assert answer.status_code == 409
    problem = answer.json()
    assert problem["type"] == "/problems/dataset-in-use"
    assert f'"{dataset.name}" cannot be deleted. Its images are needed by 1 campaign.' in problem["detail"]
    assert problem["used_by"] == [
        {
            "kind": "campaign",
            "id": str(campaign.id),
            "name": campaign.name,
            "url": f"{API}/campaigns/{campaign.id}",
        }
    ]
    assert problem["used_by_left_out"] == 0
    assert client.get(problem["used_by"][0]["url"]).json()["name"] == campaign.name


def test_a_person_gets_links_and_no_button_that_cannot_work(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=4, state="succeeded")
    session.commit()
    at = f"/datasets/{run.target_dataset_id}"

    page = client.get(at, headers=HTML).text
    refused = client.post(f"{at}/delete", headers=HTML)

    assert f'href="/runs/{run.id}"' in page
    assert "It cannot be deleted while 1 run uses it." in page
    assert "Delete this dataset" not in page
    assert refused.status_code == 409
    assert f'<a href="/runs/{run.id}">Run {run.number}</a>' in refused.text


def test_a_campaign_that_has_started_names_what_rests_on_it(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=4)
    session.commit()
    at = f"{API}/campaigns/{run.campaign_id}"

    kept = client.delete(at).json()
    fixed = client.patch(at, json={"overlap": 2}).json()

    assert [use["id"] for use in kept["used_by"]] == [str(run.id)]
    assert [use["url"] for use in fixed["used_by"]] == [at]


def test_a_name_in_use_says_whose_it_is(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, state="draft")
    session.commit()

    body = {"name": campaign.name, "dataset_id": str(campaign.dataset_id)}
    problem = client.post(f"{API}/campaigns", json=body).json()

    assert problem["type"] == "/problems/campaign-name-taken"
    assert [use["id"] for use in problem["used_by"]] == [str(campaign.id)]


def test_other_problems_carry_no_uses(client: TestClient) -> None:
    problem = client.get(f"{API}/nothing").json()

    assert "used_by" not in problem


def test_a_thing_can_be_named_itself(session: Session) -> None:
    campaign = make_campaign(session)

    assert itself(campaign).in_words == "1 campaign"
    assert not Uses()
