"""Connections of layer 4 through an agent and its workers: passed on, through tables that change, up to the end of a drain."""

from __future__ import annotations

import asyncio
import contextlib
import os
import zlib
from collections.abc import AsyncIterator

import pytest

from edgefast import ir
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.metrics.stats import sum_globals
from edgefast.table import Shards, compile_fleet
from proxy.living import agent_test, until, with_agent
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

LISTENER = "default/gateway/db"


def make_tables(port: int, *backends: int, name: str = "c", mark: str = "") -> Shards:
    """A TCP listener whose connections go to these loopback ports; `mark` makes two of them differ."""
    fleet = ir.Fleet(
        name="standalone",
        listeners=(ir.Listener(name=LISTENER, port=port, bind_port=port, protocol="TCP"),),
        stream_routes=(
            ir.StreamRoute(
                listener=LISTENER,
                hostname="*",
                source=mark,
                backends=(ir.StreamBackend(cluster=name),),
            ),
        ),
        clusters=(
            ir.Cluster(
                name=name,
                endpoints=tuple(ir.Endpoint(address="127.0.0.1", port=one) for one in backends),
            ),
        ),
    )
    return compile_fleet(fleet)


@contextlib.asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A backend that sends back what comes; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            if not writer.transport.is_closing():
                writer.write_eof()
            await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def stream(port: int, size: int, stop: asyncio.Event) -> int:
    """Send at least so many bytes, until told to stop; check that they come back. How many there were."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = crc = 0

    async def send() -> None:
        nonlocal sent, crc
        while sent < size or not stop.is_set():
            data = os.urandom(8192)
            crc = zlib.crc32(data, crc)
            sent += len(data)
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0.001)
        writer.write_eof()

    sending = asyncio.ensure_future(send())
    back = got = 0
    while data := await asyncio.wait_for(reader.read(65536), 60):
        back = zlib.crc32(data, back)
        got += len(data)
    await sending
    writer.transport.abort()
    assert (got, back) == (sent, crc)
    return sent


async def through_reloads(agent: Agent, port: int, reloads: int) -> None:
    """Streams of several clients while tables change and endpoints flip."""
    async with echo() as first, echo() as second:
        assert (await agent.publish(make_tables(port, first))).problems == ()
        stop = asyncio.Event()
        streams = [asyncio.ensure_future(stream(port, 100_000, stop)) for _ in range(6)]
        for number in range(reloads):
            backends = (first, second) if number % 3 == 0 else (second,)
            name = "c" if number % 5 else "d"
            tables = make_tables(port, *backends, name=name, mark=str(number))
            assert (await agent.publish(tables)).acknowledged
            streams.append(asyncio.ensure_future(stream(port, 1, stop)))
            if len(streams) > 40:
                stop.set()
                await asyncio.gather(*streams)
                stop.clear()
                streams.clear()
        stop.set()
        await asyncio.gather(*streams)
        await until(lambda: not count(agent, "stream_connections_active"), "the end of all")


def count(agent: Agent, name: str) -> int:
    return sum_globals([slot.segment for slot in agent.slots])[name]


@agent_test()
async def test_streams_are_whole_through_reloads_and_endpoints_that_change(agent: Agent) -> None:
    port = free_port()

    await through_reloads(agent, port, 25)


@pytest.mark.heavy
@agent_test()
async def test_streams_are_whole_through_a_thousand_reloads(agent: Agent) -> None:
    port = free_port()

    await through_reloads(agent, port, 1000)


def test_a_drain_waits_for_connections_that_end_in_time() -> None:
    port = free_port()
    done: list[int] = []

    async def talk(agent: Agent) -> None:
        async with echo() as backend:
            await agent.publish(make_tables(port, backend))
            stop = asyncio.Event()
            streams = [asyncio.ensure_future(stream(port, 1, stop)) for _ in range(4)]
            await until(lambda: count(agent, "stream_connections_active") == 4, "connections")
            agent.drain.order("the test says so", min_drain=0.0)
            await asyncio.sleep(0)
            stop.set()
            done.extend(await asyncio.gather(*streams))

    assert with_agent(talk) == 0
    assert len(done) == 4


def test_a_connection_is_reset_at_the_end_of_a_drain() -> None:
    port = free_port()
    ends: list[bool] = []

    async def talk(agent: Agent) -> None:
        async with echo() as backend:
            await agent.publish(make_tables(port, backend))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            agent.drain.order("the test says so", min_drain=0.0)
            try:
                await asyncio.wait_for(reader.read(), 60)
            except ConnectionResetError:
                ends.append(True)
            writer.transport.abort()

    with_agent(talk, drain_timeout=0.3)
    assert ends == [True]
