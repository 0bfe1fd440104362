"""Posting one notice: signed as Standard Webhooks has it, to an address looked up once, in bounded time."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

import httpx2

from app.notices.addresses import PORTS, check_url, pinned
from app.notices.errors import AddressNotAllowed
from app.settings import Settings

DEADLINE_S = 10  # for all of it; a claim lasts longer
PREFIX = "whsec_"
SUCCESS = range(200, 300)
REDIRECT = range(300, 400)


class NotDelivered(Exception):
    """It did not arrive, as far as we know; the words say why."""


def make_secret() -> str:
    """A secret to sign by, in the form that libraries for Standard Webhooks take."""
    return PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()


def signature(secret: str, notice_id: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 over id, time and body, in base64: what `webhook-signature` has after "v1,"."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = b".".join((notice_id.encode(), timestamp.encode(), body))
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def post(
    settings: Settings,
    url: str,
    said: Mapping[str, Any],
    *,
    notice_id: str,
    secret: str,
    now: datetime,
    trust: ssl.SSLContext | None = None,
) -> None:
    """Post a notice.

    Args:
        settings: which hosts are allowed.
        url: where to.
        said: the body.
        notice_id: the same at each attempt, so that a receiver knows a repetition.
        secret: signs it.
        now: is signed with it, so that a receiver refuses what is old.
        trust: who vouches for servers; None: whom Python trusts.

    Raises:
        NotDelivered: no answer that says success.
    """
    body = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    timestamp = str(int(now.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Clarinet",
        "webhook-id": notice_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature(secret, notice_id, timestamp, body)}",
    }
    try:
        status = asyncio.run(_post(settings, url, body, headers, trust))
    except AddressNotAllowed as error:
        raise NotDelivered(error.detail) from error
    except TimeoutError as error:
        raise NotDelivered(f"It did not answer within {DEADLINE_S} seconds.") from error
    except (httpx2.TransportError, OSError) as error:
        raise NotDelivered(f"It could not be reached ({type(error).__name__}).") from error
    if status in REDIRECT:
        raise NotDelivered(
            f"It answered {status}, which sends us elsewhere; give the address that it leads to."
        )
    if status not in SUCCESS:
        raise NotDelivered(f"It answered {status}.")


async def _post(
    settings: Settings, url: str, body: bytes, headers: Mapping[str, str], trust: ssl.SSLContext | None
) -> int:
    parts = check_url(settings, url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    async with asyncio.timeout(DEADLINE_S):
        found = await _looked_up(host, port)
        address = pinned(found, private=settings.webhook_private_addresses)
        at = f"[{address}]" if ":" in address else address
        shown = f"[{host}]" if ":" in host else host
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        # No proxy of the environment: it would look the name up again.
        async with httpx2.AsyncClient(
            trust_env=False, follow_redirects=False, timeout=DEADLINE_S, verify=trust or True
        ) as client:
            request = client.build_request(
                "POST",
                f"{parts.scheme}://{at}:{port}{path}",
                content=body,
                headers={**headers, "Host": shown if port == PORTS[parts.scheme] else f"{shown}:{port}"},
                extensions={"sni_hostname": host},  # the certificate must be the host's
            )
            response = await client.send(request, stream=True)
            await response.aclose()  # nobody reads what it says
            return response.status_code


async def _looked_up(host: str, port: int) -> list[str]:
    """The addresses to which a host's name leads.

    The system's look-up knows no deadline, and the end of an event loop waits for the loop's own threads. So
    it has a thread of its own, which nobody waits for.
    """
    found: Future[list[str]] = Future()

    def look_up() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # of no name that there could be
            answer: Callable[[], None] = partial(found.set_exception, OSError(str(error)))
        else:
            answer = partial(found.set_result, [str(row[4][0]) for row in rows])
        with suppress(InvalidStateError):  # nobody waits any more
            answer()

    threading.Thread(target=look_up, name="look-up", daemon=True).start()
    return await asyncio.wrap_future(found)
