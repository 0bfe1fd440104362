"""A sign-in on its way to the provider and back, kept by the browser that began it.

The cookie holds a random secret under our seal. State, nonce and PKCE's verifier are made of it with our key,
so that nothing is stored until an answer comes back, and no other browser's answer fits.
"""

import base64
import enum
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.accounts.organisation.errors import SignInNotBegun

LEEWAY = timedelta(minutes=2)  # between two clocks, and for the way
LIFE = timedelta(minutes=15)  # to type a password and look for a phone
LONGEST_PATH = 1500  # to go on to; browsers keep cookies of 4 KB


class Purpose(enum.StrEnum):
    """What somebody goes to the provider for."""

    SIGN_IN = "sign-in"
    LINK = "link"  # two accounts, signed in here
    PROVE = "prove"  # that it is still them, signed in here


@dataclass(frozen=True, slots=True)
class Flow:
    """One of them.

    Args:
        secret: that only this browser has.
        target: path of ours to go on to.
        session_hash: of the session that it belongs to; "" for a sign-in.
    """

    secret: str
    purpose: Purpose
    begun_at: datetime
    target: str
    session_hash: str = ""


def begin(purpose: Purpose, *, target: str, now: datetime, session_hash: str = "") -> Flow:
    """A new one."""
    target = target if len(json.dumps(target)) <= LONGEST_PATH else "/"
    return Flow(secrets.token_urlsafe(32), purpose, now.replace(microsecond=0), target, session_hash)


def derived(key: bytes, flow: Flow, what: str) -> str:
    """The state, nonce or verifier of a flow: 64 hexadecimal digits."""
    return hmac.new(key, f"organisation:{what}:{flow.secret}".encode(), hashlib.sha256).hexdigest()


def sealed(key: bytes, flow: Flow) -> str:
    """What the cookie holds."""
    said = [flow.secret, flow.purpose, int(flow.begun_at.timestamp()), flow.target, flow.session_hash]
    text = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
    return f"{text}.{_seal(key, text)}"


def came_back(key: bytes, cookie: str, state: str, *, now: datetime) -> Flow:
    """The flow of this cookie, if the answer is its own.

    Raises:
        SignInNotBegun: no cookie of ours, another browser's or an older answer, or too late.
    """
    text, _, seal = cookie.partition(".")
    if not hmac.compare_digest(_seal(key, text).encode(), seal.encode()):
        raise SignInNotBegun
    secret, purpose, begun, target, session_hash = json.loads(base64.urlsafe_b64decode(text))
    flow = Flow(secret, Purpose(purpose), datetime.fromtimestamp(begun, UTC), target, session_hash)
    if not hmac.compare_digest(derived(key, flow, "state").encode(), state.encode()):
        raise SignInNotBegun
    if flow.begun_at + LIFE <= now:
        raise SignInNotBegun
    return flow


def _seal(key: bytes, text: str) -> str:
    return hmac.new(key, f"organisation:cookie:{text}".encode(), hashlib.sha256).hexdigest()
