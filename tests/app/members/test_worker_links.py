"""An outside worker who comes by several links of a campaign: which answers count for which."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.members.models import OutsideWorker, WorkerVisit
from tests.app.members.joining import API, HTML, WORKER, answer, begin, token_of


def another_link(client: TestClient, campaign: Campaign, **wanted: object) -> str:
    """The path of a second link of the campaign."""
    made = client.post(
        f"{API}/campaigns/{campaign.id}/workers",
        json={"answers_needed": 2, "max_workers": 2, "code": "C2EFGH", "note": "Second"} | wanted,
    )
    return "/join/" + str(made.json()["url"]).rpartition("/")[2]


def paid(client: TestClient, campaign: Campaign) -> dict[str, tuple[int, bool]]:
    """Answers that count and whether they suffice, by the link's study."""
    told = client.get(f"{API}/campaigns/{campaign.id}/workers").json()
    studies = {link["id"]: link["note"] for link in told["links"]}
    return {
        studies[item["link_id"]]: (item["answers"], item["is_complete"])
        for item in told["workers"]
        if item["worker_id"] == WORKER
    }


@pytest.mark.dialects
def test_answers_count_for_the_link_by_which_they_were_given(
    browser: TestClient, client: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    other, code = another_link(client, campaign), f"/annotate/{campaign.id}/code"
    begin(browser, link)
    answer(browser, campaign, 2)

    begin(browser, other)

    shown = browser.get(code, headers=HTML).text
    assert "0 of 2 answers" in shown, "the other link's answers are paid for there"
    assert "C1ABCD" in shown
    assert "C2EFGH" not in shown
    answer(browser, campaign, 1)
    assert paid(client, campaign) == {"Pilot": (2, True), "Second": (1, False)}
    begin(browser, link)
    answer(browser, campaign, 1)
    begin(browser, other)
    answer(browser, campaign, 1)
    assert paid(client, campaign) == {"Pilot": (3, True), "Second": (2, True)}
    assert "C2EFGH" in browser.get(code, headers=HTML).text
    assert session.scalar(select(func.count()).select_from(OutsideWorker)) == 1, "one person"


def test_what_is_answered_again_by_another_link_counts_where_it_did(
    browser: TestClient, client: TestClient, campaign: Campaign, link: str
) -> None:
    begin(browser, link)
    answer(browser, campaign, 2)
    begin(browser, another_link(client, campaign))
    headers = {"X-CSRF-Token": token_of(browser.get(f"/annotate/{campaign.id}", headers=HTML))}

    undone = browser.post(f"{API}/campaigns/{campaign.id}/undo", json={"count": 2}, headers=headers).json()
    assert len(undone["undone"]) == 2
    assert paid(client, campaign) == {"Pilot": (0, False), "Second": (0, False)}
    answer(browser, campaign, 2)

    assert paid(client, campaign) == {"Pilot": (2, True), "Second": (0, False)}


def test_ending_a_link_ends_what_came_by_it_alone(
    browser: TestClient, client: TestClient, campaign: Campaign, link: str
) -> None:
    other = another_link(client, campaign)
    begin(browser, link)
    answer(browser, campaign, 1)
    ended = {
        item["note"]: item["id"]
        for item in client.get(f"{API}/campaigns/{campaign.id}/workers").json()["links"]
    }
    client.delete(f"{API}/campaigns/{campaign.id}/workers/{ended['Pilot']}")

    answer(browser, campaign, 1)
    assert paid(client, campaign) == {"Pilot": (2, True)}, "who is at work by it goes on"
    assert begin(browser, other).status_code == 303
    assert browser.get(link, headers=HTML).status_code == 404
    answer(browser, campaign, 1)
    assert paid(client, campaign) == {"Pilot": (2, True), "Second": (1, False)}
    assert "C1ABCD" in browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text


@pytest.mark.dialects
def test_whom_the_version_before_let_in_is_paid_and_changes_links_as_others_do(
    browser: TestClient, client: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    other = another_link(client, campaign)
    begin(browser, link)
    session.execute(delete(WorkerVisit))  # that version writes none
    session.commit()
    answer(browser, campaign, 2)

    assert "C1ABCD" in browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text
    assert paid(client, campaign) == {"Pilot": (2, True)}
    begin(browser, link)
    begin(browser, other)
    answer(browser, campaign, 1)

    assert paid(client, campaign) == {"Pilot": (2, True), "Second": (1, False)}
    links = client.get(f"{API}/campaigns/{campaign.id}/workers").json()["links"]
    assert {item["note"]: item["workers"] for item in links} == {"Pilot": 1, "Second": 1}


def test_coming_by_another_link_takes_a_place_of_it_once(
    app: FastAPI, client: TestClient, campaign: Campaign, link: str
) -> None:
    other = another_link(client, campaign, max_workers=1)
    mine = TestClient(app, follow_redirects=False)
    for each in (link, other, link, other):
        assert begin(mine, each).status_code == 303

    theirs = TestClient(app, follow_redirects=False)
    assert begin(theirs, link, "A2OTHER").status_code == 303
    assert "As many people take part" in begin(theirs, other, "A2OTHER").text
    links = client.get(f"{API}/campaigns/{campaign.id}/workers").json()["links"]
    assert {item["note"]: item["workers"] for item in links} == {"Pilot": 2, "Second": 1}
