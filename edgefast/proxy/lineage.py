"""Lineage: how a serving process is wired to those before and after it.

In: an agent, the operator's servers, a succession that has begun. Out: parts for `Agent.run`. The order is all
there is to it: this process serves, its predecessor lets go, then it answers on the operator's addresses, is
found by successors, and its workers may outlive it. Must never answer a probe before it is alone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from edgefast.daemon.httpserver import HttpServer
from edgefast.proxy.agent import Agent
from edgefast.proxy.estate import AgentEstate
from edgefast.proxy.handover import attend
from edgefast.proxy.succession import Succession

__all__ = ["join_lineage"]

Part = Callable[[], Coroutine[None, None, None]]


def join_lineage(
    agent: Agent, servers: Mapping[str, HttpServer], succession: Succession
) -> list[Part]:
    """Wire them; the parts are the servers, and the ear for a successor."""
    estate = AgentEstate(agent, servers, succession.close)

    async def on_serving() -> None:
        await succession.complete(agent.bound())
        agent.listeners.take_all()
        if succession.rendezvous is not None:
            agent.outlive(succession.rendezvous.sock.fileno())

    def after_predecessor(server: HttpServer) -> Part:
        async def serve() -> None:
            await succession.completed.wait()
            await server.run()

        return serve

    async def heed_successors() -> None:
        await succession.completed.wait()
        try:
            if succession.rendezvous is not None:
                await attend(succession.rendezvous.sock, estate)
        finally:
            succession.close()

    agent.on_serving = on_serving
    return [*map(after_predecessor, servers.values()), heed_successors]
