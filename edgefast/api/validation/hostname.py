"""Hostname: rules about hostnames of the Gateway API: an IP address is invalid.

In: parts that hold a hostname. Out: violations.
Source: Gateway API Hostname and PreciseHostname ("IPs are not allowed"), which their pattern cannot
express. `edge.py` has those of edgefast's kinds, with their CEL.
Must never: look a name up.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicyValidation
from edgefast.api.gateway.grpcroute import GRPCRouteSpec
from edgefast.api.gateway.httproute import HTTPRouteSpec
from edgefast.api.gateway.httproutefilter import (
    HTTPRequestRedirectFilter,
    HTTPURLRewriteFilter,
)
from edgefast.api.gateway.layer4_route import StreamRouteSpec, TLSRouteSpec
from edgefast.api.gateway.listener import Listener
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()


def check_hostname(name: str) -> str:
    """Return what is wrong with a name that fits the pattern already, "" when nothing is."""
    if not name[-1:].isdigit():  # no name that people use ends so, and every IPv4 address does
        return ""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return ""
    return f'"{name}" (expected a DNS name; IP addresses are not allowed)'


@BOOK.on(HTTPRouteSpec, "hostnames")
@BOOK.on(GRPCRouteSpec, "hostnames")
@BOOK.on(TLSRouteSpec, "hostnames")
def check_hostnames(
    spec: HTTPRouteSpec | GRPCRouteSpec | TLSRouteSpec | StreamRouteSpec,
) -> Iterable[Violation]:
    """Hosts of a route are names."""
    for index, name in enumerate(spec.hostnames):
        message = check_hostname(name)
        if message:
            yield Violation(("hostnames", index), "Invalid", message)


@BOOK.on(Listener, "hostname")
@BOOK.on(HTTPRequestRedirectFilter, "hostname")
@BOOK.on(HTTPURLRewriteFilter, "hostname")
@BOOK.on(BackendTLSPolicyValidation, "hostname")
def check_own_hostname(
    one: Listener | HTTPRequestRedirectFilter | HTTPURLRewriteFilter | BackendTLSPolicyValidation,
) -> Iterable[Violation]:
    """The host of a listener, of a Location, of an upstream request or of a certificate."""
    message = check_hostname(one.hostname or "")
    return (Violation(("hostname",), "Invalid", message),) if message else ()
