"""Layer 4 route: TLSRoute, TCPRoute, UDPRoute: parents and backends of layer 4 traffic; server names for TLS.

In: `gateway.networking.k8s.io` documents. Out: the three kinds. The versions of a kind differ. v1
has one rule, and of a TLSRoute at least one hostname; v1alpha2 has up to 16 rules, and needs none.
An API server converts an object to the requested version: the Structs accept all that any version
allows. `validation/version.py` checks documents.
Source: Gateway API v1.7 `tlsroute_types.go`, `tcproute_types.go`, `udproute_types.go`.
Must never: have a field of its own where HTTPRoute has the same one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.gateway.grpcroute import Route
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import (
    Element,
    Hostname,
    Resource,
    SectionName,
    refuses,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import BackendRef, ParentReference


class StreamRouteRule(Element, frozen=True, kw_only=True):
    """Backends; nothing tells rules of one route apart, so their backends are shares of one whole."""

    name: SectionName | None = None
    backend_refs: Annotated[tuple[BackendRef, ...], Meta(min_length=1, max_length=16)]


class StreamRouteSpec(Element, frozen=True, kw_only=True):
    """`spec` of a TCPRoute or a UDPRoute."""

    parent_refs: Annotated[tuple[ParentReference, ...], Meta(max_length=32)] = ()
    rules: Annotated[tuple[StreamRouteRule, ...], Meta(min_length=1, max_length=16)]
    use_default_gateways: Annotated[Literal["All", "None"] | None, Meta(extra=refuses())] = None

    @property
    def hostnames(self) -> tuple[str, ...]:
        """None: nobody says a name."""
        return ()


class TLSRouteSpec(Element, frozen=True, kw_only=True):
    """`spec` of a TLSRoute; hostnames are compared with the server name of the handshake, none means those of the listener."""

    parent_refs: Annotated[tuple[ParentReference, ...], Meta(max_length=32)] = ()
    hostnames: Annotated[tuple[Hostname, ...], Meta(max_length=1024)] = ()
    rules: Annotated[tuple[StreamRouteRule, ...], Meta(min_length=1, max_length=16)]
    use_default_gateways: Annotated[Literal["All", "None"] | None, Meta(extra=refuses())] = None


class TLSRoute(Resource, frozen=True, kw_only=True):
    """Where connections go whose handshake asks for one of some server names."""

    metadata: ObjectMeta
    spec: TLSRouteSpec
    #: As in HTTPRoute.
    closed: Closed | None = None


class TCPRoute(Resource, frozen=True, kw_only=True):
    """Where the connections of a TCP listener go."""

    metadata: ObjectMeta
    spec: StreamRouteSpec
    #: As in HTTPRoute.
    closed: Closed | None = None


class UDPRoute(Resource, frozen=True, kw_only=True):
    """Where the datagrams of a UDP listener go."""

    metadata: ObjectMeta
    spec: StreamRouteSpec
    #: As in HTTPRoute.
    closed: Closed | None = None


#: Routes of layer 4.
StreamRoute = TLSRoute | TCPRoute | UDPRoute
#: All kinds of routes.
AnyRoute = Route | StreamRoute
STREAM_KINDS = ("TLSRoute", "TCPRoute", "UDPRoute")
