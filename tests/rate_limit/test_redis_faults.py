"""A Redis that is stopped, silent, slow, refusing, restarted, wrong or cut off: every check is answered, nothing piles up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from pathlib import Path
from unittest.mock import patch

import pytest
import uvloop

from edgefast.rate_limit.eviction import Evictions
from edgefast.rate_limit.link import Link
from edgefast.rate_limit.store_status import StoreStatus
from rate_limit.caller import Ask, calling, config_of, until
from rate_limit.faulty import serving
from rate_limit.servers import RedisServer, connections
from wire.harness.ports import free_port

CHECK = Ask(b"counter", limit=1_000_000)


async def test_the_first_batch_waits_for_the_connection(server: RedisServer) -> None:
    async with calling(config_of(server.address)) as caller:
        assert (await caller.take(CHECK, Ask(b"b", n=2)))[1] is not None
        assert caller.store.state() == {
            "kind": "redis",
            "mode": "single",
            "available": True,
            "connected": True,
            "primaries": [{"name": server.address, "connected": True, "breaker": "closed"}],
            "errors": {},
            "last_error": "",
        }
        assert connections(server) == 1
    await until(lambda: connections(server) == 0, "end of the connection")


async def test_names_are_looked_up(server: RedisServer) -> None:
    async with calling(config_of(f"localhost:{server.port}")) as caller:
        await caller.settled(CHECK)


async def test_a_name_that_nobody_has_is_said() -> None:
    """As a name server says it; one that is away would take its time."""

    async def getaddrinfo(*_: object, **__: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with patch.object(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo):
        async with calling(config_of("no-such-host.invalid:6379")) as caller:
            outcomes = await caller.until_unavailable(CHECK)
    assert set(outcomes) == {"its name does not resolve (Name or service not known)"}


def test_a_refusing_port_answers_at_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    async def talk() -> None:
        port = free_port()
        async with calling(config_of(f"127.0.0.1:{port}", fail_closed=True)) as caller:
            outcomes = await caller.until_unavailable(CHECK)
            assert set(outcomes) == {"Connection refused"}
            assert await caller.one(CHECK) == "Connection refused", "asked all the same"
            state = caller.store.state()
            assert (state["connected"], state["available"]) == (False, False)
            late = RedisServer(tmp_path, port=port)
            try:
                await asyncio.to_thread(late.start)
                await caller.until_settled(CHECK)
            finally:
                late.kill()
            await until(lambda: not caller.store.available, "an open breaker")
            down = StoreStatus(down=((f"127.0.0.1:{port}", "Connection refused"),))
            over = StoreStatus(over=((f"127.0.0.1:{port}", "serves again"),))
            assert caller.told[:2] == [down, over], "not before it is known"
            assert [[place for place, _ in one.down] for one in caller.told[2:]] == [
                [f"127.0.0.1:{port}"]
            ]

    with caplog.at_level(logging.DEBUG, "edgefast.rate_limit"):
        uvloop.run(talk())
    assert len(caplog.records) <= 8, "nothing is logged per request or attempt"


async def test_silence_opens_the_breaker_after_three_timeouts(own: RedisServer) -> None:
    async with calling(config_of(own.address, timeout=20)) as caller:
        await caller.until_settled(CHECK)
        before = caller.timeouts
        own.pause()
        try:
            outcomes = await caller.until_unavailable(CHECK)
            assert outcomes[0] is None
            assert set(outcomes) <= {None, "it does not answer in time"}
            waited = caller.timeouts
            assert waited - before <= 6  # what is late within one timeout counts once
            assert await caller.one(CHECK) == "it does not answer in time"
            assert caller.timeouts == waited, "answered without waiting"
        finally:
            own.resume()
        await caller.until_settled(CHECK)
        await until(lambda: connections(own) == 1, "one connection")
        errors = caller.store.state()["errors"]
        assert isinstance(errors, dict) and errors["timeout"] >= 3


async def test_a_silent_server_gets_one_attempt_at_a_time() -> None:
    ours: list[int] = []  # connections of this process to the server, at each that it accepts

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ours.append(len(sockets_to(writer.get_extra_info("sockname")[1])))
        while await reader.read(4096):
            pass

    async with serving(accept) as address, calling(config_of(address, timeout=5)) as caller:
        outcomes = await caller.until_unavailable(CHECK)
        assert set(outcomes) <= {None, "it does not answer in time"}
        await until(lambda: len(ours) >= 3, "further attempts")
    assert set(ours) == {1}, "the old connection is closed before a new one is made"


def sockets_to(port: int) -> list[str]:
    """This process's sockets that are connected to a port."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as one:
                peer = one.getpeername()  # of a UNIX socket a string
                if isinstance(peer, tuple) and peer[1] == port:
                    found.append(name)
        except OSError:
            pass
    return found


async def test_a_restarted_empty_server_counts_from_zero(own: RedisServer) -> None:
    async with calling(config_of(own.address)) as caller:
        check = Ask(b"restart", n=6)
        assert (await caller.settled(check))[:2] == (6, 4)
        assert (await caller.settled(check))[:2] == (4, 0)
        own.kill()
        outcomes = await caller.until_unavailable(check)
        assert "Connection refused" in outcomes
        own.start()
        assert (await caller.until_settled(check))[:2] == (6, 4)
        await until(lambda: connections(own) == 1, "one connection")


async def test_a_lost_connection_is_replaced_and_its_batch_fails(own: RedisServer) -> None:
    """Whether the batch was counted cannot be known, so it is not sent again."""

    async with calling(config_of(own.address)) as caller:
        await caller.settled(CHECK)
        own.pause()
        batch = asyncio.create_task(caller.one(CHECK))
        await asyncio.sleep(0)  # it is written
        own.kill()
        assert await batch == "the connection was lost"
        own.start()
        await caller.until_settled(CHECK)


async def test_a_killed_connection_at_idle_is_replaced_at_once(own: RedisServer) -> None:
    async with calling(config_of(own.address)) as caller:
        await caller.settled(CHECK)
        for _ in range(5):
            with contextlib.closing(own.client()) as client:
                client.client_kill_filter(_type="normal", skipme=True)
            await until(lambda: connections(own) == 1, "a new connection")
        await caller.until_settled(CHECK)
        assert caller.store.available


async def test_a_connection_that_ends_before_it_is_held_is_replaced(
    own: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last question of its set-up is one whose answer does not matter."""
    ended: list[Link] = []

    async def look(_self: Evictions, _address: str, link: Link) -> None:
        if not ended:
            ended.append(link)
            with contextlib.closing(own.client()) as client:
                client.client_kill_filter(_type="normal", skipme=True)
            await until(lambda: not link.alive, "an end of the connection")

    monkeypatch.setattr(Evictions, "look", look)

    async with calling(config_of(own.address)) as caller:
        await until(lambda: ended and connections(own) == 1, "a new connection")
        await caller.until_settled(CHECK)
        assert caller.store.available


async def test_a_replica_is_no_primary(own: RedisServer) -> None:
    """READONLY, and MASTERDOWN when it may not serve stale data: find the primary again, nothing was counted."""

    with contextlib.closing(own.client()) as client:
        async with calling(config_of(own.address)) as caller:
            await caller.settled(CHECK)
            client.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
            outcomes = await caller.until_unavailable(CHECK)
            assert set(outcomes) == {"the server is a replica"}
            client.config_set("replica-serve-stale-data", "no")
            await until(
                lambda: "without its primary" in str(caller.store.state()["last_error"]),
                "MASTERDOWN",
            )
            client.execute_command("REPLICAOF", "NO", "ONE")
            _, remaining, *_ = await caller.until_settled(CHECK)
            assert remaining == CHECK.limit - 2, "no batch was counted twice"


async def test_a_server_that_loads_its_data(own: RedisServer) -> None:
    with contextlib.closing(own.client()) as client:
        client.execute_command("DEBUG", "POPULATE", "500", "x", "100")
        client.execute_command("SAVE")
        own.kill()
        slow = ("--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
        starting = asyncio.create_task(asyncio.to_thread(own.start, *slow))
        async with calling(config_of(own.address)) as caller:
            last = lambda: str(caller.store.state()["last_error"])  # noqa: E731
            await until(lambda: "is loading its data" in last(), "LOADING")
            await caller.until_settled(CHECK)
        await starting


async def test_what_is_no_redis() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(1000)

    async with serving(answer) as address, calling(config_of(address)) as caller:
        outcomes = await caller.until_unavailable(CHECK)
        assert all(isinstance(outcome, str) for outcome in outcomes)


async def test_closing_fails_what_is_under_way(own: RedisServer) -> None:
    async with calling(config_of(own.address)) as caller:
        await caller.settled(CHECK)
        own.pause()
        try:
            batch = asyncio.create_task(caller.one(CHECK))
            await asyncio.sleep(0)
            caller.store.close()
            assert await batch == "the store is no longer used"
            assert await caller.one(CHECK) is not None, "answered, not waited for"
        finally:
            own.resume()
    await until(lambda: connections(own) == 0, "end of the connection")


async def test_a_store_that_never_was_reached_can_be_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts by the kernel, never answers
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with calling(config_of(address)) as caller:
            batch = asyncio.create_task(caller.one(CHECK))
            await asyncio.sleep(0)
            caller.store.close()
            assert await batch == "the store is no longer used"
