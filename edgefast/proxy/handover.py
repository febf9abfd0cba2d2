"""Handover: how a process that serves gives its listening sockets to one that will.

In: a connection from a successor (rendezvous.py). Out: copies of the very sockets, so that no queue is ever
closed; later, when the successor serves on them, the word that this process may let go.

  successor              predecessor (an agent, or a worker whose agent is gone)
  Ask           ->
                <-       Refuse, or Give ... Give (the last one has more=False): both can accept from here on
  Keep          ->       the successor serves; a connection that ends before that changes nothing
                <-       Kept: it accepts no more, and ends when its connections have

Messages are maps, unlike those of messages.py: the two sides may be of different releases. What one does not
know is passed over; what cannot be understood has another PROTOCOL and is refused in words. Must never accept
less before `Keep` than without it, and never wait for a successor without a deadline.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from typing import Protocol

import msgspec

from edgefast import __version__
from edgefast.proxy.channel import Channel, ChannelClosed, ChannelError
from edgefast.proxy.inherited import Place
from edgefast.proxy.rendezvous import is_own

__all__ = [
    "PER_KEEP",
    "PROTOCOL",
    "Ask",
    "Estate",
    "Give",
    "Item",
    "Keep",
    "Kept",
    "Refuse",
    "attend",
    "give",
]

log = logging.getLogger(__name__)

#: Of this conversation; raised when an older side could not follow.
PROTOCOL = 1
#: Seconds for a question on a new connection.
_ASK_DEADLINE = 5.0
#: Seconds that a successor may take to serve: to read, compile and start workers.
_START_DEADLINE = 180.0
#: Seconds for one frame to be taken.
_SEND_DEADLINE = 10.0
#: Descriptors per message, and places per message.
_PER_GIVE = 32
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
    """What one descriptor is: the name of an operator's server, or empty for a listener's socket."""

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


class Estate(Protocol):
    """What a predecessor is asked for."""

    worker: int
    workers: int

    def refuse(self, ask: Ask) -> str:
        """Return why nothing is given, or nothing."""
        ...

    def items(self) -> Sequence[tuple[Item, int]]:
        """List what is given, with descriptors that stay this side's."""
        ...

    async def leave(self, kept: frozenset[Place], pid: int) -> None:
        """Accept no more on `kept`, close the rest in order, and come to an end."""
        ...


async def attend(listener: socket.socket, estate: Estate) -> None:
    """Answer successors one after the other, until one has taken over."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            sock, _ = await loop.sock_accept(listener)
        except OSError as error:
            log.warning("successors cannot be heard: %s", error.strerror)
            await asyncio.sleep(1.0)
            continue
        with sock:
            if not is_own(sock):
                log.warning("a process of another user asked for the listening sockets: refused")
                continue
            try:
                if await give(sock, estate):
                    return
            except (ChannelClosed, ChannelError, TimeoutError) as error:
                log.warning("a successor did not come to serve (%s): going on", error or "too slow")


async def give(sock: socket.socket, estate: Estate) -> bool:
    """Hold one conversation; True when the successor has taken over.

    Raises ChannelClosed, ChannelError, TimeoutError; nothing has changed then.
    """
    channel: Channel[Ask | Keep] = Channel(sock, msgspec.msgpack.Decoder(Ask | Keep))
    async with asyncio.timeout(_ASK_DEADLINE):
        ask = await _receive(channel)
    if not isinstance(ask, Ask):
        raise ChannelError("a successor did not begin with Ask")
    if why := _understood(ask) or estate.refuse(ask):
        async with asyncio.timeout(_SEND_DEADLINE):
            await channel.send(Refuse(pid=os.getpid(), why=why))
        return False
    await _send_items(channel, estate)
    places: list[Place] = []
    async with asyncio.timeout(_START_DEADLINE):
        while True:
            keep = await _receive(channel)
            if not isinstance(keep, Keep):
                raise ChannelError("a successor asked twice")
            places += keep.places
            if not keep.more:
                break
    log.info("process %d (edgefast %s) serves now and takes over", ask.pid, ask.release)
    await estate.leave(frozenset(places), ask.pid)
    try:
        async with asyncio.timeout(_SEND_DEADLINE):
            await channel.send(Kept())
    except (ChannelClosed, TimeoutError) as error:
        log.warning("the successor was not told that it is alone: %s", error)
    return True


def _understood(ask: Ask) -> str:
    if ask.protocol == PROTOCOL:
        return ""
    return (
        f"edgefast {ask.release} hands over by protocol {ask.protocol}, the running {__version__} by "
        f"{PROTOCOL}: stop it first"
    )


async def _receive(channel: Channel[Ask | Keep]) -> Ask | Keep:
    message, descriptors = await channel.receive()
    for descriptor in descriptors:  # no word of a successor brings any
        os.close(descriptor)
    return message


async def _send_items(channel: Channel[Ask | Keep], estate: Estate) -> None:
    items = estate.items()
    # At least one message, so that a successor knows that it was heard.
    for start in range(0, max(1, len(items)), _PER_GIVE):
        part = items[start : start + _PER_GIVE]
        message = Give(
            pid=os.getpid(),
            release=__version__,
            worker=estate.worker,
            workers=estate.workers,
            items=tuple(item for item, _ in part),
            more=start + _PER_GIVE < len(items),
        )
        async with asyncio.timeout(_SEND_DEADLINE):
            await channel.send(message, [fd for _, fd in part])
