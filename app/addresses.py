"""From where a request came, as servers and proxies write it."""

import ipaddress
import re
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

LONGEST = 64  # characters of an address that are kept
_WITH_PORT = re.compile(r"\[(?P<six>[^\]]*)\](:\d+)?|(?P<four>[^:]+):\d+")


def address_of(connection: HTTPConnection) -> str:
    """The caller's address; "" where the server knows none."""
    return plain_address(connection.client.host) if connection.client else ""


def plain_address(text: str) -> str:
    """An address without port, brackets and zone; an IPv4 address that is written as IPv6 as what it is.

    What is no address stays as it is, cut to LONGEST printable characters.
    """
    text = text.strip()
    found = _WITH_PORT.fullmatch(text)
    host = (found["six"] or found["four"] or "") if found else text
    try:
        parsed = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return "".join(character for character in text if character.isprintable())[:LONGEST]
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def network_of(address: str) -> str:
    """An IPv4 address, or the /64 of an IPv6 one: a household has 2^64 of those."""
    try:
        parsed = ipaddress.ip_address(plain_address(address))
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def is_this_machine(url: str) -> bool:
    """Whether an address of a web page leads to the machine that it is opened on."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
