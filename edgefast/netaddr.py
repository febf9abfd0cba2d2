"""Addresses and their one spelling: an IPv4-mapped IPv6 address is its IPv4 address.

In: text as people, sockets or proxies write it. Out: addresses and ranges to compare, text to show. Whatever compares, writes or counts
an address in Python reads it here; the twin for bytes in a connection is core/net/inetaddr.pyx, and tests hold both against each other.
Must never: resolve a name, or take an address with a scope id (its text may hold any byte).
Source: RFC 4291 2.2 and 2.5.5.2, RFC 5952.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

__all__ = [
    "ANY_NETWORK",
    "RESERVED",
    "Address",
    "Network",
    "is_in",
    "is_private",
    "parse_address",
    "parse_network",
    "read_address",
    "why_reserved",
]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: RFC 1918, loopback, IPv6 unique local (RFC 4193) and loopback.
_PRIVATE = tuple(
    map(
        ip_network,
        ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "::1/128"),
    )
)


def parse_address(text: str) -> Address:
    """Return an address; ValueError when the text is none."""
    if "%" in text:
        raise ValueError(f'"{text}" has a zone identifier, which is not allowed')
    found = ip_address(text)
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def read_address(text: str) -> Address | None:
    """Return an address, None when the text is none."""
    try:
        return parse_address(text)
    except ValueError:
        return None


def parse_network(text: str) -> Network:
    """Return a range, host bits cleared; ValueError when it is none. A range of mapped addresses is of IPv4."""
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.prefixlen >= 96:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, network.prefixlen - 96))
    return network


def is_in(address: Address, network: Network) -> bool:
    """Tell whether a range has an address: one of IPv6, however wide, has none of IPv4."""
    return address.version == network.version and address in network


def is_private(address: Address) -> bool:
    """Tell whether an address is of a private network: requests from there are internal."""
    return any(is_in(address, one) for one in _PRIVATE)


#: Addresses that are never backends, unless an administrator allows their range (EdgeGateway spec field `backends.allowedCIDRs`): through
#: them a tenant could reach the proxy's own servers, its node, or the cloud's credentials. Sources: RFC 6890 with its IANA registries, RFC 6052
#: and 8215 (NAT64), 3056 (6to4), 4380 (Teredo), and the metadata services of AWS, Azure, GCP, Alibaba and Oracle. Unix sockets are on the
#: list, too; they have no address.
RESERVED: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this host"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local, with the metadata service of most clouds"),
    ("100.100.100.200/32", "metadata service"),
    ("168.63.129.16/32", "metadata service"),
    ("192.0.0.192/32", "metadata service"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("::/96", "this host, loopback, or IPv4-compatible"),
    ("64:ff9b::/104", "this host, by NAT64"),
    ("64:ff9b::c000:c0/128", "metadata service, by NAT64"),
    ("64:ff9b::e000:0/100", "multicast, by NAT64"),
    ("64:ff9b::ffff:ffff/128", "broadcast, by NAT64"),
    ("64:ff9b:1::/48", "any IPv4 address, by local-use NAT64"),
    ("2001::/32", "any IPv4 address, by Teredo"),
    ("2002::/16", "any IPv4 address, by 6to4"),
    ("64:ff9b::7f00:0/104", "loopback, by NAT64"),
    ("64:ff9b::a9fe:0/112", "link-local, by NAT64"),
    ("64:ff9b::6464:64c8/128", "metadata service, by NAT64"),
    ("64:ff9b::a83f:8110/128", "metadata service, by NAT64"),
    ("fd00:ec2::/32", "metadata service"),
    ("fd20:ce::254/128", "metadata service"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
)
#: Allows every address: the default of standalone.
ANY_NETWORK = ("0.0.0.0/0", "::/0")


def _spans(version: int) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the first addresses of the reserved ranges of a version, sorted, and their last addresses with a description."""
    found = [(ip_network(text), what) for text, what in RESERVED]
    ranges = sorted(
        (int(one.network_address), int(one.broadcast_address), what)
        for one, what in found
        if one.version == version
    )
    return [first for first, _, _ in ranges], [(last, what) for _, last, what in ranges]


_SPANS = {4: _spans(4), 6: _spans(6)}


@lru_cache(maxsize=64)
def _networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(map(parse_network, texts))


def why_reserved(text: str, allowed: tuple[str, ...]) -> str:
    """Return why an address is never a backend's ("loopback"), "" when it may be one. `allowed`: ranges that an administrator allows.

    Text that is not an address is refused too.
    """
    if allowed == ANY_NETWORK:
        return ""
    address = read_address(text)
    if address is None:
        return "not an address"
    firsts, lasts = _SPANS[address.version]
    at = bisect_right(firsts, int(address)) - 1
    if at < 0 or int(address) > lasts[at][0]:
        return ""
    if any(is_in(address, one) for one in _networks(allowed)):
        return ""
    return lasts[at][1]
