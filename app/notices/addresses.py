"""Where notices may be posted: hosts that the operator named, at addresses that are not of this network."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from app.notices.errors import AddressNotAllowed
from app.settings import Settings

PORTS = {"https": 443, "http": 80}
GLOBAL = ipaddress.IPv6Network("2000::/3")  # all that is routed between networks
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # in which a network without IPv4 writes addresses of it
# The upper half of an IPv6 interface that has an IPv4 address in its lower one (ISATAP).
ISATAP = (0x00005EFE, 0x02005EFE)
WORD = 0xFFFFFFFF


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
    named = [_host_and_port(one) for one in settings.webhook_hosts]
    if host not in {one for one, _ in named}:
        raise AddressNotAllowed(
            f"Nothing is sent to {host:.120}: the operator of this installation has not named it in "
            "CLARINET_WEBHOOK_HOSTS."
        )
    usual = PORTS[parts.scheme]
    if (host, port or usual) not in {(one, of or usual) for one, of in named}:
        raise AddressNotAllowed(
            f"Nothing is sent to port {port or usual} of {host:.120}: the operator of this installation has "
            "not named the host with this port in CLARINET_WEBHOOK_HOSTS."
        )
    return parts


def shortened(url: str) -> str:
    """An address as lists show it: what follows the host may be a secret."""
    parts = urlsplit(url)
    rest = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{parts.netloc}/{'…' if rest else ''}"


def _host_and_port(named: str) -> tuple[str, int | None]:
    """What an operator named, as `host` or `host:port`."""
    try:
        parts = urlsplit(f"//{named.strip()}")
        port = parts.port
    except ValueError:
        return "", None
    return parts.hostname or "", port


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
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    if not all(_is_public(str(one)) for one in _within(address)):
        return False
    is_written_otherwise = address.ipv4_mapped is not None or address in NAT64
    return is_written_otherwise or (address in GLOBAL and address.is_global)


def _within(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses to which an IPv6 address leads on: mapped, NAT64, 6to4, Teredo, ISATAP."""
    last = ipaddress.IPv4Address(int(address) & WORD)
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    found += [last] if address in NAT64 or (int(address) >> 32) & WORD in ISATAP else []
    return [one for one in found if one is not None]
