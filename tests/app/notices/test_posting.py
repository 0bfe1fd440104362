"""Posting a notice to a real server: signed, to an address that is looked up once, and nowhere else."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import subprocess
import threading
import time
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
    allowed = sending(settings, f"localhost:{receiver.port}")
    send(allowed, f"http://localhost:{receiver.port}/hooks?team=a%20b")

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
        send(sending(settings, f"localhost:{receiver.port}"), f"http://localhost:{receiver.port}/")

    assert len(receiver.asked) == 1


def test_who_never_answers_is_not_waited_for(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "DEADLINE_S", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        at = f"localhost:{silent.getsockname()[1]}"
        with pytest.raises(NotDelivered, match=r"did not answer within 0\.2 seconds"):
            send(sending(settings, at), f"http://{at}/")
    monkeypatch.setattr(posting, "DEADLINE_S", 10.0)
    at = f"localhost:{free_port()}"
    with pytest.raises(NotDelivered, match="could not be reached"):
        send(sending(settings, at), f"http://{at}/")


def test_a_name_that_nobody_can_look_up_holds_nobody_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's look-up may take half a minute, and cannot be ended."""
    is_over = threading.Event()
    monkeypatch.setattr(posting, "DEADLINE_S", 0.2)

    def slow(*_arguments: object, **_more: object) -> None:
        is_over.wait(300)
        raise OSError("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    began = time.monotonic()
    try:
        with pytest.raises(NotDelivered, match=r"did not answer within 0\.2 seconds"):
            send(sending(settings, "hooks.example.org"), "https://hooks.example.org/")
        assert time.monotonic() - began < 10
    finally:
        is_over.set()


def test_a_name_that_leads_into_this_network_is_refused_when_it_is_looked_up(
    settings: Settings, receiver: Receiver
) -> None:
    at = f"localhost:{receiver.port}"
    with pytest.raises(NotDelivered, match="an address inside this network"):
        send(sending(settings, at, private=False), f"https://{at}/")

    assert receiver.asked == []


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.9", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "224.0.0.1", "ff02::1"),
        # IPv4 in IPv6: NAT64, of everybody and of a network's own, 6to4, Teredo, ISATAP, and bare.
        *("64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::93.184.216.34", "2002:a00:1::1"),
        *("2001:0:5db8:d822::f5ff:fffe", "2606:2800:220:1:0:5efe:10.0.0.1", "::10.0.0.1", "fec0::1"),
    ],
)
def test_no_address_of_this_network_is_connected_to_even_beside_a_public_one(address: str) -> None:
    with pytest.raises(AddressNotAllowed, match="inside this network"):
        pinned(["93.184.216.34", address], private=False)
    assert pinned([address], private=True) == address


def test_the_first_public_address_is_the_one() -> None:
    found = ["2606:2800:220:1::1", "93.184.216.34"]

    assert pinned(found, private=False) == "2606:2800:220:1::1"
    for written_otherwise in ("64:ff9b::93.184.216.34", "::ffff:93.184.216.34"):
        assert pinned([written_otherwise], private=False) == written_otherwise
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
        ("https://hooks.example.org:8443/", "Nothing is sent to port 8443 of hooks.example.org"),
        ("https://ports.example.org/", "Nothing is sent to port 443 of ports.example.org"),
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
        check_url(sending(settings, "hooks.example.org", "ports.example.org:8443", private=False), url)


def test_a_port_that_the_operator_names_with_the_host_is_taken(settings: Settings) -> None:
    allowed = sending(
        settings, "Hooks.example.org", "hooks.example.org:8443", "[2606:4700::1]:9", private=False
    )

    for url in (
        "https://hooks.example.org/",
        "https://HOOKS.example.org:8443/",
        "https://[2606:4700::1]:9/a",
    ):
        assert check_url(allowed, url).geturl() == url
    assert check_url(allowed, "https://hooks.example.org:443/").port == 443


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
    allowed = sending(settings, f"localhost:{receiver.port}", f"127.0.0.1:{receiver.port}")
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
