"""A real DNS server behind a UDP port: whoever asks it once is answered, whatever becomes of tables and endpoints meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.metrics.stats import sum_globals
from proxy.datagram_tables import make_tables
from proxy.living import agent_test, until
from proxy.nameserver import name_server, resolver
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

CLIENTS, AT_ONCE = 12, 4
PER_SOCKET = 200  # questions, after which a client is a new one: sessions are bounded by address
Pace = Callable[[Callable[[], int]], Awaitable[None]]


async def through_reloads(agent: Agent, port: int, reloads: int, pace: Pace) -> int:
    """Ask without a break; `pace` says when the next table comes. How many questions were asked."""
    asked = 0
    over = False

    async def keep_asking(number: int) -> None:
        nonlocal asked
        while not over:
            async with resolver(port, f"127.0.0.{2 + number}") as client:
                for _ in range(PER_SOCKET // AT_ONCE):
                    await asyncio.gather(
                        *(client.ask((number << 16) + asked % 65536) for _ in range(AT_ONCE))
                    )
                    asked += AT_ONCE

    async with name_server() as first, name_server() as second:
        assert (await agent.publish(make_tables(port, first))).problems == ()
        async with asyncio.TaskGroup() as tasks:
            for number in range(CLIENTS):
                tasks.create_task(keep_asking(number))
            for number in range(reloads):
                await pace(lambda: asked)
                backends = [(first, second), (second,), (first,)][number % 3]
                tables = make_tables(port, *backends, mark=str(number))
                assert (await agent.publish(tables)).acknowledged
            over = True
    # A worker counts an answer when it has sent it: its client may have it before.
    await until(lambda: count(agent, "sent") >= asked, "the last answers' count")
    assert count(agent, "dropped") == 0
    assert count(agent, "received") == count(agent, "sent") == asked
    return asked


def count(agent: Agent, what: str) -> int:
    totals = sum_globals([slot.segment for slot in agent.slots])
    return totals[f"stream_datagrams_{what}"]


@agent_test()
async def test_every_question_is_answered_through_reloads(agent: Agent) -> None:
    port = free_port()

    async def so_many_more(asked: Callable[[], int]) -> None:
        before = asked()
        await until(lambda: asked() >= before + 200, "answers")

    assert await through_reloads(agent, port, 9, so_many_more) >= 1800


@pytest.mark.heavy
@agent_test()
async def test_every_question_is_answered_through_a_minute_of_reloads(agent: Agent) -> None:
    port = free_port()

    async def a_second(asked: Callable[[], int]) -> None:
        await asyncio.sleep(1)

    assert await through_reloads(agent, port, 60, a_second) >= 20_000
