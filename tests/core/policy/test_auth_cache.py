"""Answers of a service that are believed for a while, and one call for many who ask the same."""

from __future__ import annotations

from typing import Any

import pytest

from core.apart import apart, shift
from core.backend import Call
from core.client import Client, Response, make_request
from core.fleets import make_cluster
from core.policy.authorized import AUTH, DENY, PASS, Guarded, fleet_of, guarded, make_auth, passing
from core.world import World
from edgefast.ir.http import ClientAddress
from edgefast.ir.policy import AuthCache

MINUTE = AuthCache(ttl=60_000)


async def ask(
    client: Client, path: str = "/", *headers: tuple[str, str], **settings: Any
) -> Response:
    return await client.ask(make_request(path, headers=headers, **settings))


async def test_the_same_is_asked_once(world: World) -> None:
    route = await guarded(world, passing(("x-user", "me")), cache=MINUTE, to_backend=("x-user",))
    client = await route.client()
    for _ in range(5):
        assert (await ask(client, "/a?b", ("authorization", "x"), ("x-user", "fake"))).status == 200
    assert route.service.count == 1
    assert [call.message.values(b"x-user") for call in route.seen] == [[b"me"]] * 5
    assert world.counters["auth_cached"] == 4


async def test_what_is_not_the_same(world: World) -> None:
    route = await guarded(world, passing(), cache=MINUTE, headers=("cookie",))
    client = await route.client()
    asked = [
        make_request("/a"),
        make_request("/a?"),
        make_request("/a?b"),
        make_request("/ab"),
        make_request("/a", method="POST"),
        make_request("/a", host="other"),
        make_request("/a", headers=[("authorization", "x")]),
        make_request("/a", headers=[("authorization", "")]),
        make_request("/a", headers=[("cookie", "x")]),
        make_request("/a", headers=[("cookie", "x"), ("cookie", "x")]),
    ]
    for request in asked * 2:
        assert (await client.ask(request)).status == 200
    assert route.service.count == len(asked)
    assert (await ask(client, "/a", ("x-other", "1"))).status == 200  # which it is not shown
    assert route.service.count == len(asked)
    stranger = await world.client(route.port, source="127.0.0.9")  # another address
    assert (await ask(stranger, "/a")).status == 200
    assert route.service.count == len(asked) + 1


async def test_key_headers_narrow(world: World) -> None:
    cache = AuthCache(ttl=60_000, key_headers=("authorization",))
    route = await guarded(world, passing(), cache=cache, headers=("cookie",))
    client = await route.client()
    for i in range(4):
        assert (await ask(client, "/a", ("authorization", "x"), ("cookie", str(i)))).status == 200
    assert route.service.count == 1
    await ask(client, "/a", ("authorization", "y"))
    await ask(client, "/b", ("authorization", "x"))
    assert route.service.count == 3


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("x-other", (1, 1, 1)),
        ("x-forwarded-for", (1, 2, 3)),
        ("x-edge-external-address", (1, 2, 3)),
        ("x-forwarded-proto", (1, 1, 1)),
        ("x-forwarded-uri", (1, 1, 1)),  # is in every key
        ("via", (1, 2, 3)),  # is in no question: nothing is cached
        ("x-request-id", (1, 2, 3)),
    ],
)
async def test_keys_of_what_the_proxy_says(
    world: World, name: str, counts: tuple[int, ...]
) -> None:
    """Answers may depend on the client's address: without it in the key, one client gets access with the answer for another."""
    cache = AuthCache(ttl=60_000, key_headers=(name,))
    http = {"client_address": ClientAddress(trusted_hops=1)}
    route = await guarded(world, passing(), cache=cache, http=http)
    client = await route.client()
    for count, address in zip(
        counts, ("198.51.100.1", "198.51.100.2", "198.51.100.3"), strict=True
    ):
        assert (
            await ask(client, "/a", ("x-forwarded-for", address), ("via", "1.1 a"))
        ).status == 200
        assert route.service.count == count
    before = route.service.count
    assert (await ask(client, "/a", ("x-forwarded-for", address), ("via", "1.1 a"))).status == 200
    cached = name not in ("via", "x-request-id")
    assert route.service.count == before + (0 if cached else 1)


@pytest.mark.parametrize("names", [(), ("cookie",)])
async def test_whoever_shows_another_token_is_another_one(
    world: World, names: tuple[str, ...]
) -> None:
    """Every service is shown `authorization`, so no narrower key is without it."""

    def judge(call: Call) -> bytes:
        return PASS if call.message.value(b"authorization") == b"good" else DENY

    route = await guarded(world, judge, cache=AuthCache(ttl=60_000, key_headers=names))
    client = await route.client()
    for _ in range(2):
        assert (await ask(client, "/", ("authorization", "good"))).status == 200
        assert (await ask(client, "/", ("authorization", "bad"))).status == 403
        assert (await ask(client)).status == 403
    assert route.service.count == 3


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (passing(status=401), 1),
        (passing(("www-authenticate", "x"), status=403), 1),
        (passing(status=404), 3),
        (passing(status=302), 3),
        (passing(status=500), 3),
        (passing(status=403, body=b"why"), 3),
        (passing(("set-cookie", "a=1"), status=403), 3),
        (passing(("Set-Cookie", "a=1")), 3),
        (passing(body=b"unread"), 1),
        (lambda call: b"nonsense\r\n\r\n", 3),
    ],
)
async def test_what_is_kept(world: World, answer: Any, count: int) -> None:
    route = await guarded(world, answer, cache=MINUTE)
    client = await route.client()
    answers = [await ask(client) for _ in range(3)]
    assert len({(one.status, one.body, one.value("www-authenticate")) for one in answers}) == 1
    assert route.service.count == count


@apart(clock=True)
async def test_it_is_believed_for_its_time(world: World) -> None:
    route = await guarded(world, passing(), cache=AuthCache(ttl=600_000))  # a minute at most
    client = await route.client()
    await ask(client)
    shift(59)
    await world.turns()
    await ask(client)
    assert route.service.count == 1
    shift(2)
    await world.turns()
    route.service.answer = lambda call: DENY
    assert (await ask(client)).status == 403


@pytest.mark.parametrize("unit", [False, True])
async def test_a_change_makes_it_forget(world: World, unit: bool) -> None:
    route = await guarded(world, passing(), cache=MINUTE, unit=unit)
    client = await route.client()
    await ask(client)
    route.service.answer = lambda call: DENY
    assert (await ask(client)).status == 200
    changed = make_auth(cache=MINUTE, timeout=9_000)
    world.apply(
        fleet_of(
            changed, route.backend.port, make_cluster(route.service.port, name=AUTH), unit=unit
        )
    )
    assert (await ask(client)).status == 403


async def test_bodies_are_not_judged_by_it(world: World) -> None:
    route = await guarded(world, passing(), cache=MINUTE, body=100)
    client = await route.client()
    for _ in range(2):
        assert (await ask(client, method="POST", body=b"abc")).status == 200
    assert route.service.count == 2
    for _ in range(2):
        assert (await ask(client)).status == 200
    assert route.service.count == 3


async def many(route: Guarded, count: int) -> list[Client]:
    clients = [await route.client() for _ in range(count)]
    for client in clients:
        await client.send(make_request())
    await route.world.until(lambda: route.world.engine.active == count)
    return clients


@pytest.mark.parametrize("data", [PASS, DENY, b"nonsense\r\n\r\n"])
async def test_one_call_for_many(world: World, data: bytes) -> None:
    route = await guarded(world, None, cache=MINUTE)
    clients = await many(route, 5)
    call = await route.service.call()
    call.send(data)
    expected = 200 if data is PASS else 403
    assert [(await client.response()).status for client in clients] == [expected] * 5
    assert route.service.count == 1


async def test_the_first_one_leaves(world: World) -> None:
    route = await guarded(world, None, cache=MINUTE)
    clients = await many(route, 3)
    call = await route.service.call()
    clients[0].reset()
    await world.until(lambda: world.engine.active == 2)
    call.send(PASS)
    assert [(await client.response()).status for client in clients[1:]] == [200, 200]
    assert route.service.count == 1


PRIVATE = [
    (b"HTTP/1.1 401 No\r\nset-cookie: sid=%d\r\ncontent-length: 0\r\n\r\n", "set-cookie"),
    (b"HTTP/1.1 403 No\r\nx-for: %d\r\ncontent-length: 3\r\n\r\nyou", "x-for"),
    (b"HTTP/1.1 302 Go\r\nlocation: /sid=%d\r\ncontent-length: 0\r\n\r\n", "location"),
]


@pytest.mark.parametrize(("answer", "name"), PRIVATE)
async def test_what_is_for_one_client_is_for_no_other(
    world: World, answer: bytes, name: str
) -> None:
    """The one whose request was shown has it, the others ask for themselves."""
    route = await guarded(world, None, cache=MINUTE)
    clients = await many(route, 3)
    call = await route.service.call()
    assert route.service.count == 1
    call.send(answer % 0)
    for number in (1, 2):
        (await route.service.call()).send(answer % number)
    told = [(await client.response()).value(name) for client in clients]
    assert [value[-1] if value else "" for value in told] == ["0", "1", "2"]
    assert (route.service.count, route.seen) == (3, [])


async def test_a_cookie_for_the_backend_is_for_no_other(world: World) -> None:
    route = await guarded(world, None, cache=MINUTE, to_backend=("set-cookie",))
    clients = await many(route, 2)
    call = await route.service.call()
    call.send(b"HTTP/1.1 200 OK\r\nset-cookie: sid=0\r\ncontent-length: 0\r\n\r\n")
    (await route.service.call()).send(PASS)
    assert [(await client.response()).status for client in clients] == [200, 200]
    said = [call.message.values(b"set-cookie") for call in route.seen]
    assert sorted(said) == [[], [b"sid=0"]]


async def test_what_was_for_one_who_left_is_for_nobody(world: World) -> None:
    route = await guarded(world, None, cache=MINUTE)
    clients = await many(route, 2)
    call = await route.service.call()
    clients[0].reset()
    await world.until(lambda: world.engine.active == 1)
    call.send(PRIVATE[0][0] % 0)
    (await route.service.call()).send(PASS)
    answer = await clients[1].response()
    assert (answer.status, answer.value("set-cookie")) == (200, None)


async def test_all_leave(world: World) -> None:
    route = await guarded(world, None, cache=MINUTE)
    clients = await many(route, 3)
    await route.service.call()
    for client in clients:
        client.reset()
    await world.until(lambda: world.engine.active == 0)
    await world.until(lambda: route.service.open == [])
    route.service.answer = passing()
    assert (await route.ask()).status == 200


LARGE = "v" * 4_000  # of what is kept at all, about the most


async def test_those_that_nobody_asks_for_go(world: World) -> None:
    """A worker keeps 3 MiB of answers that let pass."""
    route = await guarded(world, passing(("x-user", LARGE)), cache=MINUTE, to_backend=("x-user",))
    client = await route.client()
    asked = 0
    for i in range(900):
        assert (await ask(client, f"/{i}")).status == 200
        asked += 1
        if i % 100 == 0:
            assert (await ask(client, "/0")).status == 200
            assert route.service.count == asked, "it is asked for, and stays"
    assert (await ask(client, "/899")).status == 200
    assert route.service.count == asked
    assert (await ask(client, "/1")).status == 200
    assert route.service.count == asked + 1


async def test_denials_take_nothing_from_those_who_are_let_in(world: World) -> None:
    """As many as a stranger likes: they have 1 MiB of their own."""
    deny = passing(("www-authenticate", LARGE), status=401)

    def judge(call: Call) -> bytes:
        said = passing()(call) if call.message.value(b"authorization") else deny(call)
        assert isinstance(said, bytes)
        return said

    route = await guarded(world, judge, cache=MINUTE)
    client = await route.client()
    good = ("authorization", "x")
    assert (await ask(client, "/mine", good)).status == 200
    for i in range(1_200):
        assert (await ask(client, f"/{i}")).status == 401
    assert (await ask(client, "/mine", good)).status == 200
    assert route.service.count == 1_201
    for path, count in (("/1199", 1_201), ("/0", 1_202)):
        assert (await ask(client, path)).status == 401
        assert route.service.count == count


async def test_a_large_answer_is_not_kept(world: World) -> None:
    route = await guarded(
        world, passing(("x-user", LARGE + "v" * 100)), cache=MINUTE, to_backend=("x-user",)
    )
    for count in (1, 2):
        assert (await route.ask()).status == 200
        assert route.service.count == count


@apart(clock=True)
async def test_what_is_asked_for_again_is_believed_no_longer(world: World) -> None:
    route = await guarded(world, passing(), cache=AuthCache(ttl=10_000))
    client = await route.client()
    for seconds, count in ((0, 1), (6, 1), (5, 2)):
        shift(seconds)
        await world.turns()
        assert (await ask(client)).status == 200
        assert route.service.count == count
