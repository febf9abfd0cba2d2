"""Socket sender: transfers the listening sockets of a serving process to its successor.

In: a connection from a successor (rendezvous_socket.py).
Out: copies of the same sockets, so that no accept queue is ever closed; later, when the successor
serves them, the notice that this process may release them (protocol.py).
Must never: accept less before `Keep` than without it, or wait for a successor without a deadline.
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
from edgefast.proxy.control.channel import Channel, ChannelClosed, ChannelError
from edgefast.proxy.handover.protocol import PER_GIVE, PROTOCOL, Ask, Give, Item, Keep, Kept, Refuse
from edgefast.proxy.handover.rendezvous_socket import is_own
from edgefast.proxy.sockets.bind_address import Place

__all__ = ["Predecessor", "serve_successors", "give"]

log = logging.getLogger(__name__)

#: Seconds for a question on a new connection.
_ASK_DEADLINE = 5.0
#: Seconds that a successor may take to serve: to read, compile and start workers.
_START_DEADLINE = 180.0
#: Seconds for one frame to be taken.
_SEND_DEADLINE = 10.0


class Predecessor(Protocol):
    """What a predecessor is asked for."""

    worker: int
    workers: int

    def refuse(self, request: Ask) -> str:
        """Return why nothing is given, or nothing."""
        ...

    def items(self) -> Sequence[tuple[Item, int]]:
        """List what is given, with descriptors that stay this side's."""
        ...

    async def leave(self, kept: frozenset[Place], pid: int) -> None:
        """Accept no more on `kept`, close the rest in order, and come to an end."""
        ...


async def serve_successors(listener: socket.socket, predecessor: Predecessor) -> None:
    """Answer successors one after the other, until one has taken over."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            sock, _ = await loop.sock_accept(listener)
        except OSError as error:
            log.warning("handover: requests of successors cannot be received: %s", error.strerror)
            await asyncio.sleep(1.0)
            continue
        with sock:
            if not is_own(sock):
                log.warning(
                    "handover: refused a process of another user that asked for the listening "
                    "sockets"
                )
                continue
            try:
                if await give(sock, predecessor):
                    return
            except (ChannelClosed, ChannelError, TimeoutError) as error:
                log.warning(
                    "handover: the successor did not start to serve (%s); this process continues",
                    error or "too slow",
                )


async def give(sock: socket.socket, predecessor: Predecessor) -> bool:
    """Run the handover protocol once; True when the successor has taken over.

    Raises ChannelClosed, ChannelError, TimeoutError; nothing has changed then.
    """
    channel: Channel[Ask | Keep] = Channel(sock, msgspec.msgpack.Decoder(Ask | Keep))
    async with asyncio.timeout(_ASK_DEADLINE):
        request = await _receive(channel)
    if not isinstance(request, Ask):
        raise ChannelError("the first message of a successor was not Ask")
    if why := _understood(request) or predecessor.refuse(request):
        async with asyncio.timeout(_SEND_DEADLINE):
            await channel.send(Refuse(pid=os.getpid(), why=why))
        return False
    await _send_items(channel, predecessor)
    places: list[Place] = []
    async with asyncio.timeout(_START_DEADLINE):
        while True:
            keep = await _receive(channel)
            if not isinstance(keep, Keep):
                raise ChannelError("a successor asked twice")
            places += keep.places
            if not keep.more:
                break
    log.info("process %d (edgefast %s) serves now and has taken over", request.pid, request.release)
    await predecessor.leave(frozenset(places), request.pid)
    try:
        async with asyncio.timeout(_SEND_DEADLINE):
            await channel.send(Kept())
    except (ChannelClosed, TimeoutError) as error:
        log.warning("handover: the final message to the successor failed: %s", error)
    return True


def _understood(request: Ask) -> str:
    if request.protocol == PROTOCOL:
        return ""
    return f"edgefast {request.release} needs handover protocol {request.protocol}, but the running edgefast {__version__} has protocol {PROTOCOL}; stop the running process first"


async def _receive(channel: Channel[Ask | Keep]) -> Ask | Keep:
    message, descriptors = await channel.receive()
    for descriptor in descriptors:  # no word of a successor brings any
        os.close(descriptor)
    return message


async def _send_items(channel: Channel[Ask | Keep], predecessor: Predecessor) -> None:
    items = predecessor.items()
    # At least one message, so that a successor knows that it was heard.
    for start in range(0, max(1, len(items)), PER_GIVE):
        part = items[start : start + PER_GIVE]
        message = Give(
            pid=os.getpid(),
            release=__version__,
            worker=predecessor.worker,
            workers=predecessor.workers,
            items=tuple(item for item, _ in part),
            more=start + PER_GIVE < len(items),
        )
        async with asyncio.timeout(_SEND_DEADLINE):
            await channel.send(message, [fd for _, fd in part])
