"""Whose account it is, what its role is, and who may not come."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import ApiToken, LoginSession, Role, User
from app.accounts.organisation.models import OrganisationIdentity
from app.clock import utc_now
from app.journal.models import Action, Entry
from tests.app.accounts.conftest import HTML, Browser
from tests.app.accounts.organisation.conftest import sent_on, sign_in, way_back, who
from tests.factories import PASSWORD, make_user
from tests.provider import Provider

MakeBrowser = Callable[[], Browser]


def wanting(**wanted: object) -> pytest.MarkDecorator:
    """Settings of one test."""
    return pytest.mark.parametrize("wanted", [pytest.param(wanted, id="")])


GROUPS = wanting(oidc_roles={"leads": "admin", "checkers": "reviewer"})


def account(session: Session, email: str = "ada@example.org", **more: str) -> User:
    """Somebody who has an account and a password."""
    user = make_user(session, password=PASSWORD, **more)
    user.email = email
    session.commit()
    return user


def again(session: Session, user: User) -> User:
    """The row as it is now."""
    session.commit()
    return session.get_one(User, user.id, populate_existing=True)


def actions(session: Session) -> list[Action]:
    session.commit()
    return list(session.scalars(select(Entry.action).order_by(Entry.id)))


@wanting(oidc_make_accounts=False)
def test_without_leave_nobody_new_gets_an_account(browser: Browser, session: Session) -> None:
    answer = sign_in(browser)

    assert answer.status_code == 403
    assert "you have no account here" in answer.text
    assert session.scalar(select(func.count()).select_from(User)) == 0
    assert actions(session) == [Action.SIGN_IN_REFUSED]


@pytest.mark.parametrize("said", [{"email_verified": False}, {"email_verified": None}, {"email": ""}])
def test_an_address_that_nobody_verified_makes_no_account(
    browser: Browser, provider: Provider, said: dict[str, object]
) -> None:
    provider.person = {k: v for k, v in (provider.person | said).items() if v is not None}

    answer = sign_in(browser)

    assert answer.status_code == 403
    assert "does not say that your e-mail address was verified" in answer.text


@wanting(oidc_email_trusted=True)
def test_a_provider_that_says_nothing_of_it_may_be_trusted_but_not_against_its_word(
    new_browser: MakeBrowser, provider: Provider
) -> None:
    del provider.person["email_verified"]
    assert sign_in(new_browser()).status_code == 303
    provider.person = provider.person | {"sub": "b", "email": "b@example.org", "email_verified": False}

    assert sign_in(new_browser()).status_code == 403


def test_an_address_alone_opens_nobodys_account(browser: Browser, session: Session) -> None:
    user = account(session, role="admin")

    answer = sign_in(browser)

    assert answer.status_code == 409
    assert "There is an account for ada@example.org here already" in answer.text
    assert who(browser) == ""
    assert again(session, user).password_hash is not None


@wanting(oidc_link_by_email=True)
def test_a_verified_address_links_where_the_operator_allows_it_and_ends_what_was_before(
    new_browser: MakeBrowser, session: Session
) -> None:
    """Whoever made the account beforehand with somebody else's address is out."""
    user = account(session)
    squatter, owner = new_browser(), new_browser()
    squatter.sign_in(user.email)
    accounts.create_token(session, user, "kept", now=utc_now())
    session.commit()

    assert sign_in(owner).status_code == 303

    assert (who(owner), who(squatter)) == ("ada@example.org", "")
    user = again(session, user)
    assert user.password_hash is None
    assert session.scalar(select(func.count()).where(ApiToken.revoked_at.is_(None))) == 0
    assert squatter.sign_in(user.email).status_code == 422


@wanting(oidc_link_by_email=True)
def test_an_address_that_is_not_verified_links_nothing(
    browser: Browser, provider: Provider, session: Session
) -> None:
    user = account(session)
    provider.person["email_verified"] = False

    assert sign_in(browser).status_code == 403
    assert again(session, user).password_hash is not None


@wanting(oidc_link_by_email=True)
def test_an_address_that_was_given_on_does_not_give_on_the_account(
    new_browser: MakeBrowser, provider: Provider
) -> None:
    assert sign_in(new_browser()).status_code == 303
    provider.person["sub"] = "a successor of the same address"

    assert sign_in(new_browser()).status_code == 409


def test_a_person_links_their_own_account_while_signed_in(new_browser: MakeBrowser, session: Session) -> None:
    user = account(session, "other@example.org")
    browser, later, by_password = new_browser(), new_browser(), new_browser()
    browser.sign_in(user.email)

    page = browser.send("/account/organisation/link", page="/account")
    assert "prompt=select_account" in page.headers["refresh"]
    answer = browser.get(way_back(sent_on(page)))

    assert answer.headers["location"] == "/account#organisation"
    assert "You sign in with Example Works as ada@example.org." in browser.get("/account").text
    assert sign_in(later).status_code == 303
    assert who(later) == "other@example.org"
    assert by_password.sign_in(user.email).status_code == 303


def test_linking_wants_the_password_and_a_form_of_ours(browser: Browser, session: Session) -> None:
    user = account(session)
    browser.sign_in(user.email)
    assert browser.client.post("/account/organisation/link", headers=HTML).status_code == 403
    for row in session.scalars(select(LoginSession)):
        row.proved_at = utc_now() - timedelta(hours=1)
    session.commit()

    assert browser.send("/account/organisation/link", page="/account").status_code == 403
    wrong = browser.send("/account/organisation/link", page="/account", current="not it")
    right = browser.send("/account/organisation/link", page="/account", current=PASSWORD)

    assert (wrong.status_code, right.status_code) == (401, 200)


def test_a_link_that_one_began_ends_in_no_other_session(new_browser: MakeBrowser, session: Session) -> None:
    """The answer of a linking is good for the session that began it, though the cookie is there."""
    ada, grace = account(session), account(session, "grace@example.org")
    browser = new_browser()
    browser.sign_in(ada.email)
    page = browser.send("/account/organisation/link", page="/account")
    back = way_back(sent_on(page))
    browser.send("/sign-out", page="/account")
    browser.sign_in(grace.email)

    answer = browser.get(back)

    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=")  # as whoever is not signed in
    assert session.scalar(select(func.count()).select_from(OrganisationIdentity)) == 0


def test_unlinking_needs_another_way_in(new_browser: MakeBrowser, session: Session) -> None:
    browser = new_browser()
    sign_in(browser)
    refused = browser.send("/account/organisation/unlink", page="/account")
    user = session.scalars(select(User)).one()
    user.password_hash = accounts.hash_if_strong(PASSWORD)
    session.commit()

    done = browser.send("/account/organisation/unlink", page="/account")

    assert (refused.status_code, done.status_code) == (409, 303)
    assert session.scalar(select(func.count()).select_from(OrganisationIdentity)) == 0
    assert Action.ORGANISATION_UNLINKED in actions(session)


@GROUPS
def test_groups_give_the_role_and_another_one_ends_what_the_last_one_opened(
    new_browser: MakeBrowser, provider: Provider, session: Session
) -> None:
    account(session, "boss@example.org", role="admin")
    provider.person["groups"] = ["leads", "everybody"]
    first, second, third = new_browser(), new_browser(), new_browser()
    sign_in(first)
    user = session.scalars(select(User).where(User.email == "ada@example.org")).one()
    assert user.role is Role.ADMIN
    _, secret = accounts.create_token(session, user, "long", now=utc_now())
    session.commit()

    provider.person["groups"] = ["checkers"]
    sign_in(second)

    assert again(session, user).role is Role.REVIEWER
    assert (who(first), who(second)) == ("", "ada@example.org")
    assert first.client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    changed = session.scalars(select(Entry).where(Entry.action == Action.ROLE_CHANGED)).one()
    assert (changed.details["role"], changed.details["by"]) == ("reviewer", "groups")
    del provider.person["groups"]
    sign_in(third)
    assert again(session, user).role is Role.ANNOTATOR


@GROUPS
def test_the_last_admin_stays_one(new_browser: MakeBrowser, provider: Provider, session: Session) -> None:
    provider.person["groups"] = ["leads"]
    sign_in(new_browser())
    provider.person["groups"] = []

    answer = sign_in(new_browser())

    assert answer.status_code == 303
    assert session.scalars(select(User.role)).one() is Role.ADMIN
    assert Action.ROLE_KEPT in actions(session)


def test_where_groups_give_no_roles_admins_do(
    new_browser: MakeBrowser, session: Session, provider: Provider
) -> None:
    sign_in(new_browser())
    user = session.scalars(select(User)).one()
    user.role = Role.REVIEWER
    session.commit()
    provider.person["groups"] = ["leads"]

    sign_in(new_browser())

    assert again(session, user).role is Role.REVIEWER


@wanting(oidc_roles={"leads": "admin"}, oidc_groups_claim="realm_access.roles")
def test_groups_are_found_in_a_claim_of_a_claim_and_apart_from_the_token(
    browser: Browser, provider: Provider, session: Session
) -> None:
    provider.in_userinfo = {"realm_access": {"roles": ["leads"]}}

    sign_in(browser)

    assert session.scalars(select(User.role)).one() is Role.ADMIN


@GROUPS
def test_what_is_told_of_somebody_else_counts_for_nothing(browser: Browser, provider: Provider) -> None:
    provider.in_userinfo, provider.userinfo_sub = {"groups": ["leads"]}, "somebody else"

    assert sign_in(browser).status_code == 403


@GROUPS
@pytest.mark.parametrize("in_token", [{"email": "boss@example.org"}, {"email_verified": True}])
def test_one_source_does_not_vouch_for_the_address_of_another(
    browser: Browser, provider: Provider, session: Session, in_token: dict[str, object]
) -> None:
    """Nobody says of boss@example.org that it is verified."""
    userinfo = {"email": "ada@example.org", "email_verified": True}
    if "email" not in in_token:
        userinfo = {"email": "boss@example.org"}
    provider.person = {"sub": "ada-1"} | in_token
    provider.in_userinfo = userinfo | {"groups": ["leads"]}

    answer = sign_in(browser)

    assert answer.status_code == 403
    assert "does not say that your e-mail address was verified" in answer.text
    assert session.scalar(select(func.count()).select_from(User)) == 0


def test_the_token_alone_says_when_the_provider_asked(browser: Browser, provider: Provider) -> None:
    provider.with_auth_time = False
    del provider.person["email"]
    provider.in_userinfo = {"email": "ada@example.org", "email_verified": True, "auth_time": time.time()}
    assert sign_in(browser).status_code == 303

    made = browser.send("/account/tokens", page="/account", name="t", scope="read", days="7")

    assert made.status_code == 422


@GROUPS
def test_groups_that_are_left_out_are_not_taken_for_none(
    browser: Browser, provider: Provider, session: Session
) -> None:
    provider.person["_claim_names"] = {"groups": "src1"}

    answer = sign_in(browser)

    assert answer.status_code == 403
    assert "so many groups" in answer.text
    assert session.scalar(select(func.count()).select_from(User)) == 0


@wanting(oidc_allowed_groups=("staff",))
def test_who_has_left_the_group_is_signed_out_everywhere(
    new_browser: MakeBrowser, provider: Provider, session: Session
) -> None:
    provider.person["groups"] = ["staff"]
    first = new_browser()
    assert sign_in(first).status_code == 303
    provider.person["groups"] = ["alumni"]

    answer = sign_in(new_browser())

    assert answer.status_code == 403
    assert "is not among those that may come here" in answer.text
    assert who(first) == ""
    assert actions(session)[-1] is Action.SIGN_IN_REFUSED


@wanting(oidc_allowed_domains=("example.org",))
@pytest.mark.parametrize(
    ("email", "status"),
    [("a@example.org", 303), ("a@evil-example.org", 403), ("a@example.org.evil.net", 403)],
)
def test_only_allowed_domains_come(browser: Browser, provider: Provider, email: str, status: int) -> None:
    provider.person["email"] = email

    assert sign_in(browser).status_code == status


def test_disabled_stays_disabled(new_browser: MakeBrowser, session: Session) -> None:
    sign_in(new_browser())
    user = session.scalars(select(User)).one()
    user.disabled_at = utc_now()
    session.commit()

    answer = sign_in(new_browser())

    assert answer.status_code == 403
    assert "Your account here was disabled" in answer.text
    assert again(session, user).disabled_at is not None


def test_who_was_erased_is_forgotten_here_and_new_if_they_come_again(
    new_browser: MakeBrowser, session: Session
) -> None:
    sign_in(new_browser())
    user = session.scalars(select(User)).one()
    accounts.erase_account(session, user.id, name=user.name, by=None, now=utc_now())
    session.commit()
    assert session.scalar(select(func.count()).select_from(OrganisationIdentity)) == 0

    assert sign_in(new_browser()).status_code == 303

    identity = session.scalars(select(OrganisationIdentity)).one()
    assert identity.user_id != user.id
