"""Client: whose request it is, and what the forwarding headers say of it (EdgeProxy spec.clientAddress).

In: the connection's address, the head, a listener's settings. Out: `Client`.
The twin of core/client.pyx, which works on bytes in a connection; tests hold both against each other.
Must never: believe a header that the settings do not trust.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import msgspec

from edgefast import ir
from edgefast._csrc import lib
from edgefast.why.head import Head

_PRIVATE = ("10.", "127.", "192.168.", "fc", "fd")


class Client(msgspec.Struct, frozen=True):
    """Who asked."""

    peer: str  # the connection's other end
    address: str  # the client that is believed
    received: str | None  # x-forwarded-for as it counts; None: only the peer speaks
    internal: bool


def find_client(head: Head, source: str, settings: ir.ClientAddress) -> Client:
    """Return whose request it is."""
    peer = source.removeprefix("::ffff:")
    listed = [one.value for one in head.lines if one.id == lib.EF_H_X_FORWARDED_FOR]
    if not listed and settings.trusted_hops == 0 and not settings.trusted_cidrs:
        return Client(peer, peer, None, _is_private(peer))
    received = ",".join(one.decode("utf-8", "surrogateescape") for one in listed if one)
    address = _believe(settings, peer, received)
    return Client(peer, address, received, not received and _is_private(address))


def _believe(settings: ir.ClientAddress, peer: str, received: str) -> str:
    entries = [entry.strip(" \t\r\n\v\f") for entry in received.split(",")] if received else []
    if settings.trusted_hops:
        if settings.trusted_cidrs and not _in_networks(settings.trusted_cidrs, peer):
            return peer
        if len(entries) < settings.trusted_hops:
            return peer
        named = entries[len(entries) - settings.trusted_hops]
        return named if read_address(named) is not None else peer
    address = peer
    while settings.trusted_cidrs and entries and _in_networks(settings.trusted_cidrs, address):
        candidate = entries.pop()
        if read_address(candidate) is None:
            break
        address = candidate
    return address


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, None when the text is none."""
    try:
        return ip_address(text) if "%" not in text else None
    except ValueError:
        return None


def _in_networks(cidrs: tuple[str, ...], text: str) -> bool:
    address = read_address(text)
    networks = (ip_network(cidr, strict=False) for cidr in cidrs)
    return address is not None and any(
        address.version == one.version and address in one for one in networks
    )


def _is_private(text: str) -> bool:
    if text.startswith(_PRIVATE) or text == "::1":
        return True
    if text.startswith("172."):
        second = text[4:].split(".", 1)[0]
        return second.isdigit() and 16 <= int(second) <= 31
    return False
