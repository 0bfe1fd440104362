"""A proxy that is not trusted: everybody seems to come from it, and nobody notices."""

import structlog
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from app.addresses import address_of, is_this_machine, plain_address
from app.settings import Settings

MOST = 100  # peers that are told of; anybody may send the header

log = structlog.get_logger()


class UntrustedProxy:
    """Say once for each peer that it passes requests on and is not believed.

    The server has put the caller's address in place of a trusted proxy's, so that one stands in the header.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.told: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            connection = HTTPConnection(scope)
            forwarded = connection.headers.get("x-forwarded-for")
            if forwarded is not None and len(self.told) < MOST:
                self._look(address_of(connection), forwarded)
        await self.app(scope, receive, send)

    def _look(self, peer: str, forwarded: str) -> None:
        if peer in self.told or peer in {plain_address(part) for part in forwarded.split(",")}:
            return
        self.told.add(peer)
        log.warning(
            "proxy.not_trusted",
            address=peer,
            do="If this is your proxy, add its address to CLARINET_TRUSTED_PROXIES.",
        )


def warning_at_start(settings: Settings, host: str) -> str | None:
    """What to say where mail would lead nowhere, or people seem to come through a proxy that is not trusted.

    Args:
        settings: of the server.
        host: at which it listens.
    """
    if settings.sends_mail and settings.public_url == Settings.model_fields["public_url"].default:
        return (
            f"CLARINET_PUBLIC_URL is not set, so that links in mail begin with {settings.public_url}, which "
            "leads their readers to their own machines. Set it to where people reach the pages."
        )
    if "trusted_proxies" in settings.model_fields_set or not settings.is_secure:
        return None
    if host in {"127.0.0.1", "::1", "localhost"} or is_this_machine(settings.public_url):
        return None
    return (
        "CLARINET_PUBLIC_URL says https, so a proxy passes requests on; only one on this machine is trusted. "
        "Set CLARINET_TRUSTED_PROXIES to its address; until then everybody seems to come from there."
    )
