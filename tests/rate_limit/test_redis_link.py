"""What becomes of one call: sent again if it cannot have been counted, never if it may have been; replies of the wrong shape."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rate_limit.answers import pack_reply
from rate_limit.caller import Ask, calling, config_of, until
from rate_limit.faulty import Told, serving

CHECK = Ask(b"counter", limit=1_000_000)

_COUNTED = pack_reply(1, 9, 1000, 0)
_READONLY = b"-READONLY You can't write against a read only replica.\r\n"


async def test_a_batch_that_was_not_counted_is_sent_again() -> None:
    told = Told(_READONLY, _COUNTED)
    async with serving(told.serve) as address, calling(config_of(address)) as caller:
        assert await caller.one(CHECK) == (1, 9, 1000, 0)
        assert told.calls == [(1, 1), (2, 1)], "on a new connection"


async def test_a_batch_is_not_sent_again_for_ever() -> None:
    told = Told(*[_READONLY] * 10)
    async with serving(told.serve) as address, calling(config_of(address)) as caller:
        assert await caller.one(CHECK) == "the server is a replica"
        assert len(told.calls) == 4


async def test_a_batch_that_may_have_been_counted_is_not_sent_again() -> None:
    told = Told(None, _COUNTED)
    async with serving(told.serve) as address, calling(config_of(address)) as caller:
        assert await caller.one(CHECK) == "the connection was lost"
        assert told.calls == [(1, 1)]
        assert await caller.until_settled(CHECK) == (1, 9, 1000, 0)


@pytest.mark.parametrize(
    "answer",
    [
        b"*1\r\n$18\r\n" + b"x" * 18 + b"\r\n",
        b"$17\r\n" + b"x" * 17 + b"\r\n",
        b"*0\r\n",
        b"+OK\r\n",
        b"$-1\r\n",
        b":4\r\n",
    ],
)
async def test_an_answer_of_another_shape_fails_the_batch(answer: bytes) -> None:
    told = Told(answer, _COUNTED)
    async with serving(told.serve) as address, calling(config_of(address)) as caller:
        assert await caller.one(CHECK) == "the answer of the store is not an answer of the script"
        assert await caller.one(CHECK) == (1, 9, 1000, 0)


@pytest.mark.parametrize("answer", [b"?\r\n", _COUNTED + _COUNTED])
async def test_answers_that_make_no_sense_end_the_connection(answer: bytes) -> None:
    told = Told(answer, _COUNTED)
    async with serving(told.serve) as address, calling(config_of(address)) as caller:
        await caller.one(CHECK)
        await until(lambda: told.connections == 2, "a new connection")
        assert await caller.until_settled(CHECK) == (1, 9, 1000, 0)


def test_a_worker_without_a_redis_store_does_not_pay_for_redis_py() -> None:
    code = "import sys, edgefast.rate_limit.redis_store; sys.exit('redis' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
