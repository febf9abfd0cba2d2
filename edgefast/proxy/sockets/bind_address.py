"""Bind addresses: listening addresses, as used by the modules that keep, send and hand over sockets.

In: bind addresses, ports and their transport.
Out: `Place` and `Seat`, plain tuples for messages. Two transports may use the same port number.
Must never: open a socket.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.httpd.address import Address
from edgefast.ir.layer4 import Transport

__all__ = [
    "Place",
    "Seat",
    "host_of",
    "is_of",
    "make_bind_address",
    "show_bind_address",
    "transport_at",
]

#: (bind address, bind port); the address of a UDP socket ends with _DATAGRAMS.
Place = tuple[str, int]
#: A place and the number of its socket: with a number for every worker, at least.
Seat = tuple[str, int, int]

_DATAGRAMS = "/udp"


def make_bind_address(host: str, port: int, transport: Transport = "TCP") -> Place:
    """Return the place of a socket that is bound there."""
    return (host + _DATAGRAMS if transport == "UDP" else host), port


def host_of(place: Place | Seat) -> str:
    """Return the bind address."""
    return place[0].removesuffix(_DATAGRAMS)


def transport_at(place: Place | Seat) -> Transport:
    """Return what the place is one of."""
    return "UDP" if place[0].endswith(_DATAGRAMS) else "TCP"


def is_of(place: Place, listener: ir.Listener) -> bool:
    """Tell whether a listener is served there."""
    return (
        place[1] == listener.bind_port
        and transport_at(place) == ir.transport_of(listener)
        and (not listener.addresses or host_of(place) in listener.addresses)
    )


def show_bind_address(place: Place) -> str:
    """Write it for people."""
    where = str(Address(host_of(place), place[1]))
    return f"{where} (UDP)" if transport_at(place) == "UDP" else where
