"""A Redis that is late, now and then or always: what comes in time counts, and a late answer costs no other one."""

from __future__ import annotations

import asyncio
from typing import Any

from rate_limit.caller import Ask, calling, config_of, until
from rate_limit.faulty import Late, serving
from rate_limit.servers import RedisServer

CHECK = Ask(b"counter", limit=1_000_000)


def peers(client: Any) -> set[str]:
    """Who is connected, by what the server calls them."""
    return {one["id"] for one in client.client_list()}


async def test_a_server_that_is_always_nearly_late_loses_only_what_is_late(
    own: RedisServer,
) -> None:
    """Three quarters of the deadline for each answer, and one answer behind it."""

    relay = Late(own.port, 0.0)
    async with serving(relay.serve) as address:
        async with calling(config_of(address, timeout=600)) as caller:
            await caller.until_settled(CHECK)
            relay.seconds = 0.45
            left = (await caller.settled(CHECK))[1]
            client = own.client()
            before = peers(client)
            for _ in range(2):
                assert (await caller.settled(CHECK))[1] == left - 1
                relay.seconds = 0.8
                assert await caller.one(CHECK) is None
                relay.seconds = 0.15
                await caller.settled(CHECK)
                relay.seconds = 0.45
                assert caller.store.available
                left -= 3  # the late one was counted, too
            assert caller.timeouts == 2
            assert peers(client) == before, "on the same connection"
            client.close()


async def test_a_server_that_is_too_slow_stays_out(own: RedisServer) -> None:
    """One that answers every command late is not taken back by answering the attempts late."""

    late = Late(own.port, 0.1)
    async with serving(late.serve) as address:
        async with calling(config_of(address, timeout=50)) as caller:
            outcomes = await caller.until_unavailable(CHECK)
            assert not any(isinstance(outcome, tuple) for outcome in outcomes)
            before = own.calls("evalsha")
            await until(lambda: own.calls("evalsha") >= before + 2, "two more attempts")
            assert not caller.store.available
            late.seconds = 0.0
            await caller.until_settled(CHECK)


async def test_one_late_answer_costs_one_check(own: RedisServer) -> None:
    """It is never told; the connection stays, with whatever is under way on it."""

    async with calling(config_of(own.address, timeout=40)) as caller:
        await caller.until_settled(CHECK)
        client = own.client()
        before = peers(client)
        sleeping = asyncio.create_task(
            asyncio.to_thread(client.execute_command, "DEBUG", "SLEEP", "0.3")
        )
        # The server is asleep when a check is not answered in its time; until then they are counted.
        while isinstance(await caller.one(CHECK), tuple):
            pass
        await sleeping
        assert caller.store.available, "three in a row open the breaker"
        await caller.until_settled(CHECK)
        assert peers(client) == before, "on the same connection"
        client.close()
