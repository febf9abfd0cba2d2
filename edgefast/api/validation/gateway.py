"""Gateway: rules about Gateway and ListenerSet: listeners, TLS, addresses, labels.

In: specs and their parts. Out: violations.
Source: CEL of the Gateway API v1.6 Gateway and ListenerSet CRDs, of listeners' filters v1.7.
Must never: decide which protocols this product supports; that goes to the listener's status.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from edgefast.api.gateway.gateway import GatewayInfrastructure, GatewaySpec
from edgefast.api.gateway.listener import Listener, ListenerTLSConfig
from edgefast.api.gateway.listenerset import ListenerSetSpec
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"({_SUBDOMAIN}/)?([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]")
_HOSTNAME = re.compile(rf"(\*\.)?{_SUBDOMAIN}")


@BOOK.on(Listener, "protocol", "tls", "hostname", "filters")
def check_listener(one: Listener) -> Iterable[Violation]:
    """TLS, hostname and filters fit the protocol."""
    protocol, tls = one.protocol, one.tls
    if protocol == "HTTP" and tls is None:
        return
    if one.filters is not None and protocol not in ("HTTP", "HTTPS"):
        yield Violation(("filters",), "Forbidden", f"with protocol {protocol}")
    if protocol in ("HTTP", "TCP", "UDP") and tls is not None:
        yield Violation(("tls",), "Forbidden", f"with protocol {protocol}")
    if protocol == "HTTPS" and tls is not None and tls.mode != "Terminate":
        yield Violation(
            ("tls", "mode"), "NotSupported", f'"{tls.mode}" (supported: Terminate) with HTTPS'
        )
    if protocol == "TLS" and tls is None:
        yield Violation(("tls",), "Required", "with protocol TLS")
    if protocol in ("TCP", "UDP") and one.hostname is not None:
        yield Violation(("hostname",), "Forbidden", f"with protocol {protocol}")


@BOOK.on(ListenerTLSConfig, "mode", "certificate_refs", "options")
def check_listener_tls(tls: ListenerTLSConfig) -> Iterable[Violation]:
    """Termination needs a certificate (or an option that brings one)."""
    if tls.mode == "Terminate" and not tls.certificate_refs and not tls.options:
        return (Violation(("certificateRefs",), "Required", "with mode Terminate"),)
    return ()


@BOOK.on(GatewaySpec, "listeners")
@BOOK.on(ListenerSetSpec, "listeners")
def check_listeners(spec: GatewaySpec | ListenerSetSpec) -> Iterable[Violation]:
    """Port, protocol and hostname together are unique."""
    if len(spec.listeners) < 2:
        return
    seen: dict[tuple[int, str, str | None], str] = {}
    for index, one in enumerate(spec.listeners):
        key = (one.port, one.protocol, one.hostname)
        if key in seen:
            shown = f"port {one.port}, protocol {one.protocol}, hostname {one.hostname or '(none)'}"
            yield Violation(
                ("listeners", index), "Duplicate", f'{shown} (the same as listener "{seen[key]}")'
            )
        seen.setdefault(key, one.name)


@BOOK.on(GatewaySpec, "addresses")
def check_addresses(spec: GatewaySpec) -> Iterable[Violation]:
    """Addresses of one type differ, and hostnames are hostnames."""
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(spec.addresses):
        if one.value is None:
            continue
        if one.type == "Hostname" and not _HOSTNAME.fullmatch(one.value):
            yield Violation(
                ("addresses", index, "value"), "Invalid", f'"{one.value}" (expected a DNS name)'
            )
        if one.type == "IPAddress" and not _is_address(one.value):
            yield Violation(
                ("addresses", index, "value"),
                "Invalid",
                f'"{one.value}" (expected an IPv4 or IPv6 address)',
            )
        if one.type in ("IPAddress", "Hostname"):
            if (one.type, one.value) in seen:
                yield Violation(("addresses", index, "value"), "Duplicate", f'"{one.value}"')
            seen.add((one.type, one.value))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@BOOK.on(GatewayInfrastructure, "labels", "annotations")
def check_infrastructure(one: GatewayInfrastructure) -> Iterable[Violation]:
    """Keys are label keys: an optional DNS prefix, a slash, and a short name."""
    for name, entries in (("labels", one.labels), ("annotations", one.annotations)):
        for key in entries:
            if not _KEY.fullmatch(key) or len(key.split("/")[0]) > 253:
                yield Violation(
                    (name, key), "Invalid", f'"{key}" (expected a key such as example.com/team)'
                )
