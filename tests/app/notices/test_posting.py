"""Posting a notice to a real server: signed, to an address that is looked up once, and nowhere else."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.notices import posting
from app.notices.addresses import check_url, pinned
from app.notices.errors import AddressNotAllowed
from app.notices.posting import NotDelivered, make_secret, post, signature
from app.settings import Settings
from tests.live import free_port
from tests.receiving import LOST, Receiver

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECRET = make_secret()
SAID = {"type": "run-ended", "data": {"words": "Grüße"}}


def sending(settings: Settings, *hosts: str, private: bool = True) -> Settings:
    """Settings that let notices go to these hosts."""
    wanted = {"webhook_hosts": hosts, "webhook_private_addresses": private}
    return Settings(**settings.model_dump() | wanted, _env_file=None)


def send(settings: Settings, url: str, **details: Any) -> None:
    """Post a notice."""
    post(settings, url, SAID, notice_id="n1", secret=SECRET, now=NOW, **details)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_a_notice_arrives_and_its_signature_is_that_of_standard_webhooks(
    settings: Settings, receiver: Receiver
) -> None:
    send(sending(settings, "localhost"), f"http://localhost:{receiver.port}/hooks?team=a%20b")

    [asked] = receiver.asked
    assert (asked.method, asked.path) == ("POST", "/hooks?team=a%20b")
    assert asked.headers["host"] == f"localhost:{receiver.port}"
    assert json.loads(asked.body) == SAID
    assert (asked.headers["webhook-id"], asked.headers["webhook-timestamp"]) == ("n1", "1777636800")
    # As a receiver computes it, from the page of Standard Webhooks.
    key = base64.b64decode(SECRET.split("_")[1])
    signed = f"n1.1777636800.{asked.body.decode()}".encode()
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert asked.headers["webhook-signature"] == f"v1,{expected}"


def test_the_signature_is_that_of_the_published_example() -> None:
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'

    found = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)

    assert found == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((302, {}, {"Location": "http://localhost/elsewhere"}), "answered 302, which sends us elsewhere"),
        ((500, {}, {}), "It answered 500."),
        (LOST, "could not be reached"),
    ],
)
def test_what_is_no_success_is_a_failure_and_redirects_are_not_followed(
    settings: Settings, receiver: Receiver, reply: Any, words: str
) -> None:
    receiver.will(reply)

    with pytest.raises(NotDelivered, match=words):
        send(sending(settings, "localhost"), f"http://localhost:{receiver.port}/")

    assert len(receiver.asked) == 1


def test_who_never_answers_is_not_waited_for(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "DEADLINE_S", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(NotDelivered, match=r"did not answer within 0\.2 seconds"):
            send(sending(settings, "localhost"), f"http://localhost:{silent.getsockname()[1]}/")
    with pytest.raises(NotDelivered, match="could not be reached"):
        send(sending(settings, "localhost"), f"http://localhost:{free_port()}/")


def test_a_name_that_leads_into_this_network_is_refused_when_it_is_looked_up(
    settings: Settings, receiver: Receiver
) -> None:
    with pytest.raises(NotDelivered, match="an address inside this network"):
        send(sending(settings, "localhost", private=False), f"https://localhost:{receiver.port}/")

    assert receiver.asked == []


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.9", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "224.0.0.1", "ff02::1"),
    ],
)
def test_no_address_of_this_network_is_connected_to_even_beside_a_public_one(address: str) -> None:
    with pytest.raises(AddressNotAllowed, match="inside this network"):
        pinned(["93.184.216.34", address], private=False)
    assert pinned([address], private=True) == address


def test_the_first_public_address_is_the_one() -> None:
    found = ["2606:2800:220:1::1", "93.184.216.34"]

    assert pinned(found, private=False) == "2606:2800:220:1::1"
    with pytest.raises(AddressNotAllowed, match="leads nowhere"):
        pinned([], private=True)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://hooks.example.org/", "begins with https://"),
        ("ftp://hooks.example.org/", "begins with https://"),
        ("hooks.example.org", "begins with https://"),
        ("https://", "begins with https://"),
        ("https://hooks.example.org:99999/", "no address of the web"),
        ("https://[::1/", "no address of the web"),
        ("https://user:secret@hooks.example.org/", "without a name or password"),
        ("https://hooks.example.org/#a", "after the #"),
        ("https://evil.org/", "Nothing is sent to evil.org: .* CLARINET_WEBHOOK_HOSTS"),
        ("https://hooks.example.org.evil.org/", "Nothing is sent to"),
        ("https://hooks.example.org@evil.org/", "without a name or password"),
        ("https://hooks.example.org\\@evil.org/", "without a name or password|no address|Nothing is sent"),
    ],
)
def test_an_address_is_refused_with_what_to_do(settings: Settings, url: str, words: str) -> None:
    with pytest.raises(AddressNotAllowed, match=words):
        check_url(sending(settings, "hooks.example.org", private=False), url)


def test_the_certificate_must_be_the_hosts_although_its_address_is_connected_to(
    settings: Settings, tmp_path: Path
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=hook", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    trust = ssl.create_default_context(cafile=str(certificate))
    receiver = Receiver(ours)
    allowed = sending(settings, "localhost", "127.0.0.1")
    try:
        send(allowed, f"https://localhost:{receiver.port}/", trust=trust)
        assert len(receiver.asked) == 1
        for url, trusted in (
            (f"https://127.0.0.1:{receiver.port}/", trust),
            (f"https://localhost:{receiver.port}/", None),
        ):
            with pytest.raises(NotDelivered, match="could not be reached"):
                send(allowed, url, trust=trusted)
        assert len(receiver.asked) == 1
    finally:
        receiver.close()
