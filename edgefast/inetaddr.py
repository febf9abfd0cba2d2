"""Addresses and their one spelling: an IPv4-mapped IPv6 address is its IPv4 address.

In: text as people, sockets or proxies write it. Out: addresses and ranges to compare, text to show. Whatever compares, writes or counts
an address in Python reads it here; the twin for bytes in a connection is core/net/inetaddr.pyx, and tests hold both against each other.
Must never: resolve a name, or take an address with a scope id (its text may hold any byte).
Source: RFC 4291 2.2 and 2.5.5.2, RFC 5952.
"""

from __future__ import annotations

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

__all__ = [
    "Address",
    "Network",
    "is_in",
    "is_private",
    "parse_address",
    "parse_network",
    "read_address",
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
        raise ValueError(f'"{text}" has a scope')
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
