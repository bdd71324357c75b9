"""Addresses that may be fetched: their form, and whether a host is on the public Internet."""

import ipaddress
import re
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from index.errors import CairnError

LONGEST_ADDRESS = 4096
"""Characters of an address."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_.])?", re.ASCII)


class FetchError(CairnError):
    """An address cannot be fetched."""


class RefusedError(FetchError):
    """The policy forbids a request to an address."""


class PageAddress(NamedTuple):
    """An address that may be fetched, in its parts."""

    scheme: str
    host: str
    port: int
    target: str  # path and query

    @property
    def text(self) -> str:
        """The whole address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"


_KEPT = "/:@!$&'()*+,;=~%-._"  # characters of an address that are not escaped
_PORTS = {"http": 80, "https": 443}


def is_address(text: object) -> bool:
    """Whether a text is an address to fetch from, not the path of a file.

    >>> is_address("HTTPS://example.org/1"), is_address("https/1.jpg")
    (True, False)
    """
    return isinstance(text, str) and text.lower().startswith(("http://", "https://"))


def parse_address(text: str) -> PageAddress:
    """Parse an address; raises RefusedError if it is not allowed."""
    shown = repr(text[:200])
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        with suppress(ValueError):  # an IP address stays the same
            host = host if ":" in host else host.encode("idna").decode()
    except ValueError:
        raise RefusedError("{shown} is no address", shown=shown) from None
    if parts.scheme not in _PORTS:
        raise RefusedError("{shown} is not an address that begins with http:// or https://", shown=shown)
    if parts.username is not None or parts.password is not None:
        raise RefusedError("{shown} has a user name in it: give an address without", shown=shown)
    if ":" in host:
        try:
            host = str(ipaddress.IPv6Address(host))
        except ValueError:
            raise RefusedError("{shown} is no address", shown=shown) from None
    elif not _HOST.fullmatch(host):
        raise RefusedError("{shown} is no address", shown=shown)
    if len(text) > LONGEST_ADDRESS or port == 0:
        raise RefusedError("{shown} is no address", shown=shown)
    target = quote(parts.path or "/", safe=_KEPT)
    if parts.query:
        target += f"?{quote(parts.query, safe=_KEPT + '?')}"
    return PageAddress(parts.scheme, host, port or _PORTS[parts.scheme], target)


def is_public(address: str) -> bool:
    """Whether an IP address is on the public Internet; one with an embedded address counts as that.

    >>> is_public("93.184.215.14"), is_public("127.0.0.1"), is_public("::ffff:10.0.0.1"), is_public("64:ff9b::a00:1")
    (True, False, False, False)
    """
    one = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(one, ipaddress.IPv6Address):
        within = one.ipv4_mapped or one.sixtofour
        if within is None and one in _NAT64:
            within = ipaddress.IPv4Address(int(one) & 0xFFFFFFFF)
        if within is not None:
            one = within
    return one.is_global and not (one.is_multicast or one.is_reserved or one.is_unspecified)


def plain_host(host: str) -> str:
    """Normalise the name of a host; raises RefusedError if it is not valid."""
    bare = host.strip().removeprefix("[").removesuffix("]")
    try:
        if not re.search(r"[/?#\\@]", bare):
            return parse_address(f"http://{f'[{bare}]' if ':' in bare else bare}/").host
    except RefusedError:
        pass
    raise RefusedError(f"{host!r} is not the name of a host: give only the name.")
