"""What a service may say of a request nobody else can: names, however they are written, where they come and whatever it answers."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import make_response
from core.client import make_request
from core.fleets import make_cluster
from core.policy.authorized import AUTH, DENY, fleet_of, guarded, make_auth, passing
from core.world import World

NAMES = ["x-user", "X-User", "X-USER", "x-uSeR"]
VARIANTS = ["x_user", "X_User", "x.user", "x~user"]


@pytest.mark.parametrize("fail_open", [False, True])
@pytest.mark.parametrize("name", NAMES + VARIANTS)
async def test_the_clients_word_does_not_reach_the_backend(
    world: World, name: str, fail_open: bool
) -> None:
    answer = (lambda call: b"nonsense\r\n\r\n") if fail_open else passing()
    http = {"underscores": "Allow"}
    route = await guarded(world, answer, to_backend=("x-user",), fail_open=fail_open, http=http)
    headers = [(name, "admin"), ("x-a", "1"), (name, "root"), ("x-users", "2"), ("xx-user", "3")]
    assert (await route.ask(headers=headers)).body == b"behind"
    (call,) = route.seen
    assert b"admin" not in call.message.raw and b"root" not in call.message.raw
    kept = [
        (key, value)
        for key, value in call.message.headers
        if key in (b"x-a", b"x-users", b"xx-user")
    ]
    assert kept == [(b"x-a", b"1"), (b"x-users", b"2"), (b"xx-user", b"3")]


async def test_all_lines_of_the_answer_are_kept_in_order(world: World) -> None:
    said = (
        ("X-User", "me"),
        ("x-groups", "a"),
        ("x-groups", "b, c"),
        ("x-other", "no"),
        ("x-groups", ""),
    )
    route = await guarded(world, passing(*said), to_backend=("x-groups", "x-user"))
    await route.ask(headers=[("x-groups", "fake"), ("x-other", "mine")])
    message = route.seen[0].message
    assert message.values(b"x-groups") == [b"a", b"b, c", b""]
    assert message.values(b"x-user") == [b"me"]
    assert message.values(b"x-other") == [b"mine"]


async def test_authorization_and_cookies_may_be_replaced(world: World) -> None:
    said = (("authorization", "Bearer inner"), ("cookie", "inner=1"))
    route = await guarded(world, None, headers=("cookie",), to_backend=("authorization", "cookie"))
    client = await route.client()
    await client.send(
        make_request(headers=[("authorization", "Bearer outer"), ("cookie", "outer=1")])
    )
    call = await route.service.call()
    assert call.message.value(b"authorization") == b"Bearer outer"
    assert call.message.value(b"cookie") == b"outer=1"
    call.reply(headers=said)
    assert (await client.response()).status == 200
    message = route.seen[0].message
    assert message.values(b"authorization") == [b"Bearer inner"]
    assert message.values(b"cookie") == [b"inner=1"]


async def test_framing_is_never_the_services(world: World) -> None:
    names = (
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "keep-alive",
        "x-edge-internal",
        "x-forwarded-for",
        "x-request-id",
        "expect",
        "content_length",
        "via",
        "proxy-connection",
    )
    said = (
        ("host", "evil"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("keep-alive", "1"),
        ("x-edge-internal", "true"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-request-id", "evil"),
        ("expect", "100-continue"),
        ("content_length", "7"),
        ("via", "evil"),
        ("proxy-connection", "evil"),
    )
    route = await guarded(world, passing(*said), to_backend=names)
    answer = await route.ask(method="POST", body=b"12345", headers=[("x-own", "1")])
    assert answer.body == b"behind"
    message = route.seen[0].message
    assert message.value(b"host") == b"test" and message.body == b"12345"
    assert message.value(b"content-length") == b"5"
    assert message.value(b"x-forwarded-for") == b"127.0.0.1"
    assert b"evil" not in message.raw and b"6.6.6.6" not in message.raw
    for name in (b"te", b"trailer", b"keep-alive", b"expect", b"content_length"):
        assert message.values(name) == []


async def test_what_the_service_nominates_is_not_for_the_backend(world: World) -> None:
    said = (("connection", "x-user"), ("x-user", "me"), ("x-role", "r"))
    route = await guarded(world, passing(*said), to_backend=("x-user", "x-role"))
    await route.ask()
    assert route.seen[0].message.values(b"x-user") == []
    assert route.seen[0].message.values(b"x-role") == [b"r"]


async def test_a_client_cannot_take_the_services_word_away(world: World) -> None:
    route = await guarded(world, passing(("x-user", "me")), to_backend=("x-user",))
    await route.ask(headers=[("connection", "x-user, close"), ("x-user", "fake")])
    assert route.seen[0].message.values(b"x-user") == [b"me"]


async def test_what_a_client_hides_from_the_backend_the_service_does_not_see(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    await client.send(
        make_request(headers=[("connection", "authorization"), ("authorization", "Bearer x")])
    )
    call = await route.service.call()
    assert call.message.values(b"authorization") == []
    call.send(DENY)
    assert (await client.response()).status == 403


async def test_fields_behind_a_body(world: World) -> None:
    route = await guarded(world, passing(("x-user", "me")), to_backend=("x-user",))
    client = await route.client()
    await client.send(
        b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\ntrailer: x-user\r\n\r\n"
        b"3\r\nabc\r\n0\r\nX-User: admin\r\nx-sum: 1\r\nx_user: admin\r\n\r\n"
    )
    assert (await client.response()).status == 200
    message = route.seen[0].message
    assert message.body == b"abc" and b"admin" not in message.raw
    assert message.values(b"x-user") == [b"me"]
    assert message.trailers == ((b"x-sum", b"1"),)


async def test_many_lines(world: World) -> None:
    said = tuple((f"x-{i}", "v" * 100) for i in range(60))
    headers = [(f"y-{i}", "w") for i in range(90)]
    names = tuple(name for name, _ in said)
    route = await guarded(world, passing(*said), to_backend=names)
    assert (await route.ask(headers=headers)).body == b"behind"
    found = route.seen[0].message.headers
    assert [key for key, _ in found if key.startswith(b"x-") and key[2:].isdigit()] == [
        name.encode() for name in names
    ]
    assert sum(key.startswith(b"y-") for key, _ in found) == 90


async def test_of_one_name_the_first_service_has_the_word(world: World) -> None:
    """A rule's own filter, which its route names, adds to what the policies above it have had said, and replaces none of it."""
    said = (("x-user", "admin"), ("X_User", "admin"), ("x-role", "r"), ("x-user", "root"))
    own = await world.backend(passing(*said))
    route = await guarded(world, passing(("X-User", "me")), unit=True, to_backend=("x-user",))
    spec = make_auth("own", to_backend=("x-user", "x_user", "x-role"))
    fleet = fleet_of(
        make_auth(to_backend=("x-user",)),
        route.backend.port,
        make_cluster(route.service.port, name=AUTH),
        make_cluster(own.port, name="own"),
        unit=True,
        rule={"ext_auth": spec},
    )
    world.apply(fleet)
    await route.ask()
    message = route.seen[0].message
    assert message.values(b"x-user") == [b"me"]
    assert message.values(b"x_user") == []
    assert message.values(b"x-role") == [b"r"]


async def test_a_filter_has_the_last_word(world: World) -> None:
    from edgefast import ir

    ops = ir.HeaderOps(set=(("x-user", "filter"),))
    route = await guarded(
        world, passing(("x-user", "me")), to_backend=("x-user",), rule={"request_headers": ops}
    )
    await route.ask()
    assert route.seen[0].message.values(b"x-user") == [b"filter"]


@pytest.mark.parametrize("value", ["a\r\nx-role: admin", "a\nx-role: admin", "a\rx", "a\x00b"])
async def test_an_answer_that_splits_lines_is_none(world: World, value: str) -> None:
    data = make_response(headers=(("x-user", value),))
    route = await guarded(world, lambda call: data, to_backend=("x-user",))
    answer: Any = await route.ask()
    if answer.status == 200:  # two lines of HTTP, of which one is not named
        assert route.seen[0].message.values(b"x-role") == []
    else:
        assert answer.status == 403 and route.seen == []
