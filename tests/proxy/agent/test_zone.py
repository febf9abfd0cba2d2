"""Which zone a proxy is in: found in its table by its name, kept when it is in no record, told when nobody knows it."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import msgspec
import pytest

from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from edgefast import ir
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.metrics.stats import sum_globals
from edgefast.table import Shards, compile_fleet
from edgefast.table.shards import make_resource
from proxy.living import ask, until, with_agent
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

NEAR = ir.ZoneAware(min_endpoints=1, force=1)
FLEET = ir.Proxies(
    shares=(("a", 1), ("b", 2)), zones=(("edge-1", "b"), ("edge-2", "a"), ("edge-3", ""))
)


async def serve(zone: str) -> tuple[asyncio.Server, ir.Endpoint]:
    """An endpoint that answers with its zone."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\nx-zone: "
        writer.write(f"{head}{zone}\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    return server, ir.Endpoint(address="127.0.0.1", port=port, zone=zone)


def table(port: int, endpoints: tuple[ir.Endpoint, ...], proxies: ir.Proxies | None) -> Shards:
    cluster = msgspec.structs.replace(make_cluster(zones=NEAR), endpoints=endpoints)
    fleet = make_fleet(make_listener(port=port), make_host(make_rule()), cluster)
    return compile_fleet(msgspec.structs.replace(fleet, proxies=proxies))


async def zones(port: int, count: int = 16) -> set[str]:
    heads = [(await ask(port)).decode() for _ in range(count)]
    return {head.partition("x-zone: ")[2][:1] for head in heads}


def reasons(agent: Agent) -> list[str]:
    return [one.reason for one in agent.problems]


def play(talk: Any, **settings: Any) -> None:
    async def whole(agent: Agent) -> None:
        made = [await serve(zone) for zone in "aabb"]
        try:
            await talk(agent, free_port(), tuple(one for _, one in made))
        finally:
            for server, _ in made:
                server.close()

    assert with_agent(whole, **settings) == 0


def test_a_proxy_of_a_fleet_finds_its_zone_in_its_table() -> None:
    async def talk(agent: Agent, port: int, endpoints: tuple[ir.Endpoint, ...]) -> None:
        published = await agent.publish(table(port, endpoints, FLEET))
        assert published.acknowledged and not published.problems
        assert (agent.own_zone.zone, dict(agent.own_zone.shares)) == ("b", {"a": 1, "b": 2})
        assert await zones(port) == {"b"}
        dump = await agent.slots[0].dump(1)
        assert dump["zone"] == "b"
        cells = sum_globals([slot.segment for slot in agent.slots])
        assert cells["zone_own"] == 16 and cells["zone_other"] == 0
        # It drains, and is in no record: it has not moved.
        left = ir.Proxies(shares=(("a", 1),), zones=(("edge-2", "a"),))
        assert not (await agent.publish(table(port, endpoints, left))).problems
        assert await zones(port) == {"b"}
        # A worker that comes in the place of another one has it from the table.
        await agent.publish(table(port, endpoints, FLEET))
        before = agent.slots[0].pid
        os.kill(before, signal.SIGKILL)
        await until(lambda: agent.slots[0].pid != before and agent.slots[0].connected, "another")
        await until(lambda: agent.ready, "its table")
        assert await zones(port) == {"b"}

    play(talk, pod="edge-1", workers=1)


@pytest.mark.parametrize("node", ["edge-3", "edge-9", ""])
def test_who_is_in_no_zone_says_so_and_serves(node: str) -> None:
    async def talk(agent: Agent, port: int, endpoints: tuple[ir.Endpoint, ...]) -> None:
        await agent.publish(table(port, endpoints, FLEET if node else ir.Proxies()))
        assert reasons(agent) == ["ZoneNotKnown"]
        assert ("topology" if node else "--zone") in agent.problems[0].text()
        assert await zones(port, 40) == {"a", "b"}
        # Its node is labelled, and nothing is left to be said.
        if node:
            labelled = ir.Proxies(shares=(("b", 1),), zones=((node, "b"),))
            await agent.publish(table(port, endpoints, labelled))
            assert reasons(agent) == [] and await zones(port) == {"b"}
        await agent.publish(table(port, endpoints, None))
        assert reasons(agent) == []

    play(talk, pod=node, workers=1)


def test_what_it_is_told_at_its_start_comes_first() -> None:
    async def talk(agent: Agent, port: int, endpoints: tuple[ir.Endpoint, ...]) -> None:
        await agent.publish(table(port, endpoints, FLEET))
        assert agent.own_zone.zone == "a" and not agent.problems
        assert await zones(port) == {"a"}

    play(talk, pod="edge-1", zone="a")


def test_a_record_that_cannot_be_read_is_refused_and_the_one_before_holds() -> None:
    async def talk(agent: Agent, port: int, endpoints: tuple[ir.Endpoint, ...]) -> None:
        good = table(port, endpoints, FLEET)
        await agent.publish(good)
        key = ("proxies", "fleet")
        bad = {**good.resources, key: make_resource(*key, b"\xc1")}
        published = await agent.publish(Shards(bad, good.version + "x"))
        assert published.refused == 1 and agent.own_zone.zone == "b"
        assert await zones(port) == {"b"}

    play(talk, pod="edge-1", workers=1)
