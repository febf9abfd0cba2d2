"""The ordered end: what happens when, seen from clients, with short configured times."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time

import pytest

from edgefast import ir
from edgefast.proxy.agent.agent import Agent
from edgefast.table import Shards, compile_fleet
from proxy.living import agent_test, ask, children, until, with_agent
from proxy.shards import make_fleet
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


def with_backend(port: int, backend: int) -> Shards:
    """One listener that forwards to a backend."""
    listener = ir.Listener(name="default/gateway/http", port=port, bind_port=port, protocol="HTTP")
    rule = ir.Rule(route="default/web", index=0, backends=(ir.BackendRef(cluster="b"),))
    entry = ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0)
    host = ir.VirtualHost(listener=listener.name, hostname="*", rules=(rule,), entries=(entry,))
    cluster = ir.Cluster(name="b", endpoints=(ir.Endpoint(address="127.0.0.1", port=backend),))
    return compile_fleet(
        ir.Fleet(name="x", listeners=(listener,), virtual_hosts=(host,), clusters=(cluster,))
    )


@agent_test(min_drain=0.4, drain_timeout=10.0)
async def test_accepting_goes_on_and_no_connection_is_lost(agent: Agent) -> None:
    port = free_port()
    accepted_at: list[float] = []

    await agent.publish(make_fleet(port))
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)
    await until(lambda: not agent.ready, "drain")
    assert agent.drain.phase == "draining", "readiness fails at once, not after the minimum"
    assert agent.bound()

    async def load() -> None:
        while True:
            try:
                answer = await ask(port)
            except ConnectionRefusedError:
                return  # the only way in which it may end
            assert b"connection: close" in answer.lower()
            accepted_at.append(time.monotonic() - began)

    await asyncio.gather(*(load() for _ in range(8)))
    assert time.monotonic() - began >= 0.4
    assert accepted_at[-1] >= 0.3


@agent_test(workers=1)
async def test_what_waits_in_a_queue_is_served_before_the_socket_closes(agent: Agent) -> None:
    """The worker sleeps through the end of the minimum with connections in its queue."""
    port = free_port()

    await agent.publish(make_fleet(port))
    os.kill(agent.slots[0].pid, signal.SIGSTOP)
    waiting = [asyncio.ensure_future(ask(port)) for _ in range(20)]
    await asyncio.gather(*(connected(port) for _ in range(5)))
    agent.drain.order("the test", min_drain=0.0)
    await until(lambda: agent.drain.phase == "stopping", "stopping")
    assert not agent.bound()
    os.kill(agent.slots[0].pid, signal.SIGCONT)
    answers = await asyncio.gather(*waiting)
    assert all(b"location" in answer.lower() for answer in answers)


async def connected(port: int) -> None:
    """A connection that is made and left, in the queue too."""
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setblocking(False)
    await loop.sock_connect(sock, ("127.0.0.1", port))
    sock.close()


async def silent_backend(arrived: asyncio.Event) -> tuple[asyncio.Server, int]:
    """A backend that takes requests and never answers."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            arrived.set()
            await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("forced", [False, True], ids=["timeout", "second signal"])
def test_a_request_in_flight_holds_the_end_up_but_not_for_ever(forced: bool) -> None:
    port = free_port()
    took: list[float] = []

    async def talk(agent: Agent) -> None:
        began = 0.0
        arrived = asyncio.Event()
        server, backend = await silent_backend(arrived)
        try:
            await agent.publish(with_backend(port, backend))
            request = asyncio.ensure_future(ask(port))
            await asyncio.wait_for(arrived.wait(), 20)
            began = time.monotonic()
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: agent.drain.phase == "stopping", "stopping")
            assert not request.done()
            if forced:
                os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await request
        finally:  # a forced end cancels this conversation too
            took.append(time.monotonic() - began)
            server.close()

    timeout = 30.0 if forced else 0.5
    assert with_agent(talk, drain_timeout=timeout) == (143 if forced else 0)
    assert children() == set()
    if forced:
        assert took[0] < 20, "a ceiling: the drain timeout would be 30 s"
    else:
        assert took[0] >= 0.5


def test_a_request_in_flight_is_answered() -> None:
    port = free_port()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.set()
        await go.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async def talk(agent: Agent) -> None:
        nonlocal seen, go
        seen, go = asyncio.Event(), asyncio.Event()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:  # a loop that is closed with a live server would never end
            await agent.publish(with_backend(port, server.sockets[0].getsockname()[1]))
            request = asyncio.ensure_future(ask(port))
            await asyncio.wait_for(seen.wait(), 20)
            agent.drain.order("the test", min_drain=0.0)
            await until(lambda: agent.drain.phase == "stopping", "stopping")
            with pytest.raises(ConnectionRefusedError):
                while True:  # only connected: a request that is still accepted would wait for `go`
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
            go.set()
            assert (await request).startswith(b"HTTP/1.1 200")

    seen = go = asyncio.Event()
    assert with_agent(talk, drain_timeout=20.0) == 0


def test_a_worker_that_dies_while_draining_is_replaced_by_one_that_drains() -> None:
    port = free_port()

    async def talk(agent: Agent) -> None:
        await agent.publish(make_fleet(port))
        agent.drain.order("the test", min_drain=60.0)
        os.kill(agent.slots[0].pid, signal.SIGKILL)
        await until(lambda: agent.slots[0].restarts == 1 and agent.slots[0].serving, "successor")

        async def closes() -> bool:
            return b"connection: close" in (await ask(port)).lower()

        for _ in range(100):
            if await closes():
                break
        else:
            raise AssertionError("the successor does not drain")
        os.kill(os.getpid(), signal.SIGTERM)  # that will do: the minute need not pass

    assert with_agent(talk, workers=1) == 128 + signal.SIGTERM


@agent_test()
async def test_sigint_and_a_second_order(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    assert agent.drain.order("the test", min_drain=0.2)
    assert not agent.drain.order("again")


@agent_test()
async def test_a_drain_before_the_first_table_ends_too(agent: Agent) -> None:
    agent.drain.order("the test", min_drain=0.0)
