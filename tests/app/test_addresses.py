"""From where a request came, and proxies that nobody trusts."""

import pytest
from fastapi.testclient import TestClient

from app.addresses import is_this_machine, network_of, plain_address
from app.logs import configure_logs
from app.main import create_app
from app.proxies import warning_at_start
from app.settings import Settings


@pytest.mark.parametrize(
    ("given", "address", "network"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("::FFFF:c000:201", "192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:443", "192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1", "2001:db8::/64"),
        ("[2001:db8::1]", "2001:db8::1", "2001:db8::/64"),
        ("[2001:DB8::1]:80", "2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::1", "fe80::/64"),
        ("testclient", "testclient", "unknown"),
        ("", "", "unknown"),
        ("evil\x1b[31m\n", "evil[31m", "unknown"),
        ("192.0.2.1:x", "192.0.2.1:x", "unknown"),
        ("999.0.2.1:80", "999.0.2.1:80", "unknown"),
        ("x" * 100, "x" * 64, "unknown"),
    ],
)
def test_addresses_are_read_as_proxies_write_them(given: str, address: str, network: str) -> None:
    assert plain_address(given) == address
    assert network_of(given) == network


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:8000", True),
        ("https://localhost", True),
        ("http://[::1]:80/", True),
        ("https://clarinet.example.org", False),
        ("http://192.168.1.5", False),
    ],
)
def test_this_machine_is_known(url: str, is_here: bool) -> None:
    assert is_this_machine(url) is is_here


@pytest.mark.parametrize(
    ("given", "host", "warns"),
    [
        ({"public_url": "https://clarinet.example.org"}, "0.0.0.0", True),
        ({"public_url": "https://clarinet.example.org"}, "::", True),
        ({"public_url": "https://clarinet.example.org"}, "127.0.0.1", False),
        ({"public_url": "https://clarinet.example.org", "trusted_proxies": "10.0.0.2"}, "0.0.0.0", False),
        ({"public_url": "http://clarinet.example.org"}, "0.0.0.0", False),
        ({}, "0.0.0.0", False),
    ],
)
def test_the_start_warns_of_a_proxy_that_is_not_trusted(
    given: dict[str, str], host: str, warns: bool
) -> None:
    settings = Settings(environment="test", _env_file=None, **given)  # type: ignore[arg-type]

    warning = warning_at_start(settings, host)

    assert (warning is not None) is warns
    assert warning is None or "CLARINET_TRUSTED_PROXIES" in warning


def test_a_proxy_that_is_not_trusted_is_told_of_once(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    app = create_app(settings, publish=lambda _job: None)
    configure_logs(settings.model_copy(update={"log_format": "json"}))
    forwarded = {"X-Forwarded-For": "198.51.100.7:4711, 192.0.2.9"}
    trusting = TestClient(ProxyHeadersMiddleware(app, trusted_hosts="testclient,192.0.2.9"))  # type: ignore[arg-type]
    assert trusting.get("/healthz", headers=forwarded).status_code == 200
    assert "proxy.not_trusted" not in capsys.readouterr().err

    for client in (TestClient(app), TestClient(app, client=("10.1.2.3", 80))):
        for _ in range(3):
            client.get("/healthz", headers=forwarded)

    told = [line for line in capsys.readouterr().err.splitlines() if "proxy.not_trusted" in line]
    assert len(told) == 2
    assert '"address": "10.1.2.3"' in told[1]
    assert "CLARINET_TRUSTED_PROXIES" in told[0]
