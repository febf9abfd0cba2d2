"""Who may use a Redis: passwords, users, databases, and what becomes of a store whose credentials end.

In: real servers. Out: reasons that name the cause and never a secret. Must never: share a server's passwords with another test.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import pytest
import uvloop

from edgefast.rate_limit.tags import redis_key
from rate_limit.caller import Ask, calling, config_of
from rate_limit.servers import RedisServer, running

CHECK = Ask(b"counter", limit=1_000_000)


def test_passwords(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret, guess = "s3cr3t-0f-th3-st0r3", "wr0ng-gu3ss"

    async def talk() -> None:
        with running(tmp_path, "--requirepass", secret, password=secret) as server:
            async with calling(config_of(server.address, password=secret)) as caller:
                await caller.settled(CHECK)
            wrong = config_of(server.address, password=guess)
            async with calling(wrong) as caller:
                outcomes = await caller.until_unavailable(CHECK)
                assert set(outcomes) == {"the store refuses the user or the password"}
                shown = f"{caller.store!r} {caller.store.state()} {wrong!r}"
                assert guess not in shown
                assert "the store refuses the user or the password" in shown
                with contextlib.closing(server.client()) as client:
                    client.config_set("requirepass", guess)
                await caller.until_settled(CHECK)
            async with calling(config_of(server.address)) as caller:
                outcomes = await caller.until_unavailable(CHECK)
                assert set(outcomes) == {"the store requires a password"}

    with caplog.at_level(logging.DEBUG):
        uvloop.run(talk())
    assert "refuses the user or the password" in caplog.text
    assert secret not in caplog.text and guess not in caplog.text


async def test_a_password_that_nobody_asked_for(server: RedisServer) -> None:
    async with calling(config_of(server.address, password="surplus")) as caller:
        outcomes = await caller.until_unavailable(CHECK)
        assert set(outcomes) == {"the store refuses the user or the password"}


async def test_users_and_databases(own: RedisServer) -> None:
    with contextlib.closing(own.client()) as client:
        rules = "on >pw ~ef:* +evalsha +script|load +auth +select +get +set +time"
        client.execute_command("ACL", "SETUSER", "limits", *rules.split())
        client.execute_command("ACL", "SETUSER", "reader", *"on >pw ~ef:* +@read +auth".split())
    config = config_of(own.address, user="limits", password="pw", database=3)
    async with calling(config) as caller:
        assert (await caller.settled(Ask(b"db", n=2)))[0] == 2
    with contextlib.closing(own.client()) as client:
        assert client.dbsize() == 0
        client.execute_command("SELECT", 3)
        assert client.exists(redis_key(b"db"))
    async with calling(config_of(own.address, user="reader", password="pw")) as caller:
        outcomes = await caller.until_unavailable(CHECK)
        assert set(outcomes) == {"the user may not run the script or write the keys"}


async def test_a_password_changed_under_the_connection(own: RedisServer) -> None:
    with contextlib.closing(own.client()) as client:
        client.execute_command("ACL", "SETUSER", "limits", "on", ">old", "~*", "+@all")
        async with calling(config_of(own.address, user="limits", password="old")) as caller:
            await caller.settled(CHECK)
            client.execute_command("ACL", "DELUSER", "limits")  # ends its connections
            await caller.until_unavailable(CHECK)
            client.execute_command("ACL", "SETUSER", "limits", "on", ">old", "~*", "+@all")
            await caller.until_settled(CHECK)
