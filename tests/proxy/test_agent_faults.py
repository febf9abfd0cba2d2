"""The agent and what goes wrong: tables that kill workers, workers that hang or never start, parts that fail."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from edgefast.proxy import settings, workers
from edgefast.proxy.agent import Agent
from edgefast.table import Shards
from edgefast.table.shards import make_resource
from proxy.living import children, mark_of, until, with_agent
from proxy.tables import make_fleet, with_cluster
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


def test_a_table_that_kills_workers_is_taken_back() -> None:
    port = free_port()

    async def talk(agent: Agent) -> None:
        await agent.publish(make_fleet(port))
        published = await agent.publish(with_cluster(make_fleet(port, mark="v2"), "die-now"))
        assert "workers died" in published.problems[0].text()
        await until(lambda: agent.ready, "recovery")
        assert {await mark_of(port) for _ in range(10)} == {"v1"}
        await agent.publish(make_fleet(port, mark="v3"))
        assert {await mark_of(port) for _ in range(10)} == {"v3"}
        assert agent.problems == ()

    with_agent(talk, faulty=True)


def test_a_worker_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ACK_DEADLINE", 0.2)
    monkeypatch.setattr(workers, "PING_EVERY", 0.05)
    port = free_port()

    async def talk(agent: Agent) -> None:
        await agent.publish(make_fleet(port))
        pids = {slot.pid for slot in agent.slots}
        published = await agent.publish(with_cluster(make_fleet(port, mark="v2"), "hang"))
        assert "workers died" in published.problems[0].text()
        await until(lambda: agent.ready, "recovery")
        assert pids.isdisjoint({slot.pid for slot in agent.slots})
        assert await mark_of(port) == "v1"

    with_agent(talk, faulty=True)


def test_a_silent_worker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PING_DEADLINE", 0.5)
    monkeypatch.setattr(workers, "PING_EVERY", 0.05)
    port = free_port()

    async def talk(agent: Agent) -> None:
        await agent.publish(make_fleet(port))
        os.kill(agent.slots[0].pid, signal.SIGSTOP)
        await until(lambda: agent.slots[0].restarts == 1 and agent.ready, "successor")
        assert {await mark_of(port) for _ in range(10)} == {"v1"}

    with_agent(talk)


def test_a_worker_that_never_starts_is_held_back() -> None:
    async def main() -> None:
        made = Agent(
            settings.ProxySettings(workers=1, arena_bytes=1 << 20, stat_rows=4), ("false",)
        )

        async def part() -> None:
            await until(lambda: made.slots[0].restarts >= 4, "restarts")
            made.drain.order("the end of the test", min_drain=0.0)

        began = time.monotonic()
        await made.run(part)
        # 0 + 0.1 + 0.2 s, each at least halved by the jitter
        assert time.monotonic() - began >= 0.15

    asyncio.run(asyncio.wait_for(main(), 30))
    assert children() == set()


def test_a_first_table_is_not_waited_for_when_no_worker_lives() -> None:
    port = free_port()

    async def main() -> None:
        made = Agent(
            settings.ProxySettings(workers=1, arena_bytes=1 << 20, stat_rows=4), ("false",)
        )

        async def part() -> None:
            await made.publish(make_fleet(port))
            assert not made.serving
            assert not made.ready
            made.drain.order("the end of the test", min_drain=0.0)

        await made.run(part)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_table_that_does_not_fit_leaves_the_one_before() -> None:
    port = free_port()

    async def talk(agent: Agent) -> None:
        await agent.publish(make_fleet(port))
        table = make_fleet(port, mark="v2")
        big = make_resource("cluster", "big", bytes(8 << 20))
        shards = Shards({**table.resources, ("cluster", "big"): big}, "too-big")
        published = await agent.publish(shards)
        assert not published.changed
        assert "does not fit" in published.problems[-1].text()
        assert await mark_of(port) == "v1"

    with_agent(talk, arena_bytes=4 << 20)


def test_a_part_that_fails_ends_everything() -> None:
    class Stop(Exception):
        pass

    async def talk(agent: Agent) -> None:
        raise Stop

    with pytest.raises(ExceptionGroup) as caught:
        with_agent(talk)
    assert caught.value.subgroup(Stop)
    assert children() == set()
