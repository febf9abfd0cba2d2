"""Servers that may throw counters away are found at every connection and while it lasts, and are used all the same.

In: real servers of every kind that is supported. Must never: depend on memory that is really full.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop

from edgefast.rate_limit.eviction import Evictions
from edgefast.rate_limit.store_status import StoreStatus
from rate_limit.caller import Ask, calling, config_of, until
from rate_limit.servers import PROGRAMS, RedisServer, running

CHECK = Ask(b"counter", limit=1_000_000)
_USER = "on >pw ~ef:* +evalsha +script|load +auth +select +get +set +time"


@pytest.fixture(scope="module", params=PROGRAMS)
def own(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    with running(tmp_path_factory.mktemp("redis"), program=PROGRAMS[request.param]) as server:
        yield server


@contextlib.contextmanager
def serving_policy(own: RedisServer, memory: str, policy: str) -> Iterator[Any]:
    """Give a client of a server with these settings, and with users that may ask for less."""
    with contextlib.closing(own.client()) as client:
        client.config_set("maxmemory", memory)
        client.config_set("maxmemory-policy", policy)
        for name, more in (("info", ["+info"]), ("neither", [])):
            client.execute_command("ACL", "SETUSER", name, *_USER.split(), *more)
        yield client


@pytest.mark.parametrize(
    ("memory", "policy", "told"),
    [
        ("100mb", "allkeys-lru", True),
        ("100mb", "volatile-ttl", True),
        ("100mb", "noeviction", False),
        ("0", "allkeys-lru", False),
    ],
)
@pytest.mark.parametrize("user", ["default", "info", "neither"])
def test_it_is_told_and_used(
    own: RedisServer, memory: str, policy: str, told: bool, user: str
) -> None:
    settings = {} if user == "default" else {"user": user, "password": "pw"}

    async def talk() -> list[StoreStatus]:
        async with calling(config_of(own.address, **settings)) as caller:
            await caller.until_settled(CHECK)
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await caller.until_settled(CHECK)
            return caller.told

    with serving_policy(own, memory, policy) as client:
        client.execute_command("ACL", "LOG", "RESET")
        found = uvloop.run(talk())
        refused = client.acl_log()
    evicts = told and user != "neither"
    assert found == [StoreStatus(evicting=((own.address, policy),) if evicts else ())]
    asked = [one for one in refused if one["object"].partition("|")[0] in ("config", "info")]
    assert sum(one["count"] for one in asked) == {"default": 0, "info": 1, "neither": 2}[user]


def test_a_policy_that_is_changed_is_noticed(
    own: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the server is too busy for the question, which costs nothing but that."""
    monkeypatch.setattr(Evictions, "EVERY", 0.02)

    async def talk() -> None:
        async with calling(config_of(own.address)) as caller:
            await caller.until_settled(CHECK)
            assert caller.told == [StoreStatus()]
            await asyncio.to_thread(client.config_set, "maxmemory-policy", "volatile-lru")
            evicting = StoreStatus(evicting=((own.address, "volatile-lru"),))
            await until(lambda: caller.told[-1] == evicting, "news")
            await asyncio.to_thread(client.config_set, "maxmemory-policy", "noeviction")
            await until(lambda: caller.told[-1] == StoreStatus(), "an end")
            assert len(caller.told) == 3
            await caller.settled(CHECK)

    with serving_policy(own, "100mb", "noeviction") as client:
        uvloop.run(talk())
