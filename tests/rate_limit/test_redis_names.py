"""Keys, tags and slots; addresses as configured and as nodes tell them; who is asked first."""

from __future__ import annotations

import asyncio
import socket
import zlib
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from edgefast.rate_limit.address_list import AddressList
from edgefast.rate_limit.error_reply import Refusal, Refused
from edgefast.rate_limit.names import Names, split_address
from edgefast.rate_limit.tags import (
    COUNT,
    PREFIXES,
    PROBES,
    SLOTS,
    complete_address,
    read_slots,
    redis_key,
    tag_of,
)

pytestmark = pytest.mark.pure


@given(st.binary(max_size=200))
def test_the_redis_key_is_the_counter_behind_its_tag(key: bytes) -> None:
    tag = zlib.crc32(key) & 63
    assert redis_key(key) == b"ef:{%02x}:" % tag + key
    assert tag_of(key) == tag
    assert key_slot(redis_key(key)) == SLOTS[tag], "braces in the key change nothing"


def test_every_tag_has_its_slot() -> None:
    assert len(set(SLOTS)) == len(set(PREFIXES)) == len(set(PROBES)) == COUNT == 64
    thirds = [sum(slot * 3 // 16384 == third for slot in SLOTS) for third in range(3)]
    assert min(thirds) >= 15, "three primaries share the tags evenly enough"


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("redis.example:6379", ("redis.example", 6379)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("[2001:db8::1]:6379", ("2001:db8::1", 6379)),
    ],
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts
    assert complete_address(address, "asked:1") == address


def test_a_node_without_a_host_is_where_it_was_asked() -> None:
    assert complete_address(":7000", "node.example:6379") == "node.example:7000"
    assert complete_address(":7000", "[2001:db8::1]:6379") == "[2001:db8::1]:7000"
    assert complete_address("2001:db8::2:7000", "a:1") == "[2001:db8::2]:7000"


def test_the_map_of_a_cluster() -> None:
    replica: list[Any] = [b"10.0.0.9", 6379, b"id"]
    owners = read_slots(
        [
            [0, 5460, [b"10.0.0.1", 6379, b"id", []], replica],
            [5461, 10922, [None, 7001, b"id"]],
            [10923, 16000, [b"", 7002, b"id"], replica],
            [16001, 16383, [b"?", 7003, b"id"]],
        ],
        "seed.example:7000",
    )
    for slot, owner in zip(SLOTS, owners, strict=True):
        if slot <= 5460:
            assert owner == "10.0.0.1:6379"
        elif slot <= 10922:
            assert owner == "seed.example:7001"
        else:
            assert owner == ("seed.example:7002" if slot <= 16000 else "")
    assert read_slots([], "a:1") == ("",) * COUNT


def _asking(broken: set[str], silent: set[str]) -> tuple[list[str], Any]:
    asked: list[str] = []

    async def ask(address: str) -> str:
        asked.append(address)
        if address in broken:
            raise Refused(Refusal("x", address))
        if address in silent:
            await asyncio.get_running_loop().create_future()
        return address

    return asked, ask


async def test_who_answered_is_asked_first_the_next_time() -> None:
    servers = AddressList(["a", "b", "c"])
    asked, ask = _asking({"a"}, {"b"})
    assert await servers.ask(ask, 0.01) == "c"
    assert asked == ["a", "b", "c"]
    assert await servers.ask(ask, 0.01) == "c"
    assert asked[3:] == ["c"]
    servers.defer("c")
    assert await servers.ask(ask, 0.01) == "c"
    assert asked[4:] == ["a", "b", "c"]


async def test_when_nobody_answers_the_first_reason_counts() -> None:
    with pytest.raises(Refused, match="a"):
        await AddressList(["a", "b"]).ask(_asking({"a", "b"}, set())[1], 0.01)


async def test_whoever_was_silent_until_the_end_is_asked_last() -> None:
    servers = AddressList(["a", "b"])
    asked, ask = _asking(set(), {"a"})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await servers.ask(ask, 10)
    assert await servers.ask(ask, 10) == "b"
    assert asked == ["a", "b"]


async def test_an_order_follows_the_cluster() -> None:
    servers = AddressList(["a", "b"])
    servers.prefer("new")
    servers.drop_all_but(["b", "c", "new"])
    asked, ask = _asking({"new", "b"}, set())
    assert await servers.ask(ask, 1) == "c"
    assert asked == ["new", "b", "c"]


async def test_one_look_up_of_a_name_at_a_time() -> None:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    lookups = 0

    async def getaddrinfo(*_: Any, **__: Any) -> Any:
        nonlocal lookups
        lookups += 1
        return await answer

    names = Names()
    with patch.object(loop, "getaddrinfo", getaddrinfo):
        for _ in range(5):  # as many attempts, each giving up
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await names.resolve("silent.example")
        assert lookups == 1
        stream = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        answer.set_result([(*stream, ("10.0.0.1", 0)), (*stream, ("10.0.0.1", 0))])
        assert await names.resolve("silent.example") == ["10.0.0.1"]
        await names.resolve("silent.example")
        assert lookups == 2, "a name is looked up for each connection"
    assert await names.resolve("::1") == ["::1"]
    names.close()
