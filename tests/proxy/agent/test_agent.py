"""The agent with real workers: tables in, traffic out, and workers that die, refuse and hang."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from edgefast import ir
from edgefast.core.cells import ROW
from edgefast.diagnostics.problem import Problem
from edgefast.proxy.agent import agent as agent_module
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.metrics.stats import sum_rows
from edgefast.table import Shards, compile_fleet
from proxy.living import agent_test, ask, children, descriptors, mark_of, taken, until
from proxy.shards import make_fleet, with_cluster
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


@agent_test()
async def test_a_table_is_served_by_every_worker_once_publish_returns(agent: Agent) -> None:
    port = free_port()

    assert not agent.ready
    published = await agent.publish(make_fleet(port))
    assert published.acknowledged
    assert published.problems == ()
    assert agent.ready
    assert {await mark_of(port) for _ in range(20)} == {"v1"}
    for number in range(2, 6):
        assert (await agent.publish(make_fleet(port, mark=f"v{number}"))).acknowledged
        assert {await mark_of(port) for _ in range(10)} == {f"v{number}"}
    assert not (await agent.publish(make_fleet(port, mark="v5"))).changed
    assert agent.tables == 5
    assert agent.arena.retired == 0


@agent_test()
async def test_ports_come_and_go_while_others_are_served(agent: Agent) -> None:
    first, second = free_port(), free_port()

    await agent.publish(make_fleet(first))
    await agent.publish(make_fleet(first, second))
    assert await mark_of(second) == "v1"
    await agent.publish(make_fleet(first))

    async def refused() -> bool:
        try:
            await ask(second)
        except ConnectionRefusedError:
            return True
        return False

    for _ in range(200):
        if await refused():
            break
    else:
        raise AssertionError("the port is still open")
    assert await mark_of(first) == "v1"
    await agent.publish(make_fleet(first, second, mark="v2"))
    await until(lambda: ("127.0.0.1", second) in agent.bound(), "the port again")
    assert await mark_of(second) == "v2"


@agent_test(workers=1)
async def test_a_worker_that_dies_is_replaced_and_its_queue_is_served(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    before = agent.slots[0].pid
    # Stopped workers accept nothing: these connections wait in their queues.
    os.kill(before, signal.SIGSTOP)
    waiting = [asyncio.ensure_future(mark_of(port)) for _ in range(8)]
    await until(lambda: queued(port) == 8, "full queue")
    began = time.monotonic()
    os.kill(before, signal.SIGKILL)
    assert await asyncio.gather(*waiting) == ["v1"] * 8
    took = time.monotonic() - began
    assert took < 15, "a ceiling against hangs; the usual figure is a quarter of a second"
    assert agent.slots[0].pid != before
    assert agent.slots[0].restarts == 1
    assert agent.ready
    # The successor goes on counting in the same segment: it was not made anew.
    total = sum(sum(cells) for _, cells in agent.slots[0].segment.rows())
    assert total > 0


def queued(port: int) -> int:
    """Connections that wait to be accepted on a port, by the kernel's account."""
    waiting = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and int(fields[1].partition(":")[2], 16) == port:
            waiting += int(fields[4].partition(":")[2], 16)
    return waiting


@agent_test()
async def test_nothing_leaks_when_workers_die_often(agent: Agent) -> None:
    port = free_port()

    def kinds() -> list[str]:
        return sorted(name.partition(":")[0] for name in descriptors().values())

    await agent.publish(make_fleet(port))
    assert await mark_of(port) == "v1"  # the loop's first stream makes libuv open /dev/null
    before = kinds()
    for number in range(4):
        for slot in agent.slots:
            os.kill(slot.pid, signal.SIGKILL)
        await until(lambda: not any(slot.serving for slot in agent.slots), "death")
        await until(lambda: all(slot.serving for slot in agent.slots), "recovery")
        await agent.publish(make_fleet(port, mark=f"m{number}"))
        assert await mark_of(port) == f"m{number}"
    assert len(children()) == 2
    await until(lambda: kinds() == before, "end of the clients' sockets", 5)
    assert agent.arena.retired == 0


@agent_test()
async def test_a_worker_has_only_its_own_descriptors(agent: Agent) -> None:
    port = free_port()

    secret = os.open("/dev/null", os.O_RDONLY)  # something of the agent's
    await agent.publish(make_fleet(port))
    names, maps = look_into(agent.slots[0].pid)
    assert sum(name.startswith("socket:") for name in names) <= 8
    # Arena, its own counters, limits, ticket keys: the last two twice, the second time for whoever takes over from a lone worker.
    assert sum("memfd" in name for name in names) == 7
    os.close(secret)
    arena = [line for line in maps if "edgefast-table" in line]
    assert arena
    assert all(line.split()[1] == "r--s" for line in arena)


def look_into(pid: int) -> tuple[list[str], list[str]]:
    """What a process has open, and its memory map."""
    names = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
    return names, Path(f"/proc/{pid}/maps").read_text().splitlines()


@agent_test()
async def test_workers_ignore_the_signals_of_the_terminal_and_the_service_manager(
    agent: Agent,
) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    pids = [slot.pid for slot in agent.slots]
    for pid in pids:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
    assert {await mark_of(port) for _ in range(10)} == {"v1"}
    await agent.publish(make_fleet(port, mark="v2"))  # a round trip after the signals
    assert [slot.pid for slot in agent.slots] == pids


@agent_test()
async def test_a_taken_port_is_said_and_tried_again(agent: Agent) -> None:
    free = free_port()
    other, port = taken()
    heard: list[tuple[Problem, ...]] = []

    agent.on_problems = heard.append
    published = await agent.publish(make_fleet(free, port))
    assert [one.reason for one in published.problems] == ["PortUnavailable"]
    assert await mark_of(free) == "v1"
    other.close()
    await until(lambda: heard and heard[-1] == (), "port")
    assert await mark_of(port) == "v1"


@agent_test(faulty=True)
async def test_a_refused_resource_is_a_problem_and_the_rest_is_served(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    published = await agent.publish(with_cluster(make_fleet(port, mark="v2"), "refuse-me"))
    assert await mark_of(port) == "v2"
    await until(lambda: agent.problems, "problem")
    (problem,) = agent.problems
    assert "refuse-me" in problem.text()
    assert "ordered to refuse" in problem.text()
    # A successor gets the table without it, and it does not come back by itself.
    os.kill(agent.slots[0].pid, signal.SIGKILL)
    await until(lambda: agent.slots[0].restarts and agent.ready, "successor")
    assert not published.acknowledged
    assert published.refused == 1
    published = await agent.publish(make_fleet(port, mark="v3"))
    assert published.acknowledged
    assert agent.problems == ()


@agent_test()
async def test_log_level_reaches_the_workers(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    agent.set_log_level("debug")
    assert agent.log_level == "debug"
    with pytest.raises(ValueError, match="supported: debug, info"):
        agent.set_log_level("loud")
    os.kill(agent.slots[0].pid, signal.SIGKILL)
    await until(lambda: agent.slots[0].restarts and agent.ready, "successor")
    agent.set_log_level("error")


@agent_test()
async def test_thousands_of_resources_travel_in_many_frames(agent: Agent) -> None:
    port = free_port()

    assert (await agent.publish(make_fleet(port, hosts=5000))).acknowledged
    answer = await ask(port, host="h4999.test")
    assert b"location" in answer.lower()
    os.kill(agent.slots[0].pid, signal.SIGKILL)
    await until(lambda: agent.slots[0].restarts and agent.ready, "successor")
    assert {await mark_of(port) for _ in range(10)} == {"v1"}


@agent_test()
async def test_no_connection_is_refused_while_tables_change(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    done = False
    asked = 0

    async def load() -> None:
        nonlocal asked
        while not done:
            assert (await mark_of(port)).startswith("v")
            asked += 1

    loads = [asyncio.ensure_future(load()) for _ in range(4)]
    for number in range(100):
        extra = [free_port()] if number % 25 == 0 else []
        await agent.publish(make_fleet(port, *extra, mark=f"v{number}"))
    done = True
    await asyncio.gather(*loads)
    assert asked > 20


@agent_test()
async def test_sockets_are_inherited_by_nobody(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    for place, fd, _ in agent.listeners.sockets_of(0):
        assert place == ("127.0.0.1", port, 0)
        sock = socket.socket(fileno=os.dup(fd))
        assert not os.get_inheritable(fd)
        sock.close()


@agent_test(workers=1, stat_rows=8)
async def test_routes_that_come_and_go_never_run_out_of_counters(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "_LOOK_FOR_ROWS", 0.01)
    port = free_port()

    def table(generation: int) -> Shards:
        listener = ir.Listener(name="a/b/c", port=port, bind_port=port, protocol="HTTP")
        route = f"default/g{generation}"
        rule = ir.Rule(route=route, index=0, redirect=ir.Redirect(hostname="x.test"))
        entry = ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0)
        host = ir.VirtualHost(listener="a/b/c", hostname="*", rules=(rule,), entries=(entry,))
        return compile_fleet(ir.Fleet(name="x", listeners=(listener,), virtual_hosts=(host,)))

    (segment,) = [slot.segment for slot in agent.slots]
    for generation in range(20):
        await agent.publish(table(generation))
        assert b" 302 " in await ask(port)
        await until(lambda: segment.room()[0] <= 6, "room")

    def last() -> int:
        """A request is counted after its answer has been sent."""
        return sum_rows([segment])[b"default/g19\t0"][ROW.index("requests_3xx")]

    await until(lambda: last() == 1, "count")
    assert not any(sum_rows([segment])[b""])
