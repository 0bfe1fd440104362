"""The provider as this process knows it: its addresses and keys, asked for now and then."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx2
import structlog
from authlib.oauth2.auth import encode_client_secret_basic
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.client import OAuth2Client
from joserfc.jwk import KeySet

from app.accounts.organisation.claims import Person, groups_told, person_of
from app.accounts.organisation.errors import OrganisationAway, OrganisationSetUpWrong, SignInNotTrusted
from app.accounts.organisation.fetching import Fetcher, Unreachable
from app.accounts.organisation.flow import Flow, Purpose, derived
from app.accounts.organisation.kept import Kept
from app.accounts.organisation.tokens import ALGORITHMS, UnknownKey, checked, keys_of
from app.organisation_settings import OrganisationSettings, back_url
from app.settings import Settings

WELL_KNOWN = "/.well-known/openid-configuration"
KEYS_AGAIN = timedelta(seconds=5)  # at the earliest, for a key that is not known: anybody can name one
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
ALSO = ("userinfo_endpoint", "end_session_endpoint")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Told:
    """What the provider says about itself."""

    facts: Mapping[str, Any]

    def strings(self, name: str) -> frozenset[str]:
        """A list of it."""
        given = self.facts.get(name)
        return (
            frozenset(each for each in given if isinstance(each, str))
            if isinstance(given, list)
            else frozenset()
        )


class Refusal(OAuth2Error):  # type: ignore[misc]  # authlib ships no types
    """What the provider says to our question for a token.

    authlib takes letters beyond ASCII, quotes and new lines for no refusal at all, and providers send them.
    """

    def __init__(self, error: object = None, description: object = None) -> None:
        super().__init__(error=_in_ascii(error), description=_in_ascii(description))


def _in_ascii(said: object) -> str:
    letters = str("" if said is None else said)
    return "".join(
        each if each.isascii() and each.isprintable() and each not in '"\\' else " " for each in letters
    )


class Provider:
    """One for each process; its threads share what was told."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._fetcher = Fetcher()
        self._told = Kept(self._discovered, self.name)
        self._keys = Kept(self._asked_keys, self.name)

    @property
    def name(self) -> str:
        """What people call it."""
        return self._settings.organisation

    def told(self, now: datetime) -> Told:
        """What it says about itself.

        Raises:
            OrganisationAway: it does not answer, and has not for long.
            OrganisationSetUpWrong: it is not the one that the settings name, or says too little.
        """
        return self._told.get(now)

    def _discovered(self, _now: datetime) -> Told:
        issuer = self._settings.oidc_issuer
        try:
            facts = self._fetcher.json_of(issuer.rstrip("/") + WELL_KNOWN)
        except Unreachable as error:
            raise OrganisationAway(self.name) from error
        if facts.get("issuer") != issuer:
            raise self._wrong(
                f"it calls itself {facts.get('issuer')!r:.200}, and CLARINET_OIDC_ISSUER is {issuer!r}"
            )
        for name in (*NEEDED, *ALSO):
            given = facts.get(name)
            if given is None and name in ALSO:
                continue
            url = given if isinstance(given, str) and is_plain(given) else ""
            parts = urlsplit(url)
            if parts.scheme not in {"https", urlsplit(issuer).scheme} or not parts.hostname:
                raise self._wrong(f"its discovery document has no usable {name}")
        return Told(facts)

    def _wrong(self, why: str) -> OrganisationSetUpWrong:
        log.error("organisation.set_up_wrong", why=why)
        return OrganisationSetUpWrong(self.name, why)

    def keys(self, now: datetime, *, again: bool = False) -> KeySet:
        """The keys that it signs with.

        Args:
            again: one is missing, so ask anew, unless that was done just now.

        Raises:
            OrganisationAway: it does not answer.
        """
        return self._keys.get(now, at_most_old=KEYS_AGAIN if again else None)

    def _asked_keys(self, now: datetime) -> KeySet:
        try:
            return keys_of(self._fetcher.json_of(self.told(now).facts["jwks_uri"]))
        except Unreachable as error:
            raise OrganisationAway(self.name) from error

    def _client(self, told: Told) -> OAuth2Client:
        settings = self._settings
        secret = settings.oidc_client_secret.get_secret_value()
        methods = told.strings("token_endpoint_auth_methods_supported") or {"client_secret_basic"}
        method = "client_secret_post" if "client_secret_post" in methods else "client_secret_basic"
        client = OAuth2Client(
            self._fetcher,
            client_id=settings.oidc_client_id,
            client_secret=secret,
            token_endpoint_auth_method=method if secret else "none",
            scope=settings.oidc_scopes,
            redirect_uri=back_url(settings.public_url),
            code_challenge_method="S256",
        )
        client.oauth_error_class = Refusal
        client.register_client_auth_method(("client_secret_basic", _basic))
        return client

    def way_there(self, flow: Flow, *, now: datetime) -> str:
        """The address at which the provider asks who somebody is.

        Raises:
            OrganisationAway, OrganisationSetUpWrong: as `told`.
        """
        told, key = self.told(now), self._settings.signing_secret()
        # Linking: the person sees which account it is. Proving: whoever sits there types its password.
        asked = {
            Purpose.LINK: {"prompt": "select_account"},
            Purpose.PROVE: {"prompt": "login", "max_age": "0"},
        }
        url, _state = self._client(told).create_authorization_url(
            told.facts["authorization_endpoint"],
            state=derived(key, flow, "state"),
            code_verifier=derived(key, flow, "verifier"),
            nonce=derived(key, flow, "nonce"),
            **asked.get(flow.purpose, {}),
        )
        return str(url)

    def way_out(self, now: datetime) -> str | None:
        """The address at which the provider signs somebody out, if it offers that."""
        end = self.told(now).facts.get("end_session_endpoint")
        if end is None:
            return None
        back = {"client_id": self._settings.oidc_client_id}
        back["post_logout_redirect_uri"] = self._settings.public_url.rstrip("/") + "/sign-in"
        return f"{end}{'&' if '?' in end else '?'}{urlencode(back)}"

    def person(self, code: str, flow: Flow, *, now: datetime) -> Person:
        """Who came back with this code. It asks the provider: hold no connection meanwhile.

        Raises:
            OrganisationAway: it does not answer.
            OrganisationSetUpWrong: it does not know us by our secret, or by the address we come back to.
            SignInNotTrusted, ClocksDiffer, TooManyGroups: what it says does not hold.
        """
        told = self.told(now)
        key = self._settings.signing_secret()
        given = self._redeemed(told, code, derived(key, flow, "verifier"))
        token, access = given.get("id_token"), given.get("access_token")
        if not isinstance(token, str) or not isinstance(access, str):
            raise SignInNotTrusted(self.name, "no_id_token")
        claims = self._checked(told, token, access, nonce=derived(key, flow, "nonce"), now=now)
        return person_of(self._completed(told, claims, access), self._settings)

    def _redeemed(self, told: Told, code: str, verifier: str) -> Mapping[str, Any]:
        try:
            given: Mapping[str, Any] = self._client(told).fetch_token(
                told.facts["token_endpoint"],
                grant_type="authorization_code",
                code=code,
                code_verifier=verifier,
            )
        except OAuth2Error as error:
            why = str(error.error)[:60]
            said = str(error.description).replace(code, "(code)")
            log.warning("organisation.code_refused", error=why, description=said[:300])
            if why in {"invalid_client", "unauthorized_client"}:
                raise self._wrong(
                    "it refuses CLARINET_OIDC_CLIENT_ID with CLARINET_OIDC_CLIENT_SECRET"
                ) from error
            if why == "invalid_grant":  # used, too old, or of another sign-in
                raise SignInNotTrusted(self.name, why) from error
            raise self._wrong(f"it answers {why!r} to our question for a token") from error
        except Unreachable as error:
            raise OrganisationAway(self.name) from error
        except (httpx2.HTTPError, ValueError) as error:  # status 500, or no object
            log.warning("organisation.no_token", error=type(error).__name__)
            raise OrganisationAway(self.name) from error
        return given

    def _checked(self, told: Told, token: str, access: str, *, nonce: str, now: datetime) -> dict[str, Any]:
        offered = told.strings("id_token_signing_alg_values_supported")
        # None at all would mean to joserfc: whatever it recommends.
        algorithms = offered & frozenset(ALGORITHMS) if offered else frozenset(ALGORITHMS)
        if not algorithms:
            raise self._wrong("it signs by no algorithm of " + ", ".join(ALGORITHMS))
        for again in (False, True):
            try:
                return checked(
                    token,
                    self.keys(now, again=again),
                    settings=self._settings,
                    nonce=nonce,
                    access_token=access,
                    algorithms=algorithms,
                    now=now,
                )
            except UnknownKey:
                continue
        raise SignInNotTrusted(self.name, "unknown_key")

    def _completed(self, told: Told, claims: dict[str, Any], access: str) -> dict[str, Any]:
        """With what is only told apart from the token, if it is needed and there is a place to ask."""
        lacks_groups = self._settings.needs_groups and groups_told(claims, self._settings) is None
        url = told.facts.get("userinfo_endpoint")
        if url is None or (isinstance(claims.get("email"), str) and not lacks_groups):
            return claims
        try:
            more = self._fetcher.json_of(url, bearer=access)
        except Unreachable as error:
            raise OrganisationAway(self.name) from error
        if more.get("sub") != claims["sub"]:
            raise SignInNotTrusted(self.name, "userinfo of somebody else")
        return _joined(claims, more, self._settings)


def is_plain(url: str) -> bool:
    """Whether an address can stand in a header as it is."""
    return url.isascii() and url.isprintable() and " " not in url


def _joined(
    claims: dict[str, Any], more: Mapping[str, Any], settings: OrganisationSettings
) -> dict[str, Any]:
    """What the token says, with name, groups and address of the other source where it lacks them.

    An address and whether it is verified come from one source: they may be two addresses.
    """
    address, path = {"email", "email_verified"}, settings.oidc_groups_claim
    wanted = {"name", path, path.partition(".")[0], "_claim_names", "hasgroups"}
    if not isinstance(claims.get("email"), str):
        claims = {name: value for name, value in claims.items() if name not in address}
        wanted |= address
    return {name: value for name, value in more.items() if name in wanted} | claims


def _basic(client: Any, method: str, uri: str, headers: Any, body: Any) -> Any:
    """As authlib's own, with what RFC 6749 2.3.1 asks for: both are quoted as in a form."""
    said = type(
        "Said",
        (),
        {"client_id": quote(client.client_id, ""), "client_secret": quote(client.client_secret, "")},
    )
    return encode_client_secret_basic(said, method, uri, headers, body)
