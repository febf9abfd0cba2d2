"""What a service of gRPC said is believed for a while, of equal questions."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.policy.called import called, say
from core.policy.checkmessages import denying, passing
from core.world import World
from edgefast.ir.policy import AuthCache

PASS = passing()


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        (PASS, 1),
        (passing(("x-user", "me")), 1),
        (passing(answer=(("x-a", "b"),)), 1),
        (passing(answer=(("set-cookie", "b"),)), 3),
        (denying(), 1),
        (denying(("www-authenticate", "x"), status=401), 1),
        (denying(("set-cookie", "x"), status=401), 3),
        (denying(status=401, body="x"), 3),
        (denying(status=302), 3),
        (passing(("x", "y" * 5000)), 3),
    ],
)
async def test_what_is_believed_for_a_while(world: World, message: bytes, calls: int) -> None:
    route = await called(world, message, cache=AuthCache(ttl=60_000))
    answers = {(await route.ask(headers=[("x-a", "1")])).status for _ in range(3)}
    assert len(answers) == 1 and len(route.service.asks) == calls
    before = len(route.service.asks)
    for settings in ({"path": "/b"}, {"method": "POST", "body": b""}, {"headers": [("x-a", "2")]}):
        await route.ask(**settings)
    assert len(route.service.asks) == before + 3


async def test_keys_tell_questions_apart(world: World) -> None:
    route = await called(
        world, passing(("x-user", "me")), cache=AuthCache(ttl=60_000, key_headers=("x-a",))
    )
    for headers in ([("x-a", "1")], [("x-a", "1"), ("x-b", "2")], [("x-a", "1"), ("x-b", "3")]):
        assert (await route.ask(headers=headers)).status == 200
    assert len(route.service.asks) == 1
    assert (await route.ask(headers=[("x-a", "1"), ("authorization", "x")])).status == 200
    assert len(route.service.asks) == 2
    assert all(call.message.values(b"x-user") == [b"me"] for call in route.seen)


async def test_a_key_may_have_the_source_address(world: World) -> None:
    """x-forwarded-for ends with it, also where the service is not shown that header."""
    cache = AuthCache(ttl=60_000, key_headers=("x-forwarded-for",))
    route = await called(world, PASS, cache=cache, headers=("x-a",))
    for source, count in (("127.0.0.8", 1), ("127.0.0.9", 2), ("127.0.0.8", 2)):
        client = await world.client(route.port, source=source)
        assert (await client.ask(make_request())).status == 200
        assert len(route.service.asks) == count


async def test_equal_questions_are_one_call(world: World) -> None:
    route = await called(world, None, cache=AuthCache(ttl=60_000))
    clients = [await route.client() for _ in range(4)]
    for client in clients:
        await client.send(make_request())
    ask = await route.service.ask()
    await world.turns(3)
    assert len(route.service.asks) == 1
    say(passing(("x-user", "all")))(ask)
    assert [(await client.response()).body for client in clients] == [b"behind"] * 4
    assert all(call.message.values(b"x-user") == [b"all"] for call in route.seen)
