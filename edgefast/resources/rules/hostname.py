"""Rules about hostnames of the Gateway API: IP addresses are none.

In: parts that hold a hostname. Out: violations.
Source: Gateway API Hostname and PreciseHostname ("IPs are not allowed"), which their pattern cannot
say; those of our own kinds are in `edge.py`, with their CEL.
Must never: look a name up.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from edgefast.resources.gatewayapi.backendtlspolicy import BackendTLSPolicyValidation
from edgefast.resources.gatewayapi.grpcroute import GRPCRouteSpec
from edgefast.resources.gatewayapi.httproute import HTTPRouteSpec
from edgefast.resources.gatewayapi.httproutefilter import (
    HTTPRequestRedirectFilter,
    HTTPURLRewriteFilter,
)
from edgefast.resources.gatewayapi.listener import Listener
from edgefast.resources.gatewayapi.streamroute import StreamRouteSpec, TLSRouteSpec
from edgefast.resources.rules.rule import RuleBook, Violation

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
        said = check_hostname(name)
        if said:
            yield Violation(("hostnames", index), "Invalid", said)


@BOOK.on(Listener, "hostname")
@BOOK.on(HTTPRequestRedirectFilter, "hostname")
@BOOK.on(HTTPURLRewriteFilter, "hostname")
@BOOK.on(BackendTLSPolicyValidation, "hostname")
def check_own_hostname(
    one: Listener | HTTPRequestRedirectFilter | HTTPURLRewriteFilter | BackendTLSPolicyValidation,
) -> Iterable[Violation]:
    """The host of a listener, of a Location, of an upstream request or of a certificate."""
    said = check_hostname(one.hostname or "")
    return (Violation(("hostname",), "Invalid", said),) if said else ()
