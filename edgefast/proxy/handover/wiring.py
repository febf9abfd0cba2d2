"""Wiring: connects a starting agent to its predecessor and its successor.

In: an agent, the operator's servers, a take-over in progress.
Out: parts for `Agent.run`, in a fixed order. This process serves; its predecessor releases the
sockets. Then this process answers on the operator's addresses, successors can find it, and its
workers may outlive it.
Must never: answer a probe before its predecessor has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from edgefast.httpd.control_socket import ControlSocket
from edgefast.httpd.server import HttpServer
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.handover.agent_predecessor import AgentPredecessor
from edgefast.proxy.handover.socket_receiver import TakeOver
from edgefast.proxy.handover.socket_sender import serve_successors

__all__ = ["wire_handover"]

Part = Callable[[], Coroutine[None, None, None]]


def wire_handover(
    agent: Agent,
    servers: Mapping[str, HttpServer],
    takeover: TakeOver,
    orders: ControlSocket | None = None,
) -> list[Part]:
    """Wire them; the parts are the servers, and the ear for a successor."""

    def on_leave() -> None:
        takeover.close()
        if orders is not None:
            orders.retire()

    predecessor = AgentPredecessor(agent, servers, on_leave)

    if not takeover.completed.is_set():
        agent.limits.release_ownership()  # until they that serve with it have let go

    async def on_serving() -> None:
        await takeover.complete(agent.bound())
        agent.limits.take_charge()
        agent.listeners.take_all()
        if takeover.handover_socket is not None:
            agent.outlive(takeover.handover_socket.sock.fileno())

    def after_predecessor(server: HttpServer | ControlSocket) -> Part:
        async def serve() -> None:
            await takeover.completed.wait()
            await server.run()

        return serve

    async def answer_successors() -> None:
        await takeover.completed.wait()
        try:
            if takeover.handover_socket is not None:
                await serve_successors(takeover.handover_socket.sock, predecessor)
        finally:
            takeover.close()

    agent.on_serving = on_serving
    serving = (*servers.values(), *((orders,) if orders is not None else ()))
    return [*map(after_predecessor, serving), answer_successors]
