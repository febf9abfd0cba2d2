"""Layer 4: the IR of layer 4 connections and datagrams. edgefast.ir has it under the same names.

In: nothing. Out: structs. Must never: import anything of the product but the IR's base.
"""

from __future__ import annotations

from typing import Literal, Protocol

from edgefast.ir.telemetry import Struct

__all__ = [
    "ProxyProtocol",
    "StreamBackend",
    "StreamRoute",
    "StreamSettings",
    "Transport",
    "transport_of",
]

ProxyProtocol = Literal["", "v1", "v2"]
Transport = Literal["TCP", "UDP"]


class _Protocol(Protocol):
    @property
    def protocol(self) -> str: ...


def transport_of(listener: _Protocol) -> Transport:
    """Return what a listener's port is a port of: two listeners of one number stand beside each other when it differs."""
    return "UDP" if listener.protocol == "UDP" else "TCP"


class StreamBackend(Struct, frozen=True, gc=False):
    """One share of the connections of a rule. `cluster` is "" when the reference is invalid: that share is refused."""

    cluster: str = ""
    weight: int = 1
    reason: str = ""  # why `cluster` is "", in words, for dump and explain
    proxy_protocol: ProxyProtocol = ""  # not of UDP: written to the backend before all else


class StreamRoute(Struct, frozen=True, gc=False):
    """Where connections of one server name of a TLS listener, or of a TCP or UDP listener, go: what a shard is compiled from.

    No backend with a weight: every connection is refused (TCP, TLS: reset, UDP: dropped), and `reason` says why.
    """

    listener: str  # Listener.name
    hostname: str  # TLS: as VirtualHost.hostname, asked for by SNI; TCP, UDP: "*"
    route: str = ""  # "TLSRoute namespace/name" as api/model/route_name.py writes it; "" when none
    index: int = 0  # the rule's place in spec.rules
    name: str = ""  # spec.rules[].name
    source: str = ""  # "file:line" or "generation 3", for dump and explain
    reason: str = ""
    # PolicyUnit.name, in the order in which they are asked. A unit that cannot decide about connections refuses them.
    policies: tuple[str, ...] = ()
    # PolicyUnit.name of traffic units, as in Rule; of settings that connections have.
    traffic: tuple[str, ...] = ()
    ceilings: int = 0
    lost: tuple[
        tuple[str, str], ...
    ] = ()  # units that do not apply here, and the winner; for explain
    backends: tuple[StreamBackend, ...] = ()


class StreamSettings(Struct, frozen=True, gc=False):
    """Limits and timeouts of a listener's connections and datagrams (EdgeProxy spec.stream). Per worker unless said otherwise."""

    connect_timeout: int = 2_000  # ms for a backend to take a connection, of all tries together
    idle_timeout: int = 3_600_000  # ms without a byte either way; 0: never
    hello_timeout: int = 10_000  # ms for a whole ClientHello
    session_timeout: int = 60_000  # ms after which a silent UDP session is forgotten
    max_connections: int = 10_000
    max_sessions: int = 10_000  # of UDP
    address_connections: int = 0  # open at a time for each client address (IPv6: /64); 0: no limit
    address_rate: int = (
        0  # new ones a second for each client address, with a burst of as many; 0: no limit
    )
