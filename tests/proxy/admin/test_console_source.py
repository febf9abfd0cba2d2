"""ConsoleSource: the table as it is applied, workers as they are, counters as rows; no bytes of secrets."""

from __future__ import annotations

import asyncio
import os
import signal
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from edgefast import ir
from edgefast.console.console import Console
from edgefast.console.live_metrics import Counters, Meter
from edgefast.core.cells import ROW
from edgefast.httpd.server import Request
from edgefast.proxy.admin.console_source import ConsoleSource
from edgefast.proxy.admin.limit_list import LimitList
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.metrics.stats import add_global, map_segment, sum_rows
from edgefast.proxy.tables.arena import Block
from edgefast.proxy.tables.epoch import Placed, Refusal, Table
from edgefast.table import compile_fleet
from edgefast.table.shards import Shards, make_resource
from proxy.living import agent_test, ask, until
from proxy.shards import make_fleet
from wire.harness.ports import free_port


@pytest.mark.pure
def test_what_is_served_in_place_of_what_was_refused() -> None:
    new = {key: make_resource(*key, b"new") for key in (("cluster", "a"), ("cluster", "b"))}
    shards = Shards({**new, ("secret", "s"): make_resource("secret", "s", b"NEW KEY")}, "v2")
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


@pytest.mark.pure
def test_statuses_of_grpc_are_no_latencies(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"requests_2xx": 9, "duration_bucket_0": 9, "grpc_OK": 5, "grpc_UNAVAILABLE": 4}
    row = [counts.get(name, 0) for name in ROW]
    for name, found in (
        ("rows", {b"r\t0": row}),
        ("limits", {}),
        ("globals", {}),
        ("policies", {}),
    ):
        monkeypatch.setattr(f"edgefast.proxy.admin.console_source.sum_{name}", lambda _, f=found: f)
    agent = cast(Agent, SimpleNamespace(slots=()))
    source = ConsoleSource(agent, cast(LimitList, None))
    meter = Meter(source.bounds)
    meter.take(0.0, Counters())
    meter.take(1.0, source.count())
    rate = meter.window.rate_all()
    assert rate is not None and rate.requests == 9.0
    assert rate.p99 is not None and rate.p99 <= source.bounds[0]


def counted(agent: Agent) -> int:
    """Requests that were redirected, by the rows of all workers."""
    rows = sum_rows([slot.segment for slot in agent.slots])
    return sum(cells[ROW.index("requests_3xx")] for cells in rows.values())


@pytest.mark.wire
@agent_test()
async def test_a_living_agent(agent: Agent) -> None:
    port = free_port()

    source = ConsoleSource(agent, LimitList(agent))
    empty = source.table("standalone")
    assert empty is not None and not empty.resources
    assert source.table("other") is None
    assert {one.said for one in source.members()} <= {
        "does not run",
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
    rows = dict(facts["rows"])
    assert f"127.0.0.1:{port}" in rows["listens on"] and "TLS handshakes" not in rows
    cells = map_segment(agent.slots[0].segment.fd)
    for name, count in (("1.2_true", 1), ("1.3_false", 5), ("1.3_true", 2)):
        add_global(cells, f"handshakes_done_{name}", count)
    rows = dict(source.facts()["rows"])
    assert rows["TLS handshakes"] == "8: 38% resumed, 88% TLS 1.3"

    meter = Meter(source.bounds)
    meter.take(0.0, await asyncio.to_thread(source.count))
    for _ in range(20):
        await ask(port)
    await until(lambda: counted(agent) == 20, "what was counted")  # after the answers
    meter.take(1.0, await asyncio.to_thread(source.count))
    rate = meter.window.rate_all()
    assert rate is not None and (rate.requests, rate.errors) == (20.0, 0.0)
    assert rate.p99 is not None and rate.p99 > 0
    live = await source.live()
    assert live is not None and live.rows == ()

    os.kill(agent.slots[0].pid, signal.SIGKILL)
    await until(lambda: source.members()[0].state == "bad", "a worker that is gone")
    await until(lambda: source.members()[0].state == "good", "its successor")


@pytest.mark.wire
@pytest.mark.parametrize("length", [3, 253])
@agent_test(workers=1)
async def test_names_of_any_length_have_numbers(
    agent: Agent, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of counters have room for 183 bytes of "route<tab>rule"; names of objects may be longer."""
    monkeypatch.setattr("edgefast.console.console._READ_EVERY", 0.0)
    port = free_port()
    route, limit = f"default/{'r' * length}", f"default/{'l' * length}#0"
    rule = ir.Rule(
        route,
        0,
        name="n" * length,
        redirect=ir.Redirect(hostname="v1.test"),
        rate_limits=(ir.RateLimit(limit, "c", 1000, 86_400),),
    )
    listener = ir.Listener(name="default/gw/http", port=port, bind_port=port, protocol="HTTP")
    entry = ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0)
    host = ir.VirtualHost(listener=listener.name, hostname="*", rules=(rule,), entries=(entry,))
    fleet = ir.Fleet(
        name="standalone",
        listeners=(listener,),
        virtual_hosts=(host,),
        limit_store=ir.RateLimitStore(),
    )

    console = Console(ConsoleSource(agent, LimitList(agent)))

    async def read(path: str, **query: str) -> Any:
        request = Request("GET", f"/console/api/{path}", query, b"", "127.0.0.1:1")
        reply = await console.routes[("GET", request.path)](request)
        return msgspec.json.decode(reply.body)

    await agent.publish(compile_fleet(fleet))
    (found,) = (await read("search", q="rrr"))["rows"]
    for _ in range(3):
        assert b" 302 " in await ask(port)
    await until(lambda: counted(agent) == 3, "what was counted")  # after the answers
    detail = await read("node", id=found["row"]["id"])
    assert detail["since_start"]["requests"] == 3 and detail["rate"]["requests"] > 0
    (line,) = (await read("limits"))["rows"]
    assert line["passed"] > 0
    (busiest,) = (await read("overview"))["busiest"]
    assert busiest["id"] == found["row"]["id"]
