"""A real failover by a real Sentinel: the promoted replica counts on, with the counts it was sent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from edgefast.rate_limit.redis_list import list_counters
from rate_limit.caller import Ask, calling, config_of
from rate_limit.servers import RedisServer, running, until
from wire.harness.ports import free_port

_SECRET = "of-the-servers-only"


class Group(NamedTuple):
    primary: RedisServer
    replica: RedisServer
    sentinel: RedisServer


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    """A primary and a replica that want a password, and a sentinel that wants none."""
    with contextlib.ExitStack() as stack:

        def start(name: str, *options: str, **client: str) -> RedisServer:
            folder = tmp_path / name
            folder.mkdir()
            return stack.enter_context(running(folder, *options, **client))

        auth = ("--requirepass", _SECRET, "--masterauth", _SECRET)
        fast = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
        primary = start("primary", *auth, *fast, password=_SECRET)
        of = ("--replicaof", "127.0.0.1", str(primary.port))
        replica = start("replica", *auth, *fast, *of, password=_SECRET)
        sentinel = _sentinel(tmp_path, primary)
        stack.callback(sentinel.kill)
        sentinel.start()
        until(lambda: _known(sentinel), "replica at the sentinel")
        yield Group(primary, replica, sentinel)


def _sentinel(folder: Path, primary: RedisServer, *more: str, **client: str) -> RedisServer:
    port = free_port()
    lines = (
        f"port {port}",
        "bind 127.0.0.1",
        f"sentinel monitor limits 127.0.0.1 {primary.port} 1",
        f"sentinel auth-pass limits {_SECRET}",
        "sentinel down-after-milliseconds limits 1500",
        "sentinel failover-timeout limits 3000",
        *more,
    )
    conf = folder / f"sentinel-{port}.conf"
    conf.write_text("\n".join(lines) + "\n")
    return RedisServer(folder, str(conf), "--sentinel", port=port, **client)


def _known(sentinel: RedisServer) -> bool:
    with contextlib.closing(sentinel.client()) as client:
        state = client.sentinel_master("limits")
        return state["num-slaves"] == 1 and all(
            slave["master-link-status"] == "ok" for slave in client.sentinel_slaves("limits")
        )


def _address(sentinel: Any) -> int:
    return int(sentinel.sentinel_get_master_addr_by_name("limits")[1])


def _synced(primary: RedisServer) -> bool:
    with contextlib.closing(primary.client()) as client:
        return bool(client.execute_command("WAIT", 1, 5000) == 1)


async def test_a_failover_is_followed(group: Group) -> None:
    silent = f"127.0.0.1:{free_port()}"
    config = config_of(
        silent, group.sentinel.address, mode="sentinel", master="limits", password=_SECRET
    )
    check = Ask(b"failover", n=3)
    async with calling(config) as caller:
        assert (await caller.settled(check))[:2] == (3, 7)
        # The first sentinel's state is known to the primary only when it has sent everything.
        until(lambda: _synced(group.primary), "replica's acknowledgement")
        listing = await list_counters(config)
        assert [counter.count for counter in listing.counters] == [3]
        group.primary.kill()
        assert (await caller.until_settled(check))[:2] == (3, 4)
        assert caller.store.state()["connected"]
        # The former primary comes back as one, for a moment: nobody asks it.
        group.primary.start()
        assert (await caller.settled(check))[:2] == (3, 1)


async def test_a_demoted_primary_is_left(group: Group) -> None:
    """The primary is alive and well when the sentinel makes it a replica."""

    config = config_of(group.sentinel.address, mode="sentinel", master="limits", password=_SECRET)
    check = Ask(b"demoted", limit=10**6)
    async with calling(config) as caller:
        await caller.settled(check)
        with contextlib.closing(group.sentinel.client()) as client:
            client.execute_command("SENTINEL", "FAILOVER", "limits")
            until(lambda: _address(client) == group.replica.port, "failover")
        with contextlib.closing(group.primary.client()) as client:  # as the sentinel does later
            client.execute_command("REPLICAOF", "127.0.0.1", group.replica.port)
        before = group.replica.calls("evalsha")
        while group.replica.calls("evalsha") < before + 2:
            await caller.until_settled(check)


async def test_a_name_that_the_sentinel_does_not_know(group: Group) -> None:
    config = config_of(group.sentinel.address, mode="sentinel", master="others")
    async with calling(config) as caller:
        outcomes = await caller.until_unavailable(Ask(b"key"))
        assert set(outcomes) == {'the sentinel knows no primary "others"'}


async def test_a_sentinel_with_the_same_password(tmp_path: Path, group: Group) -> None:
    sentinel = _sentinel(tmp_path, group.primary, f"requirepass {_SECRET}", password=_SECRET)
    try:
        sentinel.start()
        config = config_of(sentinel.address, mode="sentinel", master="limits", password=_SECRET)
        async with calling(config) as caller:
            await caller.settled(Ask(b"key"))
    finally:
        sentinel.kill()
