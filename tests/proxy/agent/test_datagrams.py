"""Datagrams of layer 4 through an agent and its workers: no answer is lost while tables change, and a worker that dies is replaced."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.metrics.stats import sum_globals
from proxy.datagram_tables import make_tables
from proxy.living import agent_test, mark_of, until
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


class _Echo(asyncio.DatagramProtocol):
    transport: Any

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.transport.sendto(data, addr)


@contextlib.asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A backend that sends back what comes; its port."""
    loop = asyncio.get_running_loop()
    made, _ = await loop.create_datagram_endpoint(_Echo, local_addr=("127.0.0.1", 0))
    try:
        yield made.get_extra_info("sockname")[1]
    finally:
        made.close()


async def ask(sock: socket.socket, data: bytes, seconds: float = 20.0) -> None:
    """Send once; its answer has to come."""
    loop = asyncio.get_running_loop()
    sock.send(data)
    async with asyncio.timeout(seconds):
        assert await loop.sock_recv(sock, 2048) == data


def client(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.connect(("127.0.0.1", port))
    return sock


async def through_reloads(agent: Agent, port: int, reloads: int) -> int:
    """Ask without a break while tables change and endpoints flip; how many were asked."""
    asked = 0
    over = False

    async def keep_asking(number: int) -> None:
        nonlocal asked
        while not over:
            with client(port) as sock:
                for turn in range(5):
                    await ask(sock, b"%d/%d/%d" % (number, asked, turn))
                    asked += 1

    async with echo() as first, echo() as second:
        assert (await agent.publish(make_tables(port, first))).problems == ()
        async with asyncio.TaskGroup() as tasks:
            for number in range(8):
                tasks.create_task(keep_asking(number))
            for number in range(reloads):
                backends = [(first,), (second,), (first, second)][number % 3]
                tables = make_tables(port, *backends, mark=str(number))
                assert (await agent.publish(tables)).acknowledged
            over = True
    return asked


@agent_test()
async def test_no_answer_is_lost_through_reloads_and_endpoints_that_change(agent: Agent) -> None:
    port = free_port()

    assert await through_reloads(agent, port, 25) > 25
    totals = sum_globals([slot.segment for slot in agent.slots])
    assert totals["stream_datagrams_dropped"] == 0


@pytest.mark.heavy
@agent_test()
async def test_no_answer_is_lost_through_a_thousand_reloads(agent: Agent) -> None:
    port = free_port()

    await through_reloads(agent, port, 1000)


@agent_test()
async def test_a_port_of_udp_comes_and_goes_beside_one_of_tcp(agent: Agent) -> None:
    port = free_port()

    async with echo() as backend:
        await agent.publish(make_tables(port, backend, web=True))
        with client(port) as sock:
            await ask(sock, b"x")
        assert await mark_of(port) == "v1"
        await agent.publish(make_tables(port, backend))
        with client(port) as sock:
            await ask(sock, b"y")
        await until(lambda: len(agent.bound()) == 1, "the TCP port to go")


@agent_test()
async def test_the_datagrams_of_a_worker_that_dies_wait_for_its_successor(agent: Agent) -> None:
    port = free_port()

    async with echo() as backend:
        await agent.publish(make_tables(port, backend))
        socks = [client(port) for _ in range(16)]
        for sock in socks:
            await ask(sock, b"before")
        os.kill(agent.slots[0].pid, signal.SIGKILL)
        for sock in socks:
            await ask(sock, b"behind")
        for sock in socks:
            sock.close()


def _flood(port: int, count: int) -> None:
    """One datagram from each of so many source addresses and ports."""
    for number in range(count):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((f"127.{1 + number % 100}.{number // 100 % 250}.9", 0))
            sock.sendto(b"flood", ("127.0.0.1", port))


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


async def persist(sock: socket.socket) -> None:
    """Ask until an answer comes: the backend's own queue is full now and then."""
    loop = asyncio.get_running_loop()
    for attempt in range(40):
        sock.send(b"%d" % attempt)
        try:
            async with asyncio.timeout(0.5):
                while await loop.sock_recv(sock, 2048) != b"%d" % attempt:
                    pass  # the answer to one before
            return
        except TimeoutError:
            continue
    raise AssertionError("a conversation has ended")


@pytest.mark.heavy
@agent_test()
async def test_a_flood_from_100000_source_ports_harms_nobody_and_costs_no_memory(
    agent: Agent,
) -> None:
    port = free_port()

    async with echo() as backend:
        await agent.publish(make_tables(port, backend))
        kept = [client(port) for _ in range(20)]
        for word in (b"1", b"2"):
            for sock in kept:
                await ask(sock, word)
        await asyncio.to_thread(_flood, port, 20_000)  # all sessions that there can be
        before = [_resident(slot.pid) for slot in agent.slots]
        flood = asyncio.ensure_future(asyncio.to_thread(_flood, port, 100_000))
        while not flood.done():
            for sock in kept:
                await persist(sock)
            await asyncio.sleep(0.05)
        after = [_resident(slot.pid) for slot in agent.slots]
        totals = sum_globals([slot.segment for slot in agent.slots])
        assert totals["stream_sessions_active"] <= 2 * 10_000
        for old, new in zip(before, after, strict=True):
            assert new < old + (16 << 20)
        for sock in kept:
            sock.close()
