"""An agent that a controller feeds: real workers, a real stream, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgefast import ir
from edgefast.httpd.server import Request
from edgefast.proxy.admin.admin import Admin
from edgefast.proxy.agent import acknowledgement
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.pipelines import managed as manageds
from edgefast.proxy.pipelines.managed import Managed, StreamSettings
from edgefast.table import Shards
from edgefast.table.format import table_format
from edgefast.table.shards import make_resource
from edgefast.xds.batch import Mirror
from edgefast.xds.messages import COMMIT, TABLE
from proxy.limited import limited_table
from proxy.living import mark_of, taken, until, with_agent
from proxy.pki import Authority
from proxy.shards import make_fleet, with_cluster
from wire.harness.ports import free_port
from xds.living import hasten, write_files
from xds.plain import PlainServer

pytestmark = pytest.mark.wire

Talk = Callable[[Agent, PlainServer], Awaitable[None]]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def true(shards: Shards) -> Shards:
    """The same resources under their true digest."""
    return Shards(shards.resources, Mirror(shards).version)


@contextlib.asynccontextmanager
async def fed(agent: Agent, target: str, folder: Path, authority: Authority) -> Any:
    """Feed an agent from a server for as long as the block lasts."""
    files = write_files(folder, authority)
    managed = Managed(agent, StreamSettings(server=target, node="edge-0", files=files))
    task = asyncio.ensure_future(managed.run())
    try:
        yield managed
        assert not task.done(), "feeding ended by itself"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def play(talk: Talk, folder: Path, authority: Authority, **settings: Any) -> None:
    """Talk with an agent and the server that feeds it."""

    async def whole(agent: Agent) -> None:
        async with (
            PlainServer(authority, mutual=True) as server,
            fed(agent, server.target, folder, authority),
        ):
            await talk(agent, server)

    assert with_agent(whole, ready_when_empty=True, **settings) == 0


def falling_back() -> list[Any]:
    """What waits for the controller's table, to serve the last good one without it."""
    names = (getattr(one.get_coro(), "__qualname__", "") for one in asyncio.all_tasks())
    return [name for name in names if name == "Managed._fall_back"]


async def metrics_of(agent: Agent) -> dict[str, float]:
    handler = Admin(agent).metrics["GET", "/metrics"]
    text = (await handler(Request("GET", "/metrics", {}, b""))).body.decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in lines}


def test_tables_are_served_and_answered_when_all_workers_have_them(
    tmp_path: Path, authority: Authority
) -> None:
    port = free_port()

    async def talk(agent: Agent, server: PlainServer) -> None:
        await until(lambda: server.streams and server.last.opening, "an opening")
        node = server.last.opening[0].node
        assert node is not None
        assert (node.id, node.formats, node.workers) == ("edge-0", (table_format(),), 2)
        await until(lambda: all(slot.connected for slot in agent.slots), "workers")
        assert not agent.ready
        for mark in ("v1", "v2", "v3"):
            wanted = true(make_fleet(port, mark=mark))
            server.publish(wanted)
            await server.answered(wanted.version)
            assert not server.last.commits[-1].refused
            # At once, from every worker: that is what the answer means.
            assert {await mark_of(port) for _ in range(10)} == {mark}
            assert agent.ready
        told = await metrics_of(agent)
        assert told["edgefast_xds_connected"] == 1
        assert told["edgefast_xds_commits_total"] == 3
        assert told["edgefast_xds_nacks_total"] == 0
        assert told["edgefast_xds_last_commit_timestamp_seconds"] > agent.started_at
        assert told["edgefast_xds_last_good_served"] == 0
        assert told["edgefast_xds_received_bytes_total"] > 0

    play(talk, tmp_path, authority)


def test_only_what_workers_refuse_is_refused(tmp_path: Path, authority: Authority) -> None:
    port, other = free_port(), free_port()

    async def talk(agent: Agent, server: PlainServer) -> None:
        server.publish(true(make_fleet(port, mark="v1")))
        await until(lambda: agent.ready, "readiness")
        wanted = make_fleet(port, other, mark="v2")
        name = ("virtual_host", f"default/gateway/p{other}/*")
        broken = {**wanted.resources, name: make_resource(*name, b"no table at all")}
        server.publish(true(Shards(broken, "")))
        await until(lambda: len(server.last.commits) == 2, "an answer")
        (refused,) = server.last.commits[-1].refused
        assert (refused.type, refused.name) == name
        assert refused.reason
        guilty = [one for one in server.last.answers if one.refused and one.type != COMMIT]
        assert [one.type for one in guilty] == ["virtual_host"]
        assert guilty[0].refused == (refused,)
        assert {await mark_of(port) for _ in range(10)} == {"v2"}
        assert (await metrics_of(agent))["edgefast_xds_nacks_total"] == 2
        server.publish(true(wanted))
        await until(lambda: len(server.last.commits) == 3, "an answer")
        assert not server.last.commits[-1].refused
        assert {await mark_of(other) for _ in range(10)} == {"v2"}

    play(talk, tmp_path, authority)


def test_a_store_that_does_not_count_is_told_the_controller(
    tmp_path: Path, authority: Authority
) -> None:
    """It refuses nothing: the table is in force, and what is wrong besides goes with the answer, as long as it lasts."""
    port, gone = free_port(), f"127.0.0.1:{free_port()}"
    store = ir.RateLimitStore(kind="redis", addresses=(gone,))

    async def talk(agent: Agent, server: PlainServer) -> None:
        await until(lambda: server.streams and server.last.opening, "an opening")
        wanted = true(limited_table(port, store))
        server.publish(wanted)
        await server.answered(wanted.version)
        await until(lambda: server.last.commits[-1].troubles, "the trouble")
        last = server.last.commits[-1]
        (trouble,) = last.troubles
        assert (trouble.kind, trouble.reason) == ("EdgeGateway", "NotCounted")
        assert trouble.message.startswith(f"the store {gone} does not count: ")
        assert not last.refused and agent.ready
        wanted = true(limited_table(port))
        server.publish(wanted)
        await server.answered(wanted.version)
        await until(lambda: not server.last.commits[-1].troubles, "the end of it")

    play(talk, tmp_path, authority)


def test_a_table_that_kills_workers_is_refused_whole_and_not_tried_again(
    tmp_path: Path, authority: Authority
) -> None:
    port = free_port()

    async def talk(agent: Agent, server: PlainServer) -> None:
        server.publish(true(make_fleet(port, mark="v1")))
        await until(lambda: agent.ready, "readiness")
        server.publish(true(with_cluster(make_fleet(port, mark="v2"), "die-now")))
        await until(lambda: len(server.last.commits) >= 2, "an answer")
        await until(lambda: "workers ended" in server.last.commits[-1].whole, "the verdict")
        await until(lambda: agent.ready, "recovery")
        assert await mark_of(port) == "v1"
        deaths = sum(slot.restarts for slot in agent.slots)
        # The next stream brings it again: it is known.
        server.last.leave.set()
        await until(lambda: len(server.streams) == 2 and server.last.commits, "the next answer")
        assert "workers ended" in server.last.commits[-1].whole
        assert (COMMIT, TABLE) not in server.last.held
        assert sum(slot.restarts for slot in agent.slots) == deaths
        server.publish(true(make_fleet(port, mark="v3")))
        await until(lambda: len(server.last.commits) == 2, "the answer to a good one")
        assert not server.last.commits[-1].refused
        assert {await mark_of(port) for _ in range(10)} == {"v3"}

    play(talk, tmp_path, authority, faulty=True)


def test_a_late_worker_is_told_of_and_told_again(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgement, "_PATIENCE", 1.0)
    port = free_port()

    async def talk(agent: Agent, server: PlainServer) -> None:
        server.publish(true(make_fleet(port, mark="v1")))
        await until(lambda: agent.ready, "readiness")
        pid = agent.slots[0].pid
        os.kill(pid, signal.SIGSTOP)
        server.publish(true(make_fleet(port, mark="v2")))
        await until(lambda: len(server.last.commits) == 2, "an answer")
        assert server.last.commits[-1].whole.startswith("late: 1 of 2 workers")
        # A newer one is taken in all the same: one that hangs holds nobody up.
        server.publish(true(make_fleet(port, mark="v3")))
        await until(lambda: len(server.last.commits) == 3, "an answer")
        nonce = server.last.commits[-1].nonce
        os.kill(pid, signal.SIGCONT)
        await until(lambda: not server.last.commits[-1].refused, "the last word")
        assert server.last.commits[-1].nonce == nonce
        assert {await mark_of(port) for _ in range(10)} == {"v3"}

    play(talk, tmp_path, authority)


def test_a_port_that_cannot_be_had_is_told_and_heals(tmp_path: Path, authority: Authority) -> None:
    port = free_port()
    sock, busy = taken()

    async def talk(agent: Agent, server: PlainServer) -> None:
        server.publish(true(make_fleet(port, busy)))
        await until(lambda: server.streams and server.last.commits, "an answer")
        (refused,) = server.last.commits[-1].refused
        assert (refused.type, refused.name) == ("listener", f"default/gateway/p{busy}")
        assert "is in use by another process" in refused.reason
        assert await mark_of(port) == "v1"
        sock.close()
        await until(lambda: not server.last.commits[-1].refused, "the last word")
        assert await mark_of(busy) == "v1"

    play(talk, tmp_path, authority)


def test_an_empty_table_is_one_to_be_ready_with(tmp_path: Path, authority: Authority) -> None:
    port = free_port()

    async def talk(agent: Agent, server: PlainServer) -> None:
        assert not agent.ready
        server.publish(true(make_fleet()))
        await until(lambda: agent.ready, "readiness")
        server.publish(true(make_fleet(port)))
        await until(lambda: agent.bound(), "a port")
        assert await mark_of(port) == "v1"

    play(talk, tmp_path, authority)


# --- the last good table ----------------------------------------------------------------------------


def test_a_controller_that_answers_soon_is_preferred(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manageds, "PATIENCE", 60.0)  # soon, whatever the machine does
    port = free_port()
    state = tmp_path / "state"
    seen: list[str] = []

    async def first(agent: Agent, server: PlainServer) -> None:
        server.publish(true(make_fleet(port, mark="old")))
        await until(lambda: (state / "last-good.table").exists(), "a file")

    async def second(agent: Agent, server: PlainServer) -> None:
        await until(falling_back, "a wait for the controller")
        publish = agent.publish

        async def note(shards: Shards) -> Any:
            seen.append(shards.version)
            return await publish(shards)

        agent.publish = note  # type: ignore[method-assign]
        server.publish(true(make_fleet(port, mark="new")))
        await until(lambda: server.streams and server.last.commits, "an answer")
        # Nobody waits any more to serve the other one.
        await until(lambda: not falling_back(), "the end of the wait")
        assert await mark_of(port) == "new"
        # The stream asked for the difference to the file only.
        assert [type_ for type_, _ in server.last.sent] == ["virtual_host", COMMIT]

    play(first, tmp_path, authority, state_dir=state)
    play(second, tmp_path, authority, state_dir=state)
    assert seen == [true(make_fleet(port, mark="new")).version]


def test_nothing_is_served_without_any_table(tmp_path: Path, authority: Authority) -> None:
    async def talk(agent: Agent) -> None:
        gone, port = taken()
        gone.close()
        async with fed(agent, f"ipv4:127.0.0.1:{port}", tmp_path, authority):
            await until(
                lambda: (facts := agent.stream()) is not None and facts.failures > 2, "failures"
            )
            assert not agent.ready

    assert with_agent(talk, ready_when_empty=True, state_dir=tmp_path / "state") == 0
