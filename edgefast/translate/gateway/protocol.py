"""Protocol: which listener protocols are served, which routes each takes, and which can share a port.

In: the protocol of a listener. Out: constants and messages. `SERVED` is the only list of what the
data plane serves. A protocol that is not in it is UnsupportedProtocol, and no conformance feature
of it is claimed.
Source: Gateway API ProtocolType, GatewaySpec.listeners ("distinct").
Must never: name a protocol before the data plane serves it.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast import ir

__all__ = [
    "KINDS_OF",
    "SERVED",
    "STREAMS",
    "family_of",
    "has_port_alone",
    "is_stream",
    "port_name",
    "route_kinds",
    "served",
    "transport_of",
]

#: Protocols that the data plane serves.
SERVED: tuple[str, ...] = ("HTTP", "HTTPS", "TLS", "TCP", "UDP")
#: Protocols of layer 4.
STREAMS = frozenset({"TLS", "TCP", "UDP"})
_HTTP = ("HTTPRoute", "GRPCRoute")
#: Kinds of routes that a listener of each protocol takes.
KINDS_OF: Mapping[str, tuple[str, ...]] = {
    "HTTP": _HTTP,
    "HTTPS": _HTTP,
    "TLS": ("TLSRoute",),
    "TCP": ("TCPRoute",),
    "UDP": ("UDPRoute",),
}


def served() -> tuple[str, ...]:
    """Return the protocols that the data plane serves."""
    return SERVED


def route_kinds() -> tuple[str, ...]:
    """Return the kinds of routes that any listener takes."""
    return tuple(dict.fromkeys(kind for one in SERVED for kind in KINDS_OF[one]))


def is_stream(protocol: str) -> bool:
    """Tell whether connections or datagrams are passed on as they are."""
    return protocol in STREAMS


def family_of(protocol: str) -> str:
    """Return what the listeners of one port have in common: those of TLS are told apart by the server name, terminated or not."""
    return "HTTPS or TLS" if protocol in ("HTTPS", "TLS") else protocol


def has_port_alone(protocol: str) -> bool:
    """Tell whether nobody can stand beside a listener on its port: nobody says a host's name there, and a hostname is ignored."""
    return protocol in ("TCP", "UDP")


def port_name(protocol: str, port: int) -> str:
    """Return the name of a Service's port: the same for all listeners that may share it, since kube-proxy knows endpoints by it."""
    return f"{'https' if protocol == 'TLS' else protocol.lower()}-{port}"


def transport_of(protocol: str) -> ir.Transport:
    """Return what a port of a protocol is a port of: one number of two transports is two ports."""
    return "UDP" if protocol == "UDP" else "TCP"
