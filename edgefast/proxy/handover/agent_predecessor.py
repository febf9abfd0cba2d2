"""AgentPredecessor: the sockets that a serving agent transfers to its successor, and the agent's exit.

In: the request of a starting process (socket_sender.py).
Out: copies of the listeners' and the operator's servers' sockets; then a normal drain, except that
accepting stops at once and accept queues stay, because the successor serves them.
Must never: transfer to a second gateway without an explicit take-over option.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from edgefast.httpd.server import HttpServer
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.handover.protocol import Ask, Item
from edgefast.proxy.sockets.bind_address import Place
from edgefast.proxy.sockets.inherited import MEMORY, TICKETS

__all__ = ["AgentPredecessor"]


class AgentPredecessor:
    """The `Predecessor` (socket_sender.py) of a living agent."""

    worker = -1

    def __init__(
        self, agent: Agent, servers: Mapping[str, HttpServer], on_leave: Callable[[], None]
    ) -> None:
        self._agent = agent
        self._servers = servers
        self._on_leave = on_leave
        self.workers = agent.settings.workers

    def refuse(self, request: Ask) -> str:
        """Return why nothing is given."""
        if not request.take_over:
            return "it serves; pass --take-over to replace it"
        if (manager := os.environ.get("NOTIFY_SOCKET", "")) and manager != request.manager:
            return "a service manager runs it; restart it there (systemctl restart)"
        if not self._agent.serving or self._agent.drain.phase == "stopping":
            return "it does not serve yet or any more; try again when it is ready or has ended"
        return ""

    def items(self) -> Sequence[tuple[Item, int]]:
        """List all sockets, the memory that rate limits are counted in, and the one of session tickets' keys."""
        given = [(Item(name=name), one.fileno()) for name, one in self._servers.items()]
        given.append((Item(name=MEMORY), self._agent.limits.fd))
        given.append((Item(name=TICKETS), self._agent.tickets.fd))
        return [*given, *((Item(), fd) for fd in self._agent.listeners.descriptors())]

    async def leave(self, kept: frozenset[Place], pid: int) -> None:
        """Stop accepting, leave the queues of `kept` to the successor, and drain."""
        self._agent.keeper.release_ownership()
        self._agent.limits.release_ownership()
        for server in self._servers.values():
            server.retire()
        self._agent.drain.leave(kept, f"process {pid} has taken over")
        self._on_leave()
