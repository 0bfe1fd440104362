"""Mail, sent to a real server on this machine; and the forgotten password that needs it."""

import re
import ssl
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from fastapi.testclient import TestClient
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.limits import MAILS_PER_EMAIL
from app.accounts.models import User
from app.db import Database
from app.journal.models import Action, Entry
from app.mail import send_mail
from app.main import create_app
from app.settings import Settings
from tests.app.accounts.conftest import Browser
from tests.factories import PASSWORD, make_user
from tests.live import free_port


class Box:
    """Keeps what a server was given."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802  # aiosmtpd's name
        """Take a message."""
        self.messages.append(message_from_bytes(envelope.content, policy=default))
        return "250 OK"


class Server:
    """A mail server on a port of its own."""

    def __init__(self, **details: Any) -> None:
        self.box = Box()
        self.controller = Controller(self.box, hostname="127.0.0.1", port=free_port(), **details)
        self.controller.start()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.controller.port}"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that takes everything."""
    server = Server()
    yield server
    server.controller.stop()


def mailing(settings: Settings, url: str) -> Settings:
    """Settings that send mail there."""
    return Settings(
        **settings.model_dump() | {"smtp_url": url, "mail_from": "clarinet@example.org"}, _env_file=None
    )


def test_a_message_arrives_as_it_was_written(settings: Settings, server: Server) -> None:
    sent = send_mail(
        mailing(settings, f"smtp://{server.address}"),
        to="grace@example.org",
        subject="Grüße",
        text="Zeile 1\nfür Ёлку\n",
    )

    assert sent
    (message,) = server.box.messages
    assert (message["From"], message["To"]) == ("clarinet@example.org", "grace@example.org")
    assert message["Subject"] == "Grüße"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"]
    assert message.get_content().replace("\r\n", "\n") == "Zeile 1\nfür Ёлку\n"  # type: ignore[attr-defined]


def test_a_server_that_offers_no_encryption_gets_no_mail(settings: Settings, server: Server) -> None:
    given = mailing(settings, f"smtp+starttls://user:secret@{server.address}")

    assert not send_mail(given, to="grace@example.org", subject="s", text="t")
    assert server.box.messages == []


def test_a_server_with_a_certificate_that_nobody_vouches_for_gets_no_password(
    settings: Settings, tmp_path: Any
) -> None:
    import subprocess

    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    seen: list[LoginPassword] = []

    def login(
        _server: Any, _session: Any, _envelope: Any, _mechanism: str, given: LoginPassword
    ) -> AuthResult:
        seen.append(given)
        return AuthResult(success=True)

    server = Server(tls_context=context, authenticator=login)
    try:
        given = mailing(settings, f"smtp+starttls://us%40er:se%3Acret@{server.address}")
        assert not send_mail(given, to="grace@example.org", subject="s", text="t")
        assert seen == []
    finally:
        server.controller.stop()


def test_no_server_is_no_error(settings: Settings) -> None:
    given = mailing(settings, f"smtp://127.0.0.1:{free_port()}")

    assert not send_mail(given, to="grace@example.org", subject="s", text="t")


@pytest.mark.parametrize(
    ("url", "sender"),
    [
        ("smtp://user:secret@mail.example.org", "a@example.org"),
        ("http://mail.example.org", "a@example.org"),
        ("smtp://", "a@example.org"),
        ("smtp://mail.example.org", ""),
    ],
)
def test_settings_that_cannot_work_are_refused(url: str, sender: str) -> None:
    with pytest.raises(ValidationError):
        Settings(smtp_url=url, mail_from=sender, _env_file=None)


@pytest.fixture
def browser(settings: Settings, database: Database, server: Server) -> Browser:
    """A browser at an installation that sends mail."""
    app = create_app(
        mailing(settings, f"smtp://{server.address}"), database=database, publish=lambda _job: None
    )
    return Browser(TestClient(app, follow_redirects=False, raise_server_exceptions=False))


PAGE = "/forgotten-password"


def test_a_forgotten_password_is_chosen_anew_by_mail(
    browser: Browser, server: Server, session: Session
) -> None:
    grace = make_user(session, password=PASSWORD)
    session.commit()

    answer = browser.send(PAGE, page=PAGE, email=grace.email.upper())

    assert answer.status_code == 200
    (message,) = server.box.messages
    assert message["To"] == grace.email
    link = re.search(r"http://127\.0\.0\.1:8000(/password/\S+)", message.get_content())  # type: ignore[attr-defined]
    assert link
    assert grace.email in browser.get(link[1]).text
    done = browser.send(link[1], page=link[1], password="another long one")
    assert (done.status_code, done.headers["location"]) == (303, "/sign-in?password=changed")
    assert "Your password was changed" in browser.get("/sign-in?password=changed").text
    assert browser.get(link[1]).status_code == 404
    assert browser.sign_in(grace.email).status_code == 422
    assert browser.sign_in(grace.email, "another long one").status_code == 303
    made = session.scalars(select(Entry).where(Entry.action == Action.PASSWORD_LINK_MADE)).one()
    assert (made.by_id, made.address) == (None, "testclient")


def test_nobody_learns_who_has_an_account(browser: Browser, server: Server, session: Session) -> None:
    disabled = make_user(session, password=PASSWORD)
    disabled.disabled_at = disabled.created_at
    known = make_user(session, password=PASSWORD)
    session.commit()

    pages = {
        browser.send(PAGE, page=PAGE, email=email).text
        for email in (known.email, disabled.email, "nobody@example.org")
    }

    assert len(pages) == 1
    assert [message["To"] for message in server.box.messages] == [known.email]
    assert browser.send(PAGE, page=PAGE, email="no address").status_code == 422


def test_nobody_is_flooded_with_mail(browser: Browser, server: Server, session: Session) -> None:
    grace = make_user(session, password=PASSWORD)
    session.commit()

    answers = [browser.send(PAGE, page=PAGE, email=grace.email).status_code for _ in range(5)]

    assert answers == [200] * MAILS_PER_EMAIL.amount + [429] * 2
    assert len(server.box.messages) == MAILS_PER_EMAIL.amount


def test_without_mail_the_page_says_whom_to_ask(settings: Settings, database: Database) -> None:
    for contact, words in (("", "Ask whoever invited you"), ("Ms <Lead>, room 7", "Ms &lt;Lead&gt;, room 7")):
        app = create_app(
            settings.model_copy(update={"contact": contact}), database=database, publish=lambda _job: None
        )
        browser = Browser(TestClient(app, follow_redirects=False))

        assert PAGE in browser.get("/sign-in").text
        page = browser.get(PAGE)
        assert words in page.text
        assert "<form" not in page.text.split("<main", 1)[1].split("</main>", 1)[0]
        assert browser.send(PAGE, page=PAGE, email="grace@example.org").status_code == 422


def test_an_admin_makes_a_link_that_works_in_another_browser(
    settings: Settings, database: Database, session: Session, admin: User
) -> None:
    grace = make_user(session, password=PASSWORD)
    admin.password_hash = grace.password_hash
    session.commit()
    app = create_app(settings, database=database, publish=lambda _job: None)
    office, phone = (Browser(TestClient(app, follow_redirects=False)) for _ in range(2))
    office.sign_in(admin.email)
    person = f"/people/{grace.id}"

    page = office.send(f"{person}/change", page=person, act="password-link")

    link = re.search(r'value="http://127\.0\.0\.1:8000(/password/[^"]+)"', page.text)
    assert link
    assert link[1] not in office.get(person).text
    assert phone.send(link[1], page=link[1], password="another long one").status_code == 303
    assert phone.sign_in(grace.email, "another long one").status_code == 303
