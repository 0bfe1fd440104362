"""What a refused form says, and where the keyboard is then."""

import re
from html import unescape

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Role, User
from app.campaigns.models import CampaignState
from app.clock import utc_now
from app.pages import Refusal, refusal_of
from tests.app.accounts.conftest import in_person
from tests.factories import make_campaign

HTML = {"accept": "text/html"}
FIELDS = (
    '<input id="name"><p id="name-error"></p><input id="config.epochs">'
    '<input id="erase-current" name="current">'
)
SUMMARY = re.compile(
    r'<p class="notice" data-kind="fault" role="alert" tabindex="-1" autofocus>(.*?)</p>', re.DOTALL
)


@pytest.mark.parametrize(
    ("errors", "refusal"),
    [
        ({}, None),
        ({"": "Sign in first."}, Refusal(["Sign in first."], 0, "")),
        ({"config.epochs": "x", "name": "y"}, Refusal([], 2, "name")),
        ({"name": "x", "nmae": "Is unknown."}, Refusal(["nmae: Is unknown."], 1, "name")),
        ({'" id="name': "Is unknown."}, Refusal(['" id="name: Is unknown.'], 0, "")),
        ({"current": "z", "name": "y"}, Refusal([], 2, "name")),
        ({"current": "z"}, Refusal([], 1, "erase-current")),
        ({"x" * 99: "Is unknown."}, Refusal([f"{'x' * 40}: Is unknown."], 0, "")),
    ],
    ids=["nothing", "whole form", "two fields", "no such field", "markup", "another id", "only it", "long"],
)
def test_each_error_is_told_beside_its_field_or_above(
    errors: dict[str, str], refusal: Refusal | None
) -> None:
    assert refusal_of(FIELDS, errors) == refusal


def summary_of(page: str) -> str:
    """The words of the one element that takes the focus."""
    found = SUMMARY.findall(page)
    assert len(found) == 1
    assert page.count(" autofocus") == 1
    return " ".join(unescape(re.sub(r"<[^>]+>", "", found[0])).split())


@pytest.mark.parametrize(
    ("path", "typed", "told"),
    [
        ("/people/invitations", {"role": "owner"}, "No link was made. 1 value below"),
        ("/account/tokens", {}, "1 value below cannot be used; the reason stands beside it. Go to it"),
        (
            "/account/password",
            {},
            "2 values below cannot be used; the reasons stand beside them. Go to the first",
        ),
        ("/datasets/new", {}, "Nothing was imported. 2 values below"),
        ("/campaigns/new", {"gold_share": "7"}, "The draft was not saved. 3 values below"),
        ("/campaigns/{draft}/edit", {"name": "x" * 200}, "The draft was not saved. 2 values below"),
        ("/campaigns/{draft}/pictures", {"pictures": "x"}, "These pictures were not saved. "),
        ("/campaigns/{open}/imports", {}, "Nothing was imported. 1 value below"),
        ("/campaigns/{open}/gold", {}, "No picture was marked. 1 value below"),
        ("/campaigns/{open}/decisions", {}, "Please fill this in. Please fill this in."),
        ("/campaigns/{open}/runs/new", {"seeds": "x"}, "Nothing was started. 2 values below"),
    ],
)
def test_a_refused_form_begins_at_its_summary(
    *,
    app: FastAPI,
    client: TestClient,
    session: Session,
    admin: User,
    path: str,
    typed: dict[str, str],
    told: str,
) -> None:
    # One's own account takes no token.
    sender = in_person(app, session, admin) if path.startswith("/account") else client
    draft = make_campaign(session, state=CampaignState.DRAFT)
    running = make_campaign(session)
    session.commit()

    page = sender.post(path.format(draft=draft.id, open=running.id), data=typed, headers=HTML)

    assert page.status_code == 422
    assert summary_of(page.text).startswith(told)
    for name in re.findall(r'<a href="#([^"]+)">Go to', page.text):
        assert f' id="{name}"' in page.text


def test_so_do_a_plan_and_the_forms_before_signing_in(
    client: TestClient, anonymous: TestClient, session: Session, admin: User
) -> None:
    _, secret = accounts.invite(session, role=Role.ANNOTATOR, note="", by=admin, now=utc_now())
    session.commit()

    plan = client.get("/plan", params={"budget": "x", "odd": "y"}, headers=HTML)
    wrong = anonymous.post("/sign-in", data={"email": "a@example.org", "password": "b"}, headers=HTML)
    invited = anonymous.post(f"/invitations/{secret}", data={}, headers=HTML)

    assert summary_of(plan.text).startswith("1 value below")  # what else a link adds is none of it
    assert "value" not in summary_of(wrong.text)
    assert summary_of(invited.text).startswith("3 values below")
