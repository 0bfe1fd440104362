"""Several invitations at once: a list of addresses, one in a line; all of them are made, or none."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.errors import BadAddresses
from app.accounts.links import make_invitation
from app.accounts.models import Invitation, Role, User
from app.accounts.people import require_admin_throughout
from clarinet.recipes.counting import many

MOST = 200  # in one list
MOST_TOLD = 20  # lines in the way
MAX_ADDRESS, MAX_NOTE = 254, 120  # characters
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_NAMED = re.compile(r"(?P<name>[^<>]*)<(?P<address>[^<>]*)>")  # Anna Frank <anna@example.org>


@dataclass(frozen=True, slots=True)
class _Invitee:
    line: int  # from 1
    email: str
    note: str


def is_address(text: str) -> bool:
    """Whether it looks like an e-mail address."""
    return _ADDRESS.fullmatch(text) is not None


def invite_several(
    session: Session, lines: Sequence[str], *, role: Role, by: User, now: datetime
) -> list[tuple[Invitation, str]]:
    """A one-time link for each address, in their order, and its secret; empty lines are left out.

    A line is an address, or a name and an address in angle brackets.

    Raises:
        NotAllowed: `by` is no admin.
        BadAddresses: some lines cannot be used, the first ones told with the reason; no link was made.
    """
    require_admin_throughout(session, by)
    count = sum(1 for line in lines if line.strip())
    if not count:
        raise BadAddresses(["There is no address. Write one in each line"])
    if count > MOST:
        raise BadAddresses([f"There are {count} addresses, and at most {MOST} are invited at once"])
    found, wrong = _read(lines)
    addresses = [each.email for each in found]
    taken = set(session.scalars(select(User.email).where(User.email.in_(addresses))))
    wrong |= {each.line: f"“{each.email}” has an account" for each in found if each.email in taken}
    if wrong:
        raise BadAddresses(_told(wrong))
    return [
        make_invitation(session, role=role, note=each.note, email=each.email, by=by, now=now)
        for each in found
    ]


def _told(wrong: dict[int, str]) -> list[str]:
    told = [f"Line {line}: {why}" for line, why in sorted(wrong.items())[:MOST_TOLD]]
    more = len(wrong) - len(told)
    return [*told, f"{many(more, 'further line')} cannot be used, either"] if more else told


def _read(lines: Sequence[str]) -> tuple[list[_Invitee], dict[int, str]]:
    """Who is to be invited, and what is wrong, by the number of the line."""
    found: list[_Invitee] = []
    wrong: dict[int, str] = {}
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        named = _NAMED.fullmatch(text)
        note, email = (named["name"].strip(' "'), named["address"].strip()) if named else ("", text)
        email = email.lower()
        if not text:
            continue
        if not is_address(email) or not text.isprintable() or len(email) > MAX_ADDRESS:
            wrong[number] = f"“{text:.60}” does not look like an e-mail address"
        elif email in first:
            wrong[number] = f"“{email}” stands in line {first[email]} already"
        else:
            first[email] = number
            found.append(_Invitee(number, email, note[:MAX_NOTE]))
    return found, wrong
