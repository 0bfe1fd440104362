"""How often one may try to sign in."""

import pytest

from app.accounts.errors import TooManySignIns
from app.accounts.limits import PER_ADDRESS, PER_EMAIL, PER_EMAIL_AND_ADDRESS, SignInLimit
from tests.factories import number


def test_an_e_mail_has_few_attempts_from_one_address() -> None:
    limit = SignInLimit("filesystem://")
    for _ in range(PER_EMAIL_AND_ADDRESS.amount):
        limit.count(address="192.0.2.1", email="ada@example.org")

    with pytest.raises(TooManySignIns) as refused:
        limit.count(address="192.0.2.1", email=" ADA@example.org")
    assert 0 < int(refused.value.facts["retry_after_s"]) <= 15 * 60
    limit.count(address="192.0.2.1", email="grace@example.org")
    limit.count(address="192.0.2.2", email="ada@example.org")  # its owner, elsewhere, is not locked out


def test_an_e_mail_has_not_any_number_of_attempts_from_many_addresses() -> None:
    limit = SignInLimit("filesystem://")
    for n in range(PER_EMAIL.amount):
        limit.count(address=f"192.0.2.{n}", email="ada@example.org")

    with pytest.raises(TooManySignIns):
        limit.count(address="198.51.100.1", email="ada@example.org")


def test_the_right_password_gives_the_attempts_back() -> None:
    limit = SignInLimit("filesystem://")
    for _ in range(3 * PER_EMAIL_AND_ADDRESS.amount):
        limit.count(address="192.0.2.1", email="ada@example.org")
        limit.forgive(address="192.0.2.1", email="ada@example.org")


@pytest.mark.parametrize("addresses", [["192.0.2.1"], [f"2001:db8::{n:x}" for n in range(50)], ["?"]])
def test_an_address_has_many_attempts_but_not_any_number(addresses: list[str]) -> None:
    limit = SignInLimit("filesystem://")
    for n in range(PER_ADDRESS.amount):
        limit.count(address=addresses[n % len(addresses)], email=f"person{n}@example.org")

    with pytest.raises(TooManySignIns):
        limit.count(address=addresses[0], email="another@example.org")


def test_processes_count_together_over_redis(redis_url: str) -> None:
    email = f"shared{number()}@example.org"
    one, other = SignInLimit(redis_url), SignInLimit(redis_url)
    address = "192.0.2.200"
    one.forgive(address=address, email=email)
    for n in range(PER_EMAIL_AND_ADDRESS.amount):
        (one, other)[n % 2].count(address=address, email=email)

    with pytest.raises(TooManySignIns):
        other.count(address=address, email=email)
    one.forgive(address=address, email=email)
    other.count(address=address, email=email)


def test_without_its_redis_a_process_counts_alone() -> None:
    limit = SignInLimit("redis://127.0.0.1:1/0")
    for _ in range(PER_EMAIL_AND_ADDRESS.amount):
        limit.count(address="192.0.2.1", email="ada@example.org")

    with pytest.raises(TooManySignIns):
        limit.count(address="192.0.2.1", email="ada@example.org")
