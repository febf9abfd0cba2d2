"""What workers count together, with real processes: bounds hold for all of them, and what a dead one held is given back."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from edgefast import ir
from edgefast.proxy.agent.agent import Agent
from edgefast.table import Shards, compile_fleet
from proxy.living import agent_test, until
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

_GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Backend:
    """Answers when it is told to; knows how many requests it has at once."""

    def __init__(self, answer: bytes = b"") -> None:
        self.answer = answer  # at once; b"": when `go` is set
        self.go = asyncio.Event()
        self.held = self.most = self.count = self.connections = self.most_connections = 0
        self.port = 0

    async def __aenter__(self) -> Backend:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.most_connections = max(self.most_connections, self.connections)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.held += 1
                self.count += 1
                self.most = max(self.most, self.held)
                try:
                    if not self.answer:
                        gone = asyncio.ensure_future(reader.read(1))
                        going = asyncio.ensure_future(self.go.wait())
                        await asyncio.wait({gone, going}, return_when=asyncio.FIRST_COMPLETED)
                        if gone.done():
                            going.cancel()
                            return
                        gone.cancel()
                        await asyncio.gather(gone, return_exceptions=True)
                finally:
                    self.held -= 1
                writer.write(self.answer or _GOOD)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.connections -= 1
            writer.close()


def table(port: int, traffic: ir.Traffic, *ports: int) -> Shards:
    """A route to these ports that is treated so."""
    listener = ir.Listener(name="ns/gw/http", port=port, bind_port=port, protocol="HTTP")
    name, unit = "service/ns/web/80", "traffic/ns/t"
    rule = ir.Rule(
        route="ns/web", index=0, backends=(ir.BackendRef(cluster=name),), traffic=(unit,)
    )
    entry = ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0)
    host = ir.VirtualHost(listener=listener.name, hostname="*", rules=(rule,), entries=(entry,))
    endpoints = tuple(ir.Endpoint(address="127.0.0.1", port=one) for one in ports)
    return compile_fleet(
        ir.Fleet(
            name="standalone",
            listeners=(listener,),
            virtual_hosts=(host,),
            clusters=(ir.Cluster(name=name, endpoints=endpoints, treatments=((0, (unit,)),)),),
            policies=(ir.PolicyUnit(name=unit, traffic=traffic),),
        )
    )


async def get(port: int) -> int:
    """The status of one request, on a connection of its own; 0: it was cut."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        return int(answer[9:12]) if answer else 0
    except ConnectionError:
        return 0
    finally:
        writer.close()


@agent_test(workers=2)
async def test_a_bound_holds_for_all_workers_and_survives_one(agent: Agent) -> None:
    port = free_port()
    async with Backend() as backend:
        await agent.publish(table(port, ir.Traffic(max_requests=6), backend.port))
        asked = [asyncio.create_task(get(port)) for _ in range(40)]
        await until(lambda: sum(one.done() for one in asked) == 34, "34 are refused")
        assert {one.result() for one in asked if one.done()} == {503}
        await until(lambda: backend.held == 6, "six are there")
        await until(lambda: sum(slot.active for slot in agent.slots) == 6, "word of them")
        slot = max(agent.slots, key=lambda slot: slot.active)
        pid = slot.pid
        os.kill(pid, signal.SIGKILL)
        await until(lambda: slot.serving and slot.pid != pid, "a successor")
        await until(lambda: backend.held < 6, "those of the dead one are gone")
        left = backend.held
        more = [asyncio.create_task(get(port)) for _ in range(40)]
        await until(
            lambda: sum(one.done() for one in more) == 40 - (6 - left), "the rest is refused"
        )
        backend.go.set()
        assert sorted(await asyncio.gather(*more)) == [200] * (6 - left) + [503] * (34 + left)
        await asyncio.gather(*asked)
        assert backend.most <= 6
