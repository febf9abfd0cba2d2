"""Client: the client address of a request, from the forwarding headers (EdgeProxy spec.clientAddress).

In: the connection's address, the head, a listener's settings. Out: `Client`. The twin of
core/exchange/clientaddress.pyx, which works on bytes in a connection; tests compare both.
Must never: believe a header that the settings do not trust.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from edgefast import ir
from edgefast._csrc import lib
from edgefast.netaddr import is_in, is_private, parse_network, read_address

if TYPE_CHECKING:  # which reads a head with what is here
    from edgefast.explain.head import Head, Line


class Client(msgspec.Struct, frozen=True):
    """Who asked."""

    peer: str  # the connection's other end
    address: str  # the client that is believed
    received: str | None  # x-forwarded-for as it counts; None: only the peer speaks
    internal: bool
    believed: bool = False  # what the peer says of the request counts, besides x-forwarded-for
    https: bool = False  # what the client speaks
    port: int = 0  # the port that the client asked, as far as it is known
    forwarded_host: str = ""  # x-forwarded-host as it came


def find_client(
    head: Head, source: str, settings: ir.ClientAddress, *, tls: bool = False, port: int = 0
) -> Client:
    """Return whose request it is; `port`: the listener's."""
    found = _find_client(head, source, settings, tls=tls)
    if found.https != tls:  # the client's port is that of the proxy before this one
        port = 443 if found.https else 80
    named = join_values(head, "x-forwarded-host") or ""
    return msgspec.structs.replace(found, port=port, forwarded_host=named)


def join_values(head: Head, name: str, but: int = 0) -> str | None:
    """Return the values of all lines of a name, but those with one of these flags; None: there is no such line."""
    found = [
        one.value.decode("utf-8", "surrogateescape")
        for one in head.lines
        if one.name.decode("latin-1").lower() == name and not one.flags & but
    ]
    return ", ".join(found) if found else None


def _find_client(head: Head, source: str, settings: ir.ClientAddress, *, tls: bool) -> Client:
    peer = _canonical(source) or source
    listed = [one.value for one in head.lines if one.id == lib.EF_H_X_FORWARDED_FOR]
    if not listed and settings.trusted_hops == 0 and not settings.trusted_cidrs:
        return Client(peer, peer, None, _is_private(peer), https=tls)
    received, entries = _split(head.lines)
    believed = _is_believed(settings, peer, entries)
    address = _believe(settings, peer, entries) if believed else peer
    https = find_scheme(head.lines, source, settings, tls=tls)
    return Client(peer, address, received, not received and _is_private(address), believed, https)


def find_scheme(
    lines: Iterable[Line], source: str, settings: ir.ClientAddress, *, tls: bool
) -> bool:
    """Tell whether the client uses https: by X-Forwarded-Proto of a peer in trustedCIDRs, else by the connection."""
    if (
        not settings.trusted_cidrs
    ):  # a hop count covers addresses only; it does not prove that a proxy sets the scheme
        return tls
    lines = tuple(lines)
    message = [one.value.lower() for one in lines if one.id == lib.EF_H_X_FORWARDED_PROTO]
    if len(message) != 1 or message[0] not in (b"http", b"https"):
        return tls
    believed = _is_believed(settings, _canonical(source) or source, _split(lines)[1])
    return message[0] == b"https" if believed else tls


def _split(lines: Iterable[Line]) -> tuple[str, list[str]]:
    """Return x-forwarded-for as one line, and its entries."""
    listed = [one.value for one in lines if one.id == lib.EF_H_X_FORWARDED_FOR]
    received = ",".join(one.decode("utf-8", "surrogateescape") for one in listed if one)
    return received, [one.strip(" \t\r\n\v\f") for one in received.split(",")] if received else []


def drop_untrusted(head: Head, client: Client) -> Head:
    """Return the head as it counts: without what nobody who is trusted says of it (Forwarded, X-Real-IP and others)."""
    if client.believed:
        return head
    lines = tuple(one for one in head.lines if one.id != lib.EF_H_FORWARDING)
    return msgspec.structs.replace(head, lines=lines)


def _is_believed(settings: ir.ClientAddress, peer: str, entries: list[str]) -> bool:
    if settings.trusted_cidrs and not _in_networks(settings.trusted_cidrs, peer):
        return False
    return len(entries) >= settings.trusted_hops and (
        settings.trusted_hops > 0 or bool(settings.trusted_cidrs)
    )


def _believe(settings: ir.ClientAddress, peer: str, entries: list[str]) -> str:
    if settings.trusted_hops:
        named = entries[len(entries) - settings.trusted_hops]
        return _canonical(named) or peer
    address = peer
    while settings.trusted_cidrs and entries and _in_networks(settings.trusted_cidrs, address):
        candidate = _canonical(entries.pop())
        if not candidate:
            break
        address = candidate
    return address


def _canonical(text: str) -> str:
    """Return an address in its one spelling, "" when the text is none."""
    address = read_address(text)
    return "" if address is None else str(address)


def _in_networks(cidrs: tuple[str, ...], text: str) -> bool:
    address = read_address(text)
    return address is not None and any(is_in(address, parse_network(cidr)) for cidr in cidrs)


def _is_private(text: str) -> bool:
    address = read_address(text)
    return address is not None and is_private(address)
