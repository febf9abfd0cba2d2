"""A client that sends many requests at once: what it gets in a turn, in which order, and that everybody else comes in between."""

from __future__ import annotations

import asyncio

import pytest

from core.client import make_request
from core.fleets import make_fleet, make_host, make_rule
from core.pipes import PipeWorld

MANY = 100
TURN = 16
NOWHERE = make_request("/nowhere", host="nobody.example.net")


def count(data: bytes) -> int:
    return data.count(b"HTTP/1.1 404 ")


async def test_a_turn_answers_a_few_of_them(pipes: PipeWorld) -> None:
    pipes.apply(make_fleet(pipes.cluster_of_pipes, make_host(make_rule(), hostname="there")))
    crowd, other = await pipes.connect(), await pipes.connect()
    for client in (crowd, other):
        await client.feed(NOWHERE)
        await pipes.until(lambda client=client: count(client.sent) == 1)
        client.take()
    await crowd.offer(NOWHERE * MANY)
    await other.offer(NOWHERE)
    seen = []
    while count(crowd.sent) < MANY:
        seen.append(count(crowd.sent))
        if count(other.sent):
            break
        await asyncio.sleep(0)
    assert count(other.sent) == 1 and count(crowd.sent) < MANY, (
        "it has not waited for all of the crowd's"
    )
    await pipes.until(lambda: count(crowd.sent) == MANY)
    assert not crowd.ended


@pytest.mark.parametrize("many", [TURN - 1, TURN, TURN + 1, 5 * TURN, 500])
async def test_all_are_answered_though_nothing_follows(pipes: PipeWorld, many: int) -> None:
    pipes.apply(make_fleet(pipes.cluster_of_pipes, make_host(make_rule(), hostname="there")))
    client = await pipes.connect()
    await client.offer(NOWHERE * many)
    client.finish()
    await pipes.until(lambda: client.ended)
    assert count(client.take()) == many


async def test_what_comes_in_pieces_meanwhile_is_answered_in_order(pipes: PipeWorld) -> None:
    pipes.apply(make_fleet(pipes.cluster_of_pipes, make_host(make_rule(), hostname="there")))
    client = await pipes.connect()
    text = NOWHERE * MANY + b"BAD\r\n\r\n"
    for start in range(0, len(text), 777):
        await client.offer(text[start : start + 777])
    await pipes.until(lambda: client.ended)
    data = client.take()
    assert (
        count(data) == MANY
        and data.count(b"HTTP/1.1 400 ") == 1
        and data.rfind(b"HTTP/1.1 404 ") < data.find(b"HTTP/1.1 400 ")
    )
