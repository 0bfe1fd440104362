"""Outside workers who may reach no code: what they, and the admin, are told of it."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, update
from sqlalchemy.orm import Session

from app.annotation import service as annotation
from app.annotation.models import Question
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.members import service
from app.members.errors import WorkerLinkNotFound
from app.members.models import WorkerLink
from tests.app.members.joining import HTML, answer, begin, people
from tests.factories import answer as give
from tests.factories import make_user, questions_of


def members_page(client: TestClient, campaign: Campaign) -> str:
    """What an admin reads."""
    return client.get(f"/campaigns/{campaign.id}/members", headers=HTML).text


@pytest.mark.dialects
def test_an_admin_is_told_of_codes_that_cannot_be_reached(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    def made(**wanted: object) -> str:
        page = f"/campaigns/{campaign.id}/members/links"
        return client.post(page, data={"answers_needed": 2, "max_workers": 2} | wanted, headers=HTML).text

    assert "more answers" not in made(note="Small")  # 4 answers of 8
    many = made(note="Many", max_workers=9)
    assert "need 22 more answers, and about 8 are to come" in many
    long = made(note="Long", answers_needed=9)
    assert "“Long” wants 9 answers of each worker, and 8 questions are left" in long
    for question in questions_of(session, campaign)[:7]:
        give(session, campaign, question.id, "no", by=make_user(session))
    session.commit()
    assert "and 1 question is left" in members_page(client, campaign)


@pytest.mark.dialects
def test_a_worker_with_nothing_left_is_told_so_and_so_is_the_admin(
    client: TestClient, browser: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    begin(browser, link)
    answer(browser, campaign, 1)
    code = f"/annotate/{campaign.id}/code"
    assert "Nothing is left to ask you" not in browser.get(code, headers=HTML).text
    assert "nothing more is asked of them" not in members_page(client, campaign)

    session.execute(update(Question).where(Question.campaign_id == campaign.id).values(is_waiting=False))
    session.commit()

    told = browser.get(code, headers=HTML).text
    assert "Nothing is left to ask you here now: 1 of 2 answers are given" in told
    assert "not yet, and nothing more is asked of them" in members_page(client, campaign)


@pytest.mark.dialects
def test_who_answered_something_ends_with_a_code_of_its_own_and_who_did_not_is_told_to_return(
    *,
    client: TestClient,
    app: FastAPI,
    browser: TestClient,
    session: Session,
    campaign: Campaign,
    link: str,
) -> None:
    idle = TestClient(app, follow_redirects=False)
    begin(browser, link, "W1")
    begin(idle, link, "W2")
    answer(browser, campaign, 1)
    [made] = client.get(f"/api/v1/campaigns/{campaign.id}/workers").json()["links"]
    early = made["early_code"]
    code = f"/annotate/{campaign.id}/code"
    assert early not in browser.get(code, headers=HTML).text

    session.execute(update(Question).where(Question.campaign_id == campaign.id).values(is_waiting=False))
    session.commit()

    assert re.fullmatch("[A-Z2-9]{8}", early)
    assert early != made["code"]
    assert early in members_page(client, campaign)
    answered, came = browser.get(code, headers=HTML).text, idle.get(code, headers=HTML).text
    assert f'value="{early}"' in answered
    assert "hx-trigger" not in answered
    assert early not in came
    assert "return your submission there" in came
    assert "0 of 2 answers count" in came


@pytest.mark.dialects
@pytest.mark.parametrize(("value", "response_ms"), [("unsure", 5), ("no", 5)], ids=["untold", "told"])
def test_who_throws_questions_away_is_told_to_return(
    *, browser: TestClient, session: Session, campaign: Campaign, link: str, value: str, response_ms: int
) -> None:
    begin(browser, link)
    answer(browser, campaign, 1)
    campaign.least_card_ms = 200
    session.commit()
    answer(browser, campaign, 7, value=value, response_ms=response_ms)

    told = browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text

    assert "return your submission there" in told
    assert "1 of 2 answers count" in told


@pytest.mark.dialects
def test_what_was_thrown_away_is_not_forgotten_by_another_link(
    client: TestClient, browser: TestClient, campaign: Campaign, link: str
) -> None:
    begin(browser, link)
    answer(browser, campaign, 7, value="unsure")
    wanted = {"answers_needed": 2, "max_workers": 2}
    made = client.post(f"/api/v1/campaigns/{campaign.id}/workers", json=wanted).json()
    begin(browser, "/join/" + made["url"].rpartition("/")[2])
    answer(browser, campaign, 1)

    told = browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text

    assert "return your submission there" in told
    assert "1 of 2 answers count" in told


@pytest.mark.dialects
def test_some_doubt_among_looks_keeps_the_early_code(
    client: TestClient, browser: TestClient, campaign: Campaign
) -> None:
    wanted = {"answers_needed": 20, "max_workers": 2}
    made = client.post(f"/api/v1/campaigns/{campaign.id}/workers", json=wanted).json()
    begin(browser, "/join/" + made["url"].rpartition("/")[2])
    answer(browser, campaign, 5)
    answer(browser, campaign, 3, value="unsure")

    told = browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text

    assert f'value="{made["early_code"]}"' in told


def test_who_is_paused_is_told_how_to_end(
    client: TestClient, browser: TestClient, campaign: Campaign, link: str
) -> None:
    begin(browser, link)
    answer(browser, campaign, 1)
    [worker] = client.get(f"/api/v1/campaigns/{campaign.id}/workers").json()["workers"]
    client.post(f"/api/v1/campaigns/{campaign.id}/people/{worker['user_id']}/pause")

    told = browser.get(f"/annotate/{campaign.id}/code", headers=HTML).text

    assert "return your submission there" in told
    assert "1 of 2 answers count" in told
    assert "not yet, and nothing more is asked of them" in members_page(client, campaign)


@pytest.mark.dialects
def test_nobody_new_begins_where_nothing_is_left(
    browser: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    session.execute(update(Question).where(Question.campaign_id == campaign.id).values(is_waiting=False))
    session.commit()
    before = people(session)

    told = begin(browser, link)

    assert told.status_code == 422
    assert "Nothing is left to ask here now" in told.text
    assert "return your submission there" in told.text
    assert people(session) == before


@pytest.mark.dialects
def test_who_is_asked_more_is_found_in_two_statements(session: Session, campaign: Campaign) -> None:
    done, *others = (make_user(session) for _ in range(5))
    for question in questions_of(session, campaign):
        give(session, campaign, question.id, by=done)
    here = update(Question).where(Question.campaign_id == campaign.id)
    session.execute(here.values(is_waiting=True, slots=2))  # for somebody else
    ids, asked = {done.id} | {person.id for person in others}, list[str]()
    bind = session.get_bind()
    event.listen(bind, "before_cursor_execute", lambda *given: asked.append(given[2]))

    found = annotation.with_more(session, campaign, ids)
    statements = len(asked)
    session.execute(here.values(is_waiting=False))
    none = annotation.with_more(session, campaign, ids)

    assert (found, statements) == (ids - {done.id}, 2)
    assert found == ids - {done.id}
    assert none == set()
    assert not any(annotation.has_more(session, campaign, person) for person in ids)


@pytest.mark.dialects
def test_a_link_that_ends_while_somebody_comes_lets_nobody_in(session: Session, link: str) -> None:
    secret = link.rpartition("/")[2]
    read, _ = service.find_link(session, secret)
    before = people(session)
    session.execute(
        update(WorkerLink).values(ended_at=utc_now()), execution_options={"synchronize_session": False}
    )

    assert read.ended_at is None, "as it was read before"
    with pytest.raises(WorkerLinkNotFound):
        service.join(session, secret, "somebody", now=utc_now())
    assert people(session) == before
