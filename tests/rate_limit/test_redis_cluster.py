"""A real Redis Cluster of three primaries: counters where their slot is, slots that move, a primary that dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgefast.rate_limit.redis_list import list_counters
from edgefast.rate_limit.tags import COUNT, SLOTS, redis_key, tag_of
from rate_limit.caller import PATIENCE, Ask, Caller, calling, config_of
from rate_limit.servers import RedisServer, running, until
from wire.harness.ports import free_port

_THIRDS = ((0, 5460), (5461, 10922), (10923, 16383))


class RedisCluster:
    """Three primaries that own a third of the slots each."""

    def __init__(self, servers: list[RedisServer]) -> None:
        self.servers = servers

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(server.address for server in self.servers)

    def do(self, server: RedisServer, *words: object) -> Any:
        with contextlib.closing(server.client()) as client:
            return client.execute_command(*words)

    def form(self) -> None:
        for server, (first, last) in zip(self.servers, _THIRDS, strict=True):
            self.do(server, "CLUSTER ADDSLOTSRANGE", first, last)
            self.do(server, "CLUSTER SET-CONFIG-EPOCH", self.servers.index(server) + 1)
        for server in self.servers[1:]:
            bus = [option for option in server.options if option.isdigit()][0]
            self.do(self.servers[0], "CLUSTER MEET", "127.0.0.1", server.port, bus)
        until(lambda: all(map(self._ready, self.servers)), "cluster")
        for server in self.servers:  # short so far, because that is also how long a new node waits
            self.do(server, "CONFIG", "SET", "cluster-node-timeout", "60000")

    def _ready(self, server: RedisServer) -> bool:
        with contextlib.closing(server.client()) as client:
            info = client.cluster("INFO")
            return bool(info["cluster_state"] == "ok" and info["cluster_slots_ok"] == "16384")

    def owner(self, key: bytes) -> RedisServer:
        slot = SLOTS[tag_of(key)]
        return next(
            server
            for server, (first, last) in zip(self.servers, _THIRDS, strict=True)
            if first <= slot <= last
        )

    def begin_move(self, slot: int, source: RedisServer, target: RedisServer) -> None:
        """Both serve the slot: the keys that are there, and all others."""
        self.do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.node(source))
        self.do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.node(target))

    def end_move(self, slot: int, source: RedisServer, target: RedisServer) -> None:
        keys = self.do(source, "CLUSTER", "GETKEYSINSLOT", slot, 100)
        if keys:
            self.do(source, "MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for server in sorted(self.servers, key=lambda one: one is not target):  # it wins first
            self.do(server, "CLUSTER", "SETSLOT", slot, "NODE", self.node(target))

    def node(self, server: RedisServer) -> str:
        return str(self.do(server, "CLUSTER MYID").decode())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with contextlib.ExitStack() as stack:
        servers = []
        for number in range(3):
            folder: Path = tmp_path_factory.mktemp(f"node{number}")
            options = ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
            options += ["--cluster-node-timeout", "500"]
            servers.append(stack.enter_context(running(folder, *options)))
        found = RedisCluster(servers)
        found.form()
        yield found


@pytest.fixture
def empty(cluster: RedisCluster) -> RedisCluster:
    for server in cluster.servers:
        cluster.do(server, "FLUSHALL")
        cluster.do(server, "CONFIG", "RESETSTAT")
    return cluster


def config(cluster: RedisCluster, **settings: Any) -> Any:
    return config_of(*cluster.addresses, mode="cluster", **settings)


def of_every_tag() -> list[Ask]:
    found: dict[int, Ask] = {}
    number = 0
    while len(found) < COUNT:
        check = Ask(b"key%d" % number, n=2)
        found.setdefault(tag_of(check.key), check)
        number += 1
    return list(found.values())


def some_key(cluster: RedisCluster, server: RedisServer) -> bytes:
    return next(check.key for check in of_every_tag() if cluster.owner(check.key) is server)


def same_tag(key: bytes, name: bytes) -> list[bytes]:
    """Two more keys of the same tag."""
    names = (name + b"%d" % number for number in range(100_000))
    same = (one for one in names if tag_of(one) == tag_of(key))
    return [next(same), next(same)]


async def ready(caller: Caller, cluster: RedisCluster) -> None:
    await caller.take(*of_every_tag())


async def test_every_counter_is_at_the_owner_of_its_slot(empty: RedisCluster) -> None:
    checks = of_every_tag()
    async with calling(config(empty)) as caller:
        for left in (8, 6, 4):
            outcomes = await caller.take(*checks)
            assert [outcome[:2] for outcome in outcomes if outcome] == [(2, left)] * COUNT
        assert [server.calls("evalsha") for server in empty.servers] == [
            3 * sum(empty.owner(check.key) is server for check in checks) + 1
            for server in empty.servers
        ], "one call for each tag, and one for the connection"
        many = [Ask(check.key, limit=1000) for check in checks] * 20
        outcomes = await caller.take(*[Ask(one.key, limit=1000) for one in many])
        assert all(isinstance(outcome, tuple) for outcome in outcomes)
        state = caller.store.state()
        assert len(state["primaries"]) == 3 and state["errors"] == {}  # type: ignore[arg-type]
    for check in checks:
        with contextlib.closing(empty.owner(check.key).client()) as client:
            assert client.exists(redis_key(check.key))
    listing = await list_counters(config(empty))
    assert listing.complete
    assert {counter.key: counter.count for counter in listing.counters} == {
        check.key: 26 for check in checks
    }


async def test_one_node_is_enough_to_find_the_others(empty: RedisCluster) -> None:
    dead = f"127.0.0.1:{free_port()}"
    for addresses in ((empty.addresses[2],), (dead, dead, empty.addresses[1])):
        async with calling(config_of(*addresses, mode="cluster")) as caller:
            outcomes = await caller.take(*of_every_tag())
            assert all(isinstance(outcome, tuple) for outcome in outcomes)


async def test_no_node_at_all() -> None:
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    async with calling(config_of(*addresses, mode="cluster")) as caller:
        outcomes = await caller.until_unavailable(Ask(b"key"))
        assert set(outcomes) == {"Connection refused"}
        assert await caller.one(Ask(b"key")) == "Connection refused"


async def test_a_forgotten_script_is_loaded_again(empty: RedisCluster) -> None:
    async with calling(config(empty)) as caller:
        await ready(caller, empty)
        for server in empty.servers:
            empty.do(server, "SCRIPT", "FLUSH")
        outcomes = await caller.take(*of_every_tag())
        assert all(isinstance(outcome, tuple) for outcome in outcomes)


async def test_a_slot_that_moves_is_followed(empty: RedisCluster) -> None:
    """ASK while it moves, TRYAGAIN for a call whose keys are on both sides, MOVED afterwards; every request counts once."""

    source, target = empty.servers[0], empty.servers[1]
    old = some_key(empty, source)
    new, other = same_tag(old, b"new")
    slot = SLOTS[tag_of(old)]
    async with calling(config(empty)) as caller:
        await ready(caller, empty)
        await caller.settled(Ask(old, n=3))
        empty.do(target, "SCRIPT", "FLUSH")
        empty.begin_move(slot, source, target)
        try:
            assert (await caller.settled(Ask(new, n=4)))[:2] == (4, 6), "ASK"
            outcomes = await caller.take(Ask(old, n=1), Ask(new, n=1), Ask(other, n=1))
            assert [outcome[:2] for outcome in outcomes if outcome] == [(1, 4), (1, 5), (1, 9)]
            assert [server.port for server in empty.servers if _has(server, new)] == [target.port]
            empty.end_move(slot, source, target)
            outcomes = await caller.take(Ask(old, n=1), Ask(new, n=1))
            assert [outcome[:2] for outcome in outcomes if outcome] == [(1, 3), (1, 4)]
            before = source.calls("evalsha")
            await caller.settled(Ask(old, n=1))
            assert source.calls("evalsha") == before, "it is asked where the slot is now"
            errors = caller.store.state()["errors"]
            assert isinstance(errors, dict) and set(errors) <= {"moved"}
        finally:
            empty.end_move(slot, source, target)
            empty.begin_move(slot, target, source)
            empty.end_move(slot, target, source)
        assert (await caller.settled(Ask(old, n=1)))[0] == 1, "and back"


def _has(server: RedisServer, key: bytes) -> bool:
    with contextlib.closing(server.client()) as client:
        return redis_key(key) in client.keys("*")


async def test_a_silent_primary_costs_only_its_own_counters(empty: RedisCluster) -> None:
    dead = empty.servers[2]
    lost = Ask(some_key(empty, dead), limit=10**6)
    kept = Ask(some_key(empty, empty.servers[0]), limit=10**6)
    async with calling(config(empty, timeout=500)) as caller:
        await caller.until_settled(kept)
        await caller.until_settled(lost)
        dead.pause()
        try:
            async with asyncio.timeout(PATIENCE):
                while not _open(caller):
                    await caller.one(lost)
            assert caller.store.available, "the other counters can be asked"
            waited = caller.timeouts
            outcomes = await caller.take(kept, lost)
            assert isinstance(outcomes[0], tuple)
            assert outcomes[1] == "it does not answer in time"
            assert caller.timeouts == waited, "nobody waits for it"
        finally:
            dead.resume()
        await caller.until_settled(lost)


def _open(caller: Caller) -> int:
    primaries = caller.store.state()["primaries"]
    assert isinstance(primaries, list)
    return sum(primary["breaker"] == "open" for primary in primaries)


async def test_a_cluster_that_was_configured_as_one_server_says_so(empty: RedisCluster) -> None:
    tag0 = next(check for check in of_every_tag() if tag_of(check.key) == 0)
    for server in empty.servers:
        async with calling(config_of(server.address)) as caller:
            outcomes = [await caller.one(check) for check in (tag0, *of_every_tag())]
            reason = "the store is a cluster, but is configured as one server"
            assert reason in outcomes
            assert {one for one in outcomes if isinstance(one, str)} == {reason}
