"""Where notices may be posted: hosts that the operator named, at addresses that are not of this network."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from app.notices.errors import AddressNotAllowed
from app.settings import Settings

PORTS = {"https": 443, "http": 80}


def check_url(settings: Settings, url: str) -> SplitResult:
    """The parts of an address, if notices may be posted there as far as its text tells.

    Raises:
        AddressNotAllowed: with what to do about it.
    """
    schemes = ("https", "http") if settings.webhook_private_addresses else ("https",)
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise AddressNotAllowed("This is no address of the web.") from None
    if parts.scheme not in schemes or not host or port == 0:
        raise AddressNotAllowed(
            f"Give an address that begins with {' or '.join(f'{one}://' for one in schemes)}."
        )
    if parts.username is not None or parts.password is not None:
        raise AddressNotAllowed("Give the address without a name or password in it: notices are signed.")
    if parts.fragment:
        raise AddressNotAllowed("Give the address without its part after the #.")
    if host not in {one.lower() for one in settings.webhook_hosts}:
        raise AddressNotAllowed(
            f"Nothing is sent to {host:.120}: the operator of this installation has not named it in "
            "CLARINET_WEBHOOK_HOSTS."
        )
    return parts


def pinned(found: list[str], *, private: bool) -> str:
    """The one of a host's addresses that is connected to; its name is not looked up again.

    Args:
        found: what the host's name leads to, as text.
        private: whether addresses of this machine and its networks are allowed.

    Raises:
        AddressNotAllowed: any of them is of this machine or its networks.
    """
    if not found:
        raise AddressNotAllowed("The host's name leads nowhere.")
    if not private and not all(map(_is_public, found)):
        raise AddressNotAllowed("The host's name leads to an address inside this network.")
    return found[0]


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    known = mapped or address
    return known.is_global and not known.is_multicast
