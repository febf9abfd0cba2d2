"""The agent and what goes wrong: tables that kill workers, workers that hang or never start, parts that fail."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from typing import Any

import msgspec
import pytest

from edgefast.cli.admin_client import DEADLINE
from edgefast.diagnostics.problem import Problem
from edgefast.httpd.server import Request
from edgefast.proxy import settings
from edgefast.proxy.admin.admin import Admin
from edgefast.proxy.agent import acknowledgement, worker_slot, worker_update
from edgefast.proxy.agent import agent as agent_module
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.control import dumps
from edgefast.table import Shards
from edgefast.table.shards import make_resource
from proxy.living import agent_test, children, mark_of, until, with_agent
from proxy.shards import make_fleet, with_cluster
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


@agent_test(faulty=True)
async def test_a_table_that_kills_workers_is_taken_back(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    first = agent.ledger.current.version
    published = await agent.publish(with_cluster(make_fleet(port, mark="v2"), "die-now"))
    await until(lambda: agent.problems, "verdict")
    assert "workers ended" in agent.problems[0].text()
    assert not published.acknowledged
    assert agent.ledger.current.version == first
    assert published.served in ("", first)  # "": it was not waited for until the verdict
    await until(lambda: agent.ready, "recovery")
    assert {await mark_of(port) for _ in range(10)} == {"v1"}
    await agent.publish(make_fleet(port, mark="v3"))
    assert {await mark_of(port) for _ in range(10)} == {"v3"}
    assert agent.problems == ()


@agent_test(faulty=True)
async def test_a_worker_that_hangs_is_replaced(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_slot, "PING_EVERY", 0.05)
    port = free_port()

    await agent.publish(make_fleet(port))
    pids = {slot.pid for slot in agent.slots}
    monkeypatch.setattr(worker_update, "ACK_DEADLINE", 0.2)
    await agent.publish(with_cluster(make_fleet(port, mark="v2"), "hang"))
    await until(lambda: agent.problems, "verdict")
    monkeypatch.setattr(
        worker_update, "ACK_DEADLINE", 30.0
    )  # those that do not hang take their time
    assert "workers ended" in agent.problems[0].text()
    await until(lambda: agent.ready, "recovery")
    assert pids.isdisjoint({slot.pid for slot in agent.slots})
    assert await mark_of(port) == "v1"


@agent_test(faulty=True)
async def test_a_table_that_is_taken_back_is_not_said_to_be_served(
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acknowledgement, "_PATIENCE", 30.0)
    port = free_port()

    first = (await agent.publish(make_fleet(port))).version
    published = await agent.publish(with_cluster(make_fleet(port, mark="v2"), "die-now"))
    assert not published.acknowledged
    assert published.served == first
    assert "workers ended" in published.problems[0].text()


@agent_test()
async def test_nobody_waits_twice_for_a_worker_that_hangs(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgement, "_PATIENCE", 0.3)
    port = free_port()

    await agent.publish(make_fleet(port))
    os.kill(agent.slots[0].pid, signal.SIGSTOP)
    try:
        assert not (await agent.publish(make_fleet(port, mark="v2"))).acknowledged
        # As long as this takes: the healthy worker is waited for, the other one is not.
        monkeypatch.setattr(acknowledgement, "_PATIENCE", 30.0)
        for mark in ("v3", "v4", "v5"):
            assert not (await agent.publish(make_fleet(port, mark=mark))).acknowledged
            healthy = agent.ledger.held_by(1)
            assert healthy is not None
            assert healthy.epoch == agent.ledger.current.epoch
    finally:
        os.kill(agent.slots[0].pid, signal.SIGCONT)
    await until(lambda: agent.ledger.settled is agent.ledger.current, "the late worker")
    assert (await agent.publish(make_fleet(port, mark="v6"))).acknowledged
    assert {await mark_of(port) for _ in range(10)} == {"v6"}


@agent_test()
async def test_a_dump_names_the_worker_that_hangs(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives up well before the command does, and the healthy workers are in the dump."""
    assert dumps._DEADLINE * 2 < DEADLINE
    monkeypatch.setattr(dumps, "_DEADLINE", 2.0)
    port = free_port()

    await agent.publish(make_fleet(port, hosts=3))
    pid = agent.slots[0].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        handler = Admin(agent).admin["GET", "/dump"]
        reply = await handler(Request("GET", "/dump", {}, b""))
    finally:
        os.kill(pid, signal.SIGCONT)
    hung, healthy = msgspec.json.decode(reply.body)["workers"]
    assert (hung["pid"], hung["error"]) == (pid, "no answer in time")
    (listener,) = healthy["engine"]["listeners"]
    assert listener["virtual_hosts"] == 3


@agent_test(faulty=True)
async def test_workers_that_run_short_are_no_verdict_on_the_table(agent: Agent) -> None:
    port = free_port()

    deaths: list[int] = []  # when anything was said of the table

    def note(problems: tuple[Problem, ...]) -> None:
        if problems:
            deaths.append(sum(slot.restarts for slot in agent.slots))

    agent.on_problems = note
    await agent.publish(make_fleet(port))
    await agent.publish(with_cluster(make_fleet(port, mark="v2"), "starve"))
    await until(lambda: sum(slot.restarts for slot in agent.slots) >= 2, "deaths")
    assert all(count >= 5 for count in deaths), "two deaths by themselves say nothing"
    assert (await agent.publish(make_fleet(port, mark="v3"))).changed
    await until(lambda: agent.ready, "recovery")
    assert {await mark_of(port) for _ in range(10)} == {"v3"}


@agent_test(faulty=True)
async def test_what_is_refused_for_a_shortage_is_tried_again(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "_SHORT_FIRST", 0.01)
    port = free_port()

    told: list[int] = []
    agent.on_problems = lambda problems: told.append(len(problems))
    await agent.publish(with_cluster(make_fleet(port), "short"))
    await until(lambda: 1 in told, "refusal")
    await until(lambda: agent.problems == (), "another try")
    await until(lambda: told[-1] == 0, "word of it")
    assert ("cluster", "short") in agent.ledger.current.placed


def test_a_report_that_fails_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Standard error may be full, or nobody may read it any more."""
    port = free_port()

    async def talk(agent: Agent) -> None:
        def fail(_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        agent.on_problems = fail
        await agent.publish(make_fleet(port))
        pids = [slot.pid for slot in agent.slots]
        await agent.publish(with_cluster(make_fleet(port, mark="v2"), "refuse-me"))
        await until(lambda: agent.ledger.settled is agent.ledger.current, "table")
        assert agent.problems
        assert {await mark_of(port) for _ in range(10)} == {"v2"}
        assert [slot.pid for slot in agent.slots] == pids

    with_agent(talk, faulty=True)
    assert "could not be reported" in caplog.text


@agent_test()
async def test_a_silent_worker_is_replaced(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_slot, "PING_EVERY", 0.05)
    port = free_port()

    await agent.publish(make_fleet(port))
    silent = agent.slots[0].pid
    os.kill(silent, signal.SIGSTOP)
    monkeypatch.setattr(worker_slot, "PING_DEADLINE", 0.5)
    await until(lambda: agent.slots[0].restarts, "end of the silent one")
    monkeypatch.setattr(
        worker_slot, "PING_DEADLINE", 30.0
    )  # the others answer when they come to it
    await until(lambda: agent.slots[0].serving and agent.ready, "successor")
    assert agent.slots[0].pid != silent
    assert {await mark_of(port) for _ in range(10)} == {"v1"}


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


def test_what_keeps_workers_from_starting_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried several times a second while it lasts; its end is told, and other words are."""
    port = free_port()
    start = worker_slot.WorkerSlot._start
    tries: list[int] = []

    def refuse(slot: worker_slot.WorkerSlot) -> Any:
        tries.append(errno.EACCES if len(tries) < 3 else errno.ENOENT)
        raise OSError(tries[-1], os.strerror(tries[-1]), "python")

    async def talk(agent: Agent) -> None:
        await agent.publish(make_fleet(port))
        monkeypatch.setattr(worker_slot.WorkerSlot, "_start", refuse)
        os.kill(agent.slots[0].pid, signal.SIGKILL)
        await until(lambda: len(tries) >= 6, "tries")
        monkeypatch.setattr(worker_slot.WorkerSlot, "_start", start)
        await until(lambda: agent.ready, "recovery")

    with caplog.at_level("INFO"):
        with_agent(talk, workers=1, log_level="info")
    said = [one.getMessage() for one in caplog.records if "be started" in one.getMessage()]
    assert [text.split(": ", 1)[1] for text in said] == [
        "python: Permission denied; retrying",
        "python: No such file or directory; retrying",
    ]
    assert "worker 0: restarting" in caplog.text


async def test_a_first_table_is_not_waited_for_when_no_worker_lives() -> None:
    port = free_port()

    made = Agent(settings.ProxySettings(workers=1, arena_bytes=1 << 20, stat_rows=4), ("false",))

    async def part() -> None:
        await made.publish(make_fleet(port))
        assert not made.serving
        assert not made.ready
        made.drain.order("the end of the test", min_drain=0.0)

    await made.run(part)


@agent_test(arena_bytes=4 << 20)
async def test_a_table_that_does_not_fit_leaves_the_one_before(agent: Agent) -> None:
    port = free_port()

    await agent.publish(make_fleet(port))
    table = make_fleet(port, mark="v2")
    big = make_resource("cluster", "big", bytes(8 << 20))
    shards = Shards({**table.resources, ("cluster", "big"): big}, "too-big")
    published = await agent.publish(shards)
    assert not published.changed
    assert "does not fit" in published.problems[-1].text()
    assert await mark_of(port) == "v1"


def test_a_part_that_fails_ends_everything() -> None:
    class Stop(Exception):
        pass

    async def talk(agent: Agent) -> None:
        raise Stop

    with pytest.raises(ExceptionGroup) as caught:
        with_agent(talk)
    assert caught.value.subgroup(Stop)
    assert children() == set()
