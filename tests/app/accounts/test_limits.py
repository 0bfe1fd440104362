"""How often one may fail to sign in."""

import pytest

from app.accounts.errors import TooManyMails, TooManySignIns
from app.accounts.limits import (
    MAILS_PER_EMAIL,
    PER_ADDRESS,
    PER_CODE,
    PER_EMAIL,
    PER_EMAIL_AND_ADDRESS,
    SignInLimit,
)
from tests.factories import number


def fail(limit: SignInLimit, *, address: str, email: str) -> None:
    """An attempt with a wrong password."""
    limit.check(address=address, email=email)
    limit.note_failure(address=address, email=email)


def succeed(limit: SignInLimit, *, address: str, email: str) -> None:
    """An attempt with the right one."""
    limit.check(address=address, email=email)
    limit.note_success(address=address, email=email)


def test_an_e_mail_has_few_failures_from_one_address() -> None:
    limit = SignInLimit("filesystem://")
    for _ in range(PER_EMAIL_AND_ADDRESS.amount):
        fail(limit, address="192.0.2.1", email="ada@example.org")

    with pytest.raises(TooManySignIns) as refused:
        limit.check(address="192.0.2.1", email=" ADA@example.org")
    assert 0 < int(refused.value.facts["retry_after_s"]) <= 15 * 60
    limit.check(address="192.0.2.1", email="grace@example.org")
    limit.check(address="192.0.2.2", email="ada@example.org")  # its owner, elsewhere, is not locked out


def test_an_e_mail_has_not_any_number_of_failures_from_many_addresses() -> None:
    limit = SignInLimit("filesystem://")
    succeed(limit, address="203.0.113.9", email="ada@example.org")
    for n in range(PER_EMAIL.amount):
        fail(limit, address=f"192.0.2.{n}", email="ada@example.org")

    with pytest.raises(TooManySignIns):
        limit.check(address="198.51.100.1", email="ada@example.org")
    limit.check(address="203.0.113.9", email="ada@example.org")  # where she signed in before


def test_only_failures_count() -> None:
    limit = SignInLimit("filesystem://")
    for _ in range(3):
        for _ in range(PER_EMAIL_AND_ADDRESS.amount - 1):
            fail(limit, address="192.0.2.1", email="ada@example.org")
        for _ in range(2 * PER_EMAIL_AND_ADDRESS.amount):
            succeed(limit, address="192.0.2.1", email="ada@example.org")


def test_a_class_behind_one_address_gets_in_though_each_mistypes_twice() -> None:
    limit = SignInLimit("filesystem://")
    people = [f"pupil{n}@example.org" for n in range(2 * PER_ADDRESS.amount)]
    for email in people:
        fail(limit, address="192.0.2.1", email=email)
        fail(limit, address="192.0.2.1", email=email)
        succeed(limit, address="192.0.2.1", email=email)


def test_whoever_attacks_from_the_class_room_locks_nobody_out_who_signed_in_there() -> None:
    limit = SignInLimit("filesystem://")
    succeed(limit, address="192.0.2.1", email="ada@example.org")
    for n in range(PER_ADDRESS.amount):
        fail(limit, address="192.0.2.1", email=f"victim{n}@example.org")

    limit.check(address="192.0.2.1", email="ada@example.org")
    with pytest.raises(TooManySignIns):
        limit.check(address="192.0.2.1", email="another@example.org")


@pytest.mark.parametrize(
    "addresses",
    [
        ["192.0.2.1"],
        [f"2001:db8::{n:x}" for n in range(50)],
        ["192.0.2.1:4711", "192.0.2.1:4712", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:443"],
        ["[2001:db8::1]:80", "2001:db8::2%eth0"],
        ["?"],
    ],
)
def test_an_address_has_many_failures_but_not_any_number(addresses: list[str]) -> None:
    limit = SignInLimit("filesystem://")
    for n in range(PER_ADDRESS.amount):
        fail(limit, address=addresses[n % len(addresses)], email=f"person{n}@example.org")

    with pytest.raises(TooManySignIns):
        limit.check(address=addresses[0], email="another@example.org")


def test_codes_and_mails_have_limits_of_their_own() -> None:
    limit = SignInLimit("filesystem://")
    for _ in range(PER_CODE.amount):
        limit.count_code(email="ada@example.org")
    for _ in range(MAILS_PER_EMAIL.amount):
        limit.count_mail(address="192.0.2.1", email="ada@example.org")

    with pytest.raises(TooManySignIns):
        limit.count_code(email="ada@example.org")
    with pytest.raises(TooManyMails):
        limit.count_mail(address="192.0.2.2", email="ada@example.org")
    limit.forgive_code(email="ada@example.org")
    limit.count_code(email="ada@example.org")


def test_processes_count_together_over_redis(redis_url: str) -> None:
    email = f"shared{number()}@example.org"
    one, other = SignInLimit(redis_url), SignInLimit(redis_url)
    address = "192.0.2.200"
    for n in range(PER_EMAIL_AND_ADDRESS.amount):
        fail((one, other)[n % 2], address=address, email=email)

    with pytest.raises(TooManySignIns):
        other.check(address=address, email=email)
    one.note_success(address=address, email=email)
    for _ in range(PER_EMAIL_AND_ADDRESS.amount):
        fail(other, address=address, email=email)


def test_without_its_redis_a_process_counts_alone() -> None:
    limit = SignInLimit("redis://127.0.0.1:1/0")
    for _ in range(PER_EMAIL_AND_ADDRESS.amount):
        fail(limit, address="192.0.2.1", email="ada@example.org")

    with pytest.raises(TooManySignIns):
        limit.check(address="192.0.2.1", email="ada@example.org")
