"""OrphanedWorker: a worker without an agent serves until the next agent takes over.

In: the worker's acceptors, and the handover socket that the agent left to it.
Out: its sockets to a successor, and its end: after the take-over, when no successor came in time,
or on SIGTERM. Its table no longer changes and no process replaces it, so its remaining time is
short.
Must never: outlive its bounds, or end without a log line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

from edgefast.proxy.handover.protocol import Ask, Item
from edgefast.proxy.handover.socket_sender import serve_successors
from edgefast.proxy.sockets.bind_address import Place
from edgefast.proxy.worker.acceptors import Acceptors

__all__ = ["ORPHAN_LIFE", "OrphanedWorker"]

log = logging.getLogger(__name__)

#: Seconds that a worker accepts without an agent: longer than supervisors wait before they start again, and short
#: enough for certificates and endpoints of the last table.
ORPHAN_LIFE = 60.0
#: Seconds that a successor which has asked may take on top.
_STARTING = 180.0


class OrphanedWorker:
    """The `Predecessor` (handover/socket_sender.py) of a worker without agent."""

    def __init__(
        self,
        worker: int,
        workers: int,
        acceptors: Acceptors,
        drain: Callable[[], None],
        ended: Callable[[], Awaitable[None]],
        memories: Mapping[str, int],
        order: asyncio.Event,
    ) -> None:
        """`drain` orders connections to end; `ended` waits until there are none. `memories`: descriptors of MEMORIES (sockets/inherited.py).

        `order`: SIGTERM has come.
        """
        self.worker = worker
        self.workers = workers
        self._acceptors = acceptors
        self._drain = drain
        self._ended = ended
        self._memories = memories
        self._was_requested = False
        self._order = order

    async def run(self, handover_socket: socket.socket, drain_timeout: float) -> None:
        """Serve, hand over, and return when all is over."""
        log.error(
            "the agent ended; this worker (process %d) serves its last table for at most %g s, "
            "until another edgefast takes over; SIGTERM ends it",
            os.getpid(),
            ORPHAN_LIFE,
        )
        relieved = await self._serve(handover_socket)
        handover_socket.close()
        if not relieved:
            log.error("no other edgefast took over; new connections are refused")
            self._drain()
            await self._acceptors.close_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(drain_timeout):
                await self._ended()
        log.warning("worker %d: agent ended and no replacement took over; exiting", self.worker)

    async def _serve(self, handover_socket: socket.socket) -> bool:
        """Return whether a successor has taken over."""
        attending = asyncio.ensure_future(serve_successors(handover_socket, self))
        ordered = asyncio.ensure_future(self._order.wait())
        try:
            for life in (ORPHAN_LIFE, _STARTING):
                await asyncio.wait(
                    (attending, ordered), timeout=life, return_when=asyncio.FIRST_COMPLETED
                )
                if attending.done() or ordered.done() or not self._was_requested:
                    break
            return attending.done() and attending.exception() is None
        finally:
            for task in (attending, ordered):
                task.cancel()
            await asyncio.gather(attending, ordered, return_exceptions=True)

    # --- the estate -----------------------------------------------------------------------------

    def refuse(self, request: Ask) -> str:
        """Give to any: nobody else will ever relieve this worker."""
        return ""

    def items(self) -> Sequence[tuple[Item, int]]:
        """List the sockets of this worker, and the memories that it shares with the others."""
        self._was_requested = True
        sockets = ((Item(), fd) for fd in self._acceptors.descriptors())
        memories = ((Item(name=name), fd) for name, fd in self._memories.items())
        return [*memories, *sockets]

    async def leave(self, kept: frozenset[Place], pid: int) -> None:
        """Accept no more; what is not kept is emptied and closed."""
        self._drain()
        await self._acceptors.leave(kept)
