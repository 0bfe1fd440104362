"""Which labels the form of a run offers, and what it says of them."""

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.annotation.models import Tally
from app.campaigns.models import Campaign
from tests.app.runs.conftest import inputs_of

HTML = {"accept": "text/html"}


def tallied(session: Session, campaign: Campaign, *, yes: int) -> None:
    """So many pictures have a yes that nobody has to confirm."""
    campaign.confirm_yes = False
    tally = session.scalars(select(Tally).where(Tally.campaign_id == campaign.id)).first()
    assert tally is not None
    others = select(Tally).where(
        Tally.campaign_id == campaign.id, Tally.candidate_class != tally.candidate_class
    )
    for other in session.scalars(others):
        other.first_yes = 0
    tally.first_yes = yes
    session.commit()


def form(client: TestClient, campaign: Campaign, **asked: str) -> tuple[str, str]:
    page = client.get(f"/campaigns/{campaign.id}/runs/new", params=asked, headers=HTML).text
    hint = re.search(r'<p class="hint" id="setting-hint">(.*?)</p>', page)
    assert hint
    return inputs_of(page)["setting"], unescape(hint[1])


@pytest.mark.parametrize(
    ("yes", "offered", "told"), [(2, "pc", "2 pictures with a yes"), (1, "cc", "1 picture with a yes")]
)
def test_enough_true_labels_make_pc_what_is_offered_and_few_are_told_as_not_used(
    *, client: TestClient, session: Session, campaign: Campaign, yes: int, offered: str, told: str
) -> None:
    tallied(session, campaign, yes=yes)

    setting, hint = form(client, campaign)

    assert setting == offered
    assert f"about {told} would not be used" in hint
    assert ("Choose PC" in hint) is (offered == "pc")


def test_what_was_chosen_stays_and_a_link_may_choose(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    tallied(session, campaign, yes=20)

    assert form(client, campaign, setting="cc")[0] == "cc"


def test_without_a_confirmed_yes_the_form_says_that_cc_uses_all(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    campaign.confirm_yes = True
    session.commit()
    lone = form(client, campaign)[0]
    campaign.overlap = 2
    session.commit()

    setting, hint = form(client, campaign)

    assert lone == "pc", "of two classes a yes is a label as a no is"
    assert setting == "cc"
    assert hint == (
        "No picture has a true label yet: a yes becomes one when a second person confirms it. "
        "Until then CC uses all that there is."
    )
