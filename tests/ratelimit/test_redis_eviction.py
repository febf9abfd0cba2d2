"""Servers that may throw counters away say so at the first connection, once, and are used all the same.

In: real servers of every kind that is supported. Must never: depend on memory that is really full.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import pytest
import uvloop

from ratelimit.caller import Ask, calling, config_of
from ratelimit.servers import PROGRAMS, RedisServer, running

CHECK = Ask(b"counter", limit=1_000_000)
_USER = "on >pw ~ef:* +evalsha +script|load +auth +select +get +set +time"


@pytest.fixture(scope="module", params=PROGRAMS)
def own(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    with running(tmp_path_factory.mktemp("redis"), program=PROGRAMS[request.param]) as server:
        yield server


def warnings_of(own: RedisServer, caplog: pytest.LogCaptureFixture, **settings: str) -> list[str]:
    """What a store says that connects, counts, loses its connection and counts again."""

    async def talk() -> None:
        async with calling(config_of(own.address, **settings)) as caller:
            await caller.until_settled(CHECK)
            with contextlib.closing(own.client()) as client:
                client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await caller.until_settled(CHECK)

    caplog.clear()
    with caplog.at_level(logging.WARNING, "edgefast.ratelimit"):
        uvloop.run(talk())
    return [line.getMessage() for line in caplog.records if "maxmemory" in line.getMessage()]


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
def test_it_is_told_once(
    own: RedisServer,
    caplog: pytest.LogCaptureFixture,
    memory: str,
    policy: str,
    told: bool,
    user: str,
) -> None:
    settings = {} if user == "default" else {"user": user, "password": "pw"}
    with contextlib.closing(own.client()) as client:
        client.config_set("maxmemory", memory)
        client.config_set("maxmemory-policy", policy)
        for name, more in (("info", ["+info"]), ("neither", [])):
            client.execute_command("ACL", "SETUSER", name, *_USER.split(), *more)
    said = warnings_of(own, caplog, **settings)
    assert len(said) == (told and user != "neither"), said
    for line in said:
        assert f"{own.address} has maxmemory-policy {policy}: it may forget counters" in line
        assert "noeviction" in line
