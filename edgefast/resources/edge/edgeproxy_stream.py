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
        Meta(description="Time limit to connect to a backend, for all attempts together."),
    ] = None
    idle_timeout: Annotated[
        Duration | None,
        Meta(description="Longest time without data in either direction. 0s: no limit."),
    ] = None
    hello_timeout: Annotated[
        Duration | None,
        Meta(description="Time limit for a complete TLS ClientHello."),
    ] = None
    session_timeout: Annotated[
        Duration | None,
        Meta(description="Time without datagrams after which a UDP session ends."),
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
            description="Most UDP sessions, by client address and port. Above it, edgefast ends "
            "sessions of clients that sent nothing after an answer."
        ),
    ] = None
    address_connections: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | None,
        Meta(
            description="Most open connections of one client address (IPv6: one /64). 0: no limit."
        ),
    ] = None
    address_rate: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | None,
        Meta(
            description="New connections a second of one client address, with a burst of the same "
            "number. 0: no limit."
        ),
    ] = None
