"""A provider that hangs: nobody waits for it who can go on, and few threads of the server do."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Thread

import pytest

from app.accounts.organisation import fetching, kept
from app.accounts.organisation.errors import OrganisationAway
from app.accounts.organisation.fetching import Fetcher, Unreachable
from app.accounts.organisation.opening import provider_of
from app.clock import utc_now
from app.settings import Settings
from tests.provider import Provider

HANGS_S = 60.0  # far longer than a slow machine needs to give it up


def asked_at_once(ask: Callable[[], object], times: int) -> list[float]:
    """How long each of the callers waited, in seconds, shortest first."""
    barrier = Barrier(times)

    def wait(_: int) -> float:
        barrier.wait()
        began = time.monotonic()
        ask()
        return time.monotonic() - began

    with ThreadPoolExecutor(times) as pool:
        return sorted(pool.map(wait, range(times)))


@pytest.mark.parametrize("what", ["told", "keys"])
def test_one_asks_and_others_use_what_was_told(
    settings: Settings, provider: Provider, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    ours = provider_of(settings)
    assert ours is not None
    ours.keys(utc_now())
    if what == "told":
        monkeypatch.setattr(kept, "KEPT", timedelta(0))
    else:
        ours._keys._found = kept._Found(ours.keys(utc_now()), utc_now() - timedelta(hours=2))
    monkeypatch.setattr(fetching, "DEADLINE_S", 3.0)
    provider.delay_s, provider.asked = HANGS_S, []

    waits = asked_at_once(lambda: getattr(ours, what)(utc_now()), 12)

    assert waits[-2] < 2  # all but the one who asks
    assert waits[-1] < HANGS_S / 2
    assert asked_at_once(lambda: getattr(ours, what)(utc_now()), 2)[-1] < 2  # nor is it asked again soon
    assert len(provider.asked) == 1


def test_who_comes_while_the_first_answer_is_on_its_way_waits_for_it(
    settings: Settings, provider: Provider
) -> None:
    ours = provider_of(settings)
    assert ours is not None
    provider.delay_s = 0.3

    asked_at_once(lambda: ours.keys(utc_now()), 6)  # raises for whoever gets none

    assert len(provider.asked) == 2


def test_a_failure_counts_from_when_it_was_known(
    settings: Settings, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that hangs for longer than a failure is kept is not asked by each who comes next."""
    ours = provider_of(settings)
    assert ours is not None
    monkeypatch.setattr(fetching, "DEADLINE_S", 2.0)
    monkeypatch.setattr(kept, "FAILURE_KEPT_AT_FIRST", timedelta(seconds=1.5))
    provider.delay_s = HANGS_S

    for _ in range(2):
        with pytest.raises(OrganisationAway):
            ours.told(utc_now())

    assert len(provider.asked) == 1


def test_what_was_told_long_ago_serves_nobody(
    settings: Settings, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = provider_of(settings)
    assert ours is not None
    ours.told(utc_now())
    monkeypatch.setattr(kept, "KEPT", timedelta(0))
    provider.stop()
    assert ours.told(utc_now()).facts
    monkeypatch.setattr(kept, "KEPT_AT_MOST", timedelta(0))

    for _ in range(2):  # asked, and known by then
        with pytest.raises(OrganisationAway):
            ours.told(utc_now())


def test_who_finds_no_place_to_ask_does_not_wait_for_an_answer(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "AT_ONCE", 1)
    monkeypatch.setattr(fetching, "PLACE_S", 0.1)
    fetcher, url = Fetcher(), f"{provider.issuer}/keys"
    provider.delay_s = 4.0
    holding = Thread(target=fetcher.json_of, args=(url,))
    holding.start()
    while not provider.asked:
        time.sleep(0.01)
    began = time.monotonic()

    with pytest.raises(Unreachable):
        fetcher.json_of(url)

    assert time.monotonic() - began < 3
    holding.join()
