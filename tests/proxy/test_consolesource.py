"""ConsoleSource: the table as it is applied, workers as they are, counters as rows; no bytes of secrets."""

from __future__ import annotations

import asyncio
import os
import signal
from types import SimpleNamespace
from typing import cast

import pytest

from edgefast.console.numbers import Meter
from edgefast.proxy.agent import Agent
from edgefast.proxy.arena import Block
from edgefast.proxy.consolesource import ConsoleSource
from edgefast.proxy.epoch import Placed, Refusal, Table
from edgefast.proxy.limitlist import LimitList
from edgefast.table.shards import Shards, make_resource
from proxy.living import ask, until, with_agent
from proxy.tables import make_fleet
from wire.harness.ports import free_port


@pytest.mark.pure
def test_what_is_served_in_place_of_what_was_refused() -> None:
    new = {key: make_resource(*key, b"new") for key in (("cluster", "a"), ("cluster", "b"))}
    secret = make_resource("secret", "s", b"NEW KEY")
    shards = Shards({**new, ("secret", "s"): secret}, "v2")
    placed = {
        ("cluster", "a"): Placed(Block(0, 3), new["cluster", "a"].version),
        ("cluster", "b"): Placed(Block(8, 3), "0000"),
        ("cluster", "kept"): Placed(Block(16, 3), "1111"),
        ("secret", "s"): Placed(Block(24, 3), "2222"),
    }
    refused = {("cluster", "b"): Refusal("cluster", "b", "x", "no room")}
    table = Table(7, "v2", shards, placed, (), refused, (("cluster", "kept"),))
    agent = SimpleNamespace(
        ledger=SimpleNamespace(current=table),
        arena=SimpleNamespace(read=lambda block: f"old at {block.offset}".encode()),
        table_at=5.0,
    )
    found = ConsoleSource(cast(Agent, agent), cast(LimitList, None)).table("standalone")
    assert found is not None and (found.version, found.accepted) == ("v2", 5.0)
    assert {key[1]: one.data for key, one in found.resources.items()} == {
        "a": b"new",
        "b": b"old at 8",
        "kept": b"old at 16",
    }


@pytest.mark.wire
def test_a_living_agent() -> None:
    port = free_port()

    async def talk(agent: Agent) -> None:
        source = ConsoleSource(agent, LimitList(agent))
        empty = source.table("standalone")
        assert empty is not None and not empty.resources
        assert source.table("other") is None
        assert {one.said for one in source.members()} <= {
            "is not there",
            "serves no table yet",
        }
        await agent.publish(make_fleet(port))
        assert source.past("").look().steps == ()
        await agent.publish(make_fleet(port, mark="v2"))
        (step,) = source.past("").look().steps
        assert step.after == agent.ledger.current.version
        assert {one.said for one in source.members()} == {"serves"}
        facts = source.facts()
        assert (facts["state"], facts["said"]) == ("good", "ready")
        assert f"127.0.0.1:{port}" in dict(facts["rows"])["listens on"]

        meter = Meter(source.bounds)
        meter.take(0.0, await asyncio.to_thread(source.count))
        for _ in range(20):
            await ask(port)
        meter.take(1.0, await asyncio.to_thread(source.count))
        rate = meter.window.rate_all()
        assert rate is not None and (rate.requests, rate.errors) == (20.0, 0.0)
        assert rate.p99 is not None and rate.p99 > 0
        live = await source.live()
        assert live is not None and live.rows == ()

        os.kill(agent.slots[0].pid, signal.SIGKILL)
        await until(lambda: source.members()[0].state == "bad", "a worker that is gone")
        await until(lambda: source.members()[0].state == "good", "its successor")

    assert with_agent(talk) == 0
