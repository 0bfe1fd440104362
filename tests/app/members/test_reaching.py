"""Outside workers who may reach no code: what they, and the admin, are told of it."""

import pytest
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
def test_an_admin_is_told_of_codes_that_cannot_be_reached(client: TestClient, campaign: Campaign) -> None:
    def made(**wanted: object) -> str:
        page = f"/campaigns/{campaign.id}/members/links"
        return client.post(page, data={"answers_needed": 2, "max_workers": 2} | wanted, headers=HTML).text

    assert "more answers" not in made(note="Small")  # 4 answers of 8
    many = made(note="Many", max_workers=9)
    assert "need 22 more answers, and about 8 are to come" in many
    long = made(note="Long", answers_needed=9)
    assert "“Long” wants 9 answers of each worker, and 8 questions are left" in long


@pytest.mark.dialects
def test_a_worker_with_nothing_left_is_told_so_and_so_is_the_admin(
    client: TestClient, browser: TestClient, session: Session, campaign: Campaign, link: str
) -> None:
    begin(browser, link)
    answer(browser, campaign, 1)
    code = f"/annotate/{campaign.id}/code"
    assert "Nothing is left to ask you" not in browser.get(code, headers=HTML).text
    assert "nothing is left to ask them" not in members_page(client, campaign)

    session.execute(update(Question).where(Question.campaign_id == campaign.id).values(is_waiting=False))
    session.commit()

    told = browser.get(code, headers=HTML).text
    assert "1 of 2 answers" in told
    assert "Nothing is left to ask you here now" in told
    assert "Answers that say neither yes nor no do not count." in told
    assert "not yet, and nothing is left to ask them" in members_page(client, campaign)


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
