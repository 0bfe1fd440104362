"""Who somebody is, by the claims that the provider made about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.accounts.organisation.errors import SignInNotTrusted, TooManyGroups
from app.organisation_settings import OrganisationSettings
from clarinet.files.names import is_printable

MOST_GROUPS = 5000
LONGEST_SUBJECT, LONGEST_NAME, LONGEST_ADDRESS = 255, 120, 254


@dataclass(frozen=True, slots=True)
class Person:
    """Who somebody is at the provider.

    Args:
        issuer: with `subject` it names them for good.
        email: in lower case; "" where none is told.
        is_verified: the provider says that the address is theirs.
        name: "" where none is told.
        proved_at: when the provider last asked for their password; None where it does not say.
    """

    issuer: str
    subject: str
    email: str
    is_verified: bool
    name: str
    groups: frozenset[str]
    proved_at: datetime | None


def person_of(claims: Mapping[str, Any], settings: OrganisationSettings) -> Person:
    """Who the claims are about.

    Raises:
        SignInNotTrusted: they name nobody.
        TooManyGroups: the provider left the groups out.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not is_printable(subject):
        raise SignInNotTrusted(settings.organisation, "invalid_claim sub")
    email = _address(claims.get("email"))
    said = claims.get("email_verified")
    return Person(
        issuer=settings.oidc_issuer,
        subject=subject,
        email=email,
        is_verified=said in (True, "true") or (said is None and settings.oidc_email_trusted),
        name=_text(claims.get("name"), LONGEST_NAME),
        groups=_groups(claims, settings),
        proved_at=_moment(claims.get("auth_time")),
    )


def _moment(told: object) -> datetime | None:
    if not isinstance(told, int | float) or isinstance(told, bool):
        return None
    try:
        return datetime.fromtimestamp(told, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _address(given: object) -> str:
    """In lower case; "" for what is none, or would become somebody else's by being cut or folded."""
    text = given.strip() if isinstance(given, str) else ""
    # Lower case takes a Kelvin sign for a k, among others.
    is_folded = any(not letter.isascii() and letter.lower()[0].isascii() for letter in text)
    is_one = 0 < len(text) <= LONGEST_ADDRESS and "@" in text and " " not in text and is_printable(text)
    return text.lower() if is_one and not is_folded else ""


def _text(given: object, longest: int) -> str:
    text = given.strip() if isinstance(given, str) else ""
    return text[:longest].strip() if is_printable(text) else ""


def groups_told(claims: Mapping[str, Any], settings: OrganisationSettings) -> Any:
    """What the groups' claim holds: by its name, or by a path with dots; None where it is not there."""
    path = settings.oidc_groups_claim
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _groups(claims: Mapping[str, Any], settings: OrganisationSettings) -> frozenset[str]:
    told = groups_told(claims, settings)
    elsewhere = claims.get("_claim_names")  # by which Entra ID says that they are too many
    is_left_out = isinstance(elsewhere, dict) and settings.oidc_groups_claim in elsewhere
    if told is None and settings.needs_groups and (is_left_out or claims.get("hasgroups")):
        raise TooManyGroups(settings.organisation)
    given = [told] if isinstance(told, str) else told if isinstance(told, list) else []
    return frozenset(each for each in given[:MOST_GROUPS] if isinstance(each, str))
