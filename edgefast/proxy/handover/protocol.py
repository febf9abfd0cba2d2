"""The handover protocol: all messages between a starting process and a serving one.

In: built by socket_receiver.py (the successor) and socket_sender.py.
Out: MessagePack frames (control/channel.py).

  successor              predecessor (an agent, or a worker without an agent)
  Ask           ->
                <-       Refuse, or Give ... Give (the last one has more=False): both can accept from here on
  Keep          ->       the successor serves; a connection that ends before that changes nothing
                <-       Kept: it accepts no more, and ends when its connections have

Messages are maps, unlike those between agent and worker, because the two sides may have different
releases. A side ignores unknown fields. Incompatible messages have another PROTOCOL, and the
predecessor refuses them with a text.
"""

from __future__ import annotations

import msgspec

__all__ = ["PER_GIVE", "PER_KEEP", "PROTOCOL", "Ask", "Give", "Item", "Keep", "Kept", "Refuse"]

#: Of this conversation; raised when an older side could not follow.
PROTOCOL = 1
#: Descriptors per message, and places per message.
PER_GIVE = 32
PER_KEEP = 512


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Settings that all messages share."""


class Ask(_Message, frozen=True, kw_only=True):
    """`take_over`: from a living agent too; `manager`: the NOTIFY_SOCKET of who asks."""

    protocol: int
    release: str
    pid: int
    take_over: bool
    manager: str = ""


class Refuse(_Message, frozen=True, kw_only=True):
    """Nothing is given."""

    pid: int
    why: str


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What one descriptor is: the name of an operator's server, one of MEMORIES (sockets/inherited.py), or empty for a listener's socket.

    A side that does not know a name closes the descriptor.
    """

    name: str = ""


class Give(_Message, frozen=True, kw_only=True):
    """One descriptor per item; `worker` is -1 for an agent, which has the sockets of all."""

    pid: int
    release: str
    worker: int
    workers: int
    items: tuple[Item, ...]
    more: bool


class Keep(_Message, frozen=True, kw_only=True):
    """The places that the successor serves."""

    places: tuple[tuple[str, int], ...]
    more: bool


class Kept(_Message, frozen=True, kw_only=True):
    """The predecessor accepts no more on these."""
