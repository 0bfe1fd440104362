"""What a campaign's page says in each state: what is left, who may do what, and where to go."""

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.campaigns import openings
from tests.factories import NOW, answer, make_campaign, questions_of

HTML = {"accept": "text/html"}

pytestmark = pytest.mark.dialects


def words(client: TestClient, address: str) -> str:
    """The text of a page without its marks, in one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", client.get(address, headers=HTML).text).split())


def test_closing_says_what_it_leaves_undone(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=4)
    answer(session, campaign, questions_of(session, campaign)[0].id)
    session.commit()
    here = f"/campaigns/{campaign.id}"

    before = words(client, here)
    client.post(f"{here}/close")
    after = words(client, here)

    assert "3 of 4 questions are not done yet, and would stay so." in before
    assert "Invite people" in before
    assert "3 left undone by closing" in after
    assert not re.search("nothing left to ask|Invite people", after)
    members = words(client, f"{here}/members")
    assert "nobody answers in it any more" in members
    assert "Make a link" not in members


def test_a_campaign_that_is_done_has_nothing_left(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=1, class_names=("cat", "dog", "owl"))
    answer(session, campaign, questions_of(session, campaign)[0].id)
    campaign.state = type(campaign.state).CLOSED
    session.commit()

    told = words(client, f"/campaigns/{campaign.id}")

    assert "nothing left to ask" in told
    assert "left undone" not in told


def test_a_paused_one_says_which_answers_still_count(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    session.commit()
    here = f"/campaigns/{campaign.id}"

    client.post(f"{here}/pause")
    told = words(client, here)

    assert "Paused: nobody is asked anything new. An answer that is on its way counts" in told
    assert "nobody answers now" not in told
    assert 'hx-trigger="every 2s"' in client.get(here, headers=HTML).text


def test_example_pictures_are_neither_done_nor_set_aside(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=6)
    first = questions_of(session, campaign)[0]
    campaign.classes[0].example_ids = [first.example_id]
    admin = session.get_one(User, campaign.created_by_id)
    annotation.set_aside_beside_classes(session, campaign, drawing=1, by=admin, now=NOW)
    session.commit()

    told = words(client, f"/campaigns/{campaign.id}")

    assert "0 of 5 questions done" in told
    assert "5 to do" in told
    assert "set aside" not in told
    assert "0 of 5 questions done" in words(client, "/campaigns")


def test_what_is_done_is_not_the_first_thing_to_do(
    client: TestClient, annotator_client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session, examples=1)
    session.commit()
    begin = f'data-kind="primary" href="/annotate/{campaign.id}"'
    here = f"/campaigns/{campaign.id}"
    assert begin in client.get(here, headers=HTML).text.replace("http://testserver", "")
    assert "Begin" in words(annotator_client, "/annotate")

    answer(session, campaign, questions_of(session, campaign)[0].id)
    session.commit()

    assert begin not in client.get(here, headers=HTML).text.replace("http://testserver", "")
    listed = words(annotator_client, "/annotate")
    assert "nothing to ask you now" in listed
    assert "Begin" not in listed


def test_chosen_example_pictures_stand_on_the_page_and_in_the_journal(
    client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session, state="draft")
    session.commit()
    here = f"/campaigns/{campaign.id}"
    picture = openings.examples_to_label(session, campaign.dataset_id, end_position=10**6)[0][1]
    assert "Example pictures none" in words(client, here)

    client.post(f"{here}/pictures", data={"pictures": f"0:{picture}"})

    page = client.get(here, headers=HTML).text
    assert f"/datasets/{campaign.dataset_id}/examples/{picture}/image" in page
    assert "Beside 1 class; nobody is asked about them." in words(client, here)
    assert "example pictures: cat 1" in words(client, f"/journal?campaign_id={campaign.id}")
