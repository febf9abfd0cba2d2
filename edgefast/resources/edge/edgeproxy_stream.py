"""Stream settings of EdgeProxy: limits and timeouts of connections and datagrams that are passed on unread.

In: `spec.stream` of an EdgeProxy. Out: `ProxyStream`; every field may be absent, as everywhere in EdgeProxy.
Source: edgefast/irstream.py, where the units stand.
Must never: have a default; edgeproxy_defaults.py has them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.resources.model.fields import Duration, Element

#: Versions of the PROXY protocol that are written to backends.
ProxyProtocol = Literal["v1", "v2"]


class ProxyStream(Element, frozen=True, kw_only=True):
    """Limits and timeouts of TLS, TCP and UDP listeners, per worker."""

    connect_timeout: Annotated[
        Duration | None,
        Meta(description="Time for a backend to take a connection, of all tries together."),
    ] = None
    idle_timeout: Annotated[
        Duration | None,
        Meta(description="Time without a byte either way; 0s: never."),
    ] = None
    hello_timeout: Annotated[
        Duration | None,
        Meta(description="Time for a whole ClientHello of TLS."),
    ] = None
    session_timeout: Annotated[
        Duration | None,
        Meta(description="Silence after which a client of UDP is forgotten."),
    ] = None
    max_connections: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        Meta(
            description="Connections of a listener. When all are in use, edgefast closes the connection that has been "
            "idle for longest, of the client address (IPv6: one /64) with most connections, for an address "
            "with fewer; otherwise it refuses and counts the new connection."
        ),
    ] = None
    max_sessions: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        Meta(
            description="Clients of UDP that are remembered, by address and port; past it those give way that have not spoken again after an answer."
        ),
    ] = None
    address_connections: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | None,
        Meta(
            description="Connections that one client address (IPv6: one /64) may have open; 0: any number."
        ),
    ] = None
    address_rate: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | None,
        Meta(
            description="New ones a second for one client address, with a burst of as many; 0: any number."
        ),
    ] = None
