"""Client: the client address of a request, from the forwarding headers (EdgeProxy spec.clientAddress).

In: the connection's address, the head, a listener's settings. Out: `Client`. The twin of
core/exchange/clientaddress.pyx, which works on bytes in a connection; tests compare both.
Must never: believe a header that the settings do not trust.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from edgefast import ir
from edgefast._csrc import lib
from edgefast.netaddr import is_in, is_private, parse_network, read_address

if TYPE_CHECKING:  # which reads a head with what is here
    from edgefast.explain.head import Head, Line


_CLIENT_CERT = "x-forwarded-client-cert"
_OTHER = re.compile("[^a-z0-9]")


def fold_name(name: str) -> str:
    """Return a header's name as it may be read by CGI and what came after it: every sign is a dash."""
    return _OTHER.sub("-", name.lower())


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
    certificate: str = ""  # of the client: "" it is asked for none, "none" it has none, "verified"
    forwarded_cert: str | None = None  # x-forwarded-client-cert as it came


def find_client(
    head: Head,
    source: str,
    settings: ir.ClientAddress,
    *,
    tls: bool = False,
    port: int = 0,
    rule: ir.ListenerTls | None = None,
) -> Client:
    """Return whose request it is; `port` and `rule`: the listener's."""
    found = _find_client(head, source, settings, tls=tls)
    if found.https != tls:  # the client's port is that of the proxy before this one
        port = 443 if found.https else 80
    named = join_values(head, "x-forwarded-host") or ""
    return msgspec.structs.replace(
        found,
        port=port,
        forwarded_host=named,
        certificate=find_certificate(rule),
        forwarded_cert=join_values(head, _CLIENT_CERT, separator=","),
    )


def find_certificate(rule: ir.ListenerTls | None) -> str:
    """Return what an example client shows (Client.certificate): a trusted certificate where it must."""
    if rule is not None and rule.client_rule is not None:
        needed = rule.client_rule.mode == "required" or rule.client_rule.subject
        return "verified" if needed else "none"
    if rule is None or not rule.client_ca:
        return ""
    return "none" if rule.client_insecure_fallback else "verified"


def join_values(head: Head, name: str, but: int = 0, separator: str = ", ") -> str | None:
    """Return the values of all lines of a name, but those with one of these flags; None: there is no such line."""
    found = [
        one.value.decode("utf-8", "surrogateescape")
        for one in head.lines
        if one.name.decode("latin-1").lower() == name and not one.flags & but
    ]
    return separator.join(found) if found else None


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


def drop_untrusted(head: Head, client: Client, about: ir.ForwardedHeaders) -> Head:
    """Return the head as it counts: without what nobody who is trusted says of it (Forwarded, X-Real-IP and others)."""
    lines = tuple(
        one
        for one in head.lines
        if _keeps_line(fold_name(one.name.decode("latin-1")), client, about)
    )
    if not client.believed:
        keeps = _keeps_certificate(client, about)
        lines = tuple(
            one
            for one in lines
            if one.id != lib.EF_H_FORWARDING
            or (keeps and one.name.lower() == _CLIENT_CERT.encode())
        )
    return head if len(lines) == len(head.lines) else msgspec.structs.replace(head, lines=lines)


def _keeps_line(name: str, client: Client, about: ir.ForwardedHeaders) -> bool:
    """Tell whether a header of the client stays that may claim a certificate; the twin of core/head/certificateheaders.pyx."""
    if name.startswith("ssl-client-"):
        return name not in about.names
    return name != _CLIENT_CERT or not about.client_cert or _keeps_certificate(client, about)


def _keeps_certificate(client: Client, about: ir.ForwardedHeaders) -> bool:
    return about.client_cert == "always" or (
        about.client_cert == "forward" and client.certificate == "verified"
    )


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
