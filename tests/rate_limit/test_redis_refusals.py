"""A store that answers and does not count: the breaker opens on whatever it says, that is told once, and it closes when it counts again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import uvloop

from edgefast.rate_limit.store_status import StoreStatus
from rate_limit.answers import pack_reply
from rate_limit.caller import Ask, calling, config_of
from rate_limit.faulty import Told, serving
from rate_limit.servers import PROGRAMS, RedisServer, running

CHECK = Ask(b"counter", limit=1_000_000)
_COUNTED = pack_reply(1, 9, 1000, 0)


class Trouble(NamedTuple):
    """What keeps a real server from counting, and what ends it."""

    name: str
    reason: str
    begin: Callable[[Any], Any]
    end: Callable[[Any], Any]


def _spin(client: Any) -> None:
    """Run a script that never ends; its client hears of it when it is killed."""
    client.config_set("lua-time-limit", 1)
    other = client.connection_pool.make_connection()
    other.connect()
    other.send_command("EVAL", "while true do end", 0)


TROUBLES = (
    Trouble(
        "no memory",
        "the store is out of memory",
        lambda client: client.config_set("maxmemory", 1),
        lambda client: client.config_set("maxmemory", 0),
    ),
    Trouble(
        "no rights",
        "the user may not run the script or write the keys",
        lambda client: client.execute_command("ACL", "SETUSER", "default", "-evalsha"),
        lambda client: client.execute_command("ACL", "SETUSER", "default", "+@all"),
    ),
    Trouble(
        "busy", "the store is busy with another script", _spin, lambda client: client.script_kill()
    ),
)


@pytest.fixture(scope="module", params=PROGRAMS)
def own(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    with running(tmp_path_factory.mktemp("redis"), program=PROGRAMS[request.param]) as server:
        yield server


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_whatever_keeps_it_from_counting_opens_the_breaker(
    trouble: Trouble, own: RedisServer
) -> None:
    async def talk() -> list[StoreStatus]:
        with contextlib.closing(own.client()) as client:
            async with calling(config_of(own.address)) as caller:
                await caller.settled(CHECK)
                await asyncio.to_thread(trouble.begin, client)
                try:
                    outcomes = await caller.until_unavailable(CHECK)
                    assert outcomes[-1] == trouble.reason
                    assert await caller.one(CHECK) == trouble.reason, "at once"
                    assert not caller.store.available, "attempts that fail do not close it"
                    calls = own.calls("evalsha") if trouble.name == "no memory" else 0
                    assert await caller.one(CHECK) == trouble.reason
                    assert calls == 0 or own.calls("evalsha") <= calls + 1, "attempts only"
                finally:
                    trouble.end(client)
                await caller.until_settled(CHECK)
                return caller.told

    assert uvloop.run(talk()) == [
        StoreStatus(),
        StoreStatus(down=((own.address, trouble.reason),)),
        StoreStatus(over=((own.address, "serves again"),)),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        b"-MISCONF Redis is configured to save RDB snapshots, but it cannot.\r\n",
        b"-NOREPLICAS Not enough good replicas to write.\r\n",
        b"-ERR something unheard of\r\n",
        b"-NEVERHEARD of it\r\n",
        b"+OK\r\n",
    ],
)
async def test_answers_that_nobody_foresaw_open_it(answer: bytes) -> None:
    told = Told(answer, answer, answer, *[_COUNTED] * 3)
    async with serving(told.serve) as address, calling(config_of(address)) as caller:
        outcomes = [await caller.one(CHECK) for _ in range(3)]
        assert all(isinstance(outcome, str) for outcome in outcomes)
        assert not caller.store.available
        assert isinstance(await caller.until_settled(CHECK), tuple)
        assert [number for number, _ in told.calls] == [1, 1, 1, 2], "on a new connection"


async def test_a_success_in_between_keeps_it_closed() -> None:
    refused = b"-ERR something unheard of\r\n"
    told = Told(*[refused, refused, _COUNTED] * 3)
    async with serving(told.serve) as address, calling(config_of(address)) as caller:
        for _ in range(9):
            assert await caller.one(CHECK) is not None
            assert caller.store.available
        assert told.connections == 1
