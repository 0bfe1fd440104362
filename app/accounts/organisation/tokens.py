"""What an ID token says, once it is known that the provider said it: to us, just now, and in this sign-in."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from app.accounts.organisation.errors import ClocksDiffer, SignInNotTrusted
from app.accounts.organisation.flow import LEEWAY
from app.organisation_settings import OrganisationSettings

# Signatures by a key that only the provider has. Never "none", nor one by a secret that we have as well.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEY_TYPES = {"RSA", "EC", "OKP"}
MOST_KEYS = 100


class UnknownKey(Exception):
    """The token names a key that is not among these: they may have been changed since."""


def keys_of(told: Mapping[str, Any]) -> KeySet:
    """Those keys of the provider that may sign; those that we cannot read are left out."""
    found = []
    given = told.get("keys")
    for key in given[:MOST_KEYS] if isinstance(given, list) else ():
        if not isinstance(key, dict) or key.get("kty") not in KEY_TYPES or key.get("use", "sig") != "sig":
            continue
        try:
            found += KeySet.import_key_set({"keys": [key]}).keys
        except (JoseError, ValueError, KeyError, TypeError):
            continue
    return KeySet(found)


def checked(
    token: str,
    keys: KeySet,
    *,
    settings: OrganisationSettings,
    nonce: str,
    access_token: str,
    algorithms: Collection[str],
    now: datetime,
) -> dict[str, Any]:
    """The claims of a token that holds.

    Raises:
        UnknownKey: no key of these signed it.
        ClocksDiffer: it was made at another time than now.
        SignInNotTrusted: signature, issuer, audience, nonce or anything else is wrong.
    """
    name = settings.organisation
    try:
        read = jwt.decode(token, keys, algorithms=[each for each in ALGORITHMS if each in algorithms])
    except InvalidKeyIdError as error:
        raise UnknownKey from error
    except (JoseError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SignInNotTrusted(name, getattr(error, "error", "") or "malformed_token") from error
    claims = CodeIDToken(
        read.claims,
        read.header,
        options={
            "iss": {"essential": True, "value": settings.oidc_issuer},
            "aud": {"essential": True, "value": settings.oidc_client_id},
        },
        params={"nonce": nonce, "client_id": settings.oidc_client_id, "access_token": access_token},
    )
    at, leeway = now.timestamp(), LEEWAY.total_seconds()
    made = read.claims.get("iat")
    apart_s = abs(at - made) if isinstance(made, int | float) else 0.0
    try:
        claims.validate(now=int(at), leeway=int(leeway))
    except JoseError as error:
        claim = getattr(error, "claim", "") or ""
        if claim in {"exp", "iat", "nbf"} and apart_s > leeway:
            raise ClocksDiffer(name, round(apart_s)) from error
        raise SignInNotTrusted(name, f"{error.error} {claim}".strip()) from error
    if apart_s > leeway:  # it came straight from the provider, which makes one for each sign-in
        raise ClocksDiffer(name, round(apart_s))
    return dict(read.claims)
