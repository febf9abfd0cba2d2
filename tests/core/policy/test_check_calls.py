"""What a service of gRPC is asked, and what becomes of its answer."""

from __future__ import annotations

import time

import pytest

from core.backend import Call, make_response
from core.fleets import make_cluster
from core.h2.asking import Asker
from core.policy.authorized import AUTH, fleet_of, make_auth
from core.policy.authorized import passing as http_passing
from core.policy.called import CALLED, called
from core.policy.checkmessages import (
    ADD_IF_ABSENT,
    APPEND,
    OVERWRITE,
    OVERWRITE_IF_THERE,
    headers_of,
    passing,
)
from core.world import World
from edgefast import ir
from edgefast.ir.policy import AuthCache

PASS = passing()


@pytest.mark.parametrize("unit", [False, True])
async def test_what_it_is_asked(world: World, unit: bool) -> None:
    route = await called(world, PASS, unit=unit)
    began = time.time()
    headers = [
        ("Authorization", "Bearer x"),
        ("X-Tenant", "a"),
        ("x-tenant", "b"),
        ("Cookie", "a=1"),
        ("cookie", "b=2"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("x-forwarded-method", "FAKE"),
        ("x-edge-internal", "true"),
        ("x-empty", ""),
    ]
    answer = await route.ask("/a/./b%2d?c=%20d", method="PUT", headers=headers, body=b"12345")
    assert (answer.status, answer.body) == (200, b"behind")
    ask = route.service.asks[0]
    assert ask.value(":method") == "POST"
    assert ask.value(":path") == "/envoy.service.auth.v3.Authorization/Check"
    assert ask.value(":authority") == "auth.ns"
    assert ask.value("content-type") == "application/grpc"
    assert (ask.value("te"), ask.value("grpc-timeout")) == ("trailers", "10000m")
    attributes = route.question().attributes
    http = attributes.request.http
    assert (http.method, http.path, http.host, http.scheme, http.protocol) == (
        *("PUT", "/a/b-?c=%20d", "test", "http", "HTTP/1.1"),
    )
    assert (http.size, http.body, http.raw_body, http.query, http.fragment) == (5, "", b"", "", "")
    shown = headers_of(route.question())
    assert len(shown.pop("x-request-id")) == 36 and http.id == ask.value("x-request-id")
    assert shown == {
        ":authority": "test",
        ":method": "PUT",
        ":path": "/a/b-?c=%20d",
        ":scheme": "http",
        "authorization": "Bearer x",
        "content-length": "5",
        "cookie": "a=1; b=2",
        "x-edge-internal": "true",
        "x-empty": "",
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": "http",
        "x-tenant": "a,b",
    }
    source = attributes.source.address.socket_address
    assert source.address == "127.0.0.1" and source.port_value > 0
    destination = attributes.destination.address.socket_address
    assert (destination.address, destination.port_value) == ("127.0.0.1", route.port)
    moment = attributes.request.time
    assert began - 1 < moment.seconds + moment.nanos / 1e9 < time.time() + 1
    assert route.seen[0].message.body == b"12345"
    assert route.seen[0].message.value(b"x-request-id") == http.id.encode()


async def test_headers_that_are_listed_are_all_that_it_gets(world: World) -> None:
    route = await called(world, PASS, headers=("x-tenant", "x-forwarded-for"))
    headers = [("authorization", "x"), ("x-tenant", "a"), ("x-forwarded-for", "1.2.3.4")]
    await route.ask(headers=headers)
    assert headers_of(route.question()) == {
        "x-tenant": "a",
        "x-forwarded-for": "1.2.3.4,127.0.0.1",
    }


async def test_text_that_is_none_is_made_one(world: World) -> None:
    """Or the service could not read its question, and nobody would be denied where failOpen is set."""
    route = await called(world, PASS, body=100)
    raw = b"POST / HTTP/1.1\r\nhost: test\r\nx-a: \xff\xc3\xa9\xc3\r\ncontent-length: 4\r\n\r\na\xffb\x00"
    client = await route.client()
    await client.send(raw)
    assert (await client.response()).body == b"behind"
    http = route.question().attributes.request.http
    assert headers_of(route.question())["x-a"] == "?é?"
    assert (http.body, http.raw_body, http.size) == ("a?b\0", b"a\xffb\0", 4)
    assert b"x-a: \xff\xc3\xa9\xc3\r\n" in route.seen[0].message.raw
    assert route.seen[0].message.body == b"a\xffb\0"


@pytest.mark.parametrize("size", [1, 100, 40_000])
async def test_its_body_is_shown(world: World, size: int) -> None:
    route = await called(world, PASS, body=50_000)
    body = b"x" * size
    assert (await route.ask(method="POST", body=body)).body == b"behind"
    http = route.question().attributes.request.http
    assert (http.body, http.raw_body, http.size) == (body.decode(), b"", size)
    assert route.seen[0].message.body == body
    assert (await route.ask(method="POST", body=body + b"x" * 50_000)).status == 413
    assert len(route.service.asks) == 1
    assert (await route.ask()).status == 200
    assert route.question().attributes.request.http.size == 0


async def test_a_client_of_http2(world: World) -> None:
    route = await called(world, passing(("x-user", "me")))
    asker = Asker(await route.client())
    fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"t"), (b":path", b"/a")]
    answer = await asker.ask([*fields, (b"x-user", b"fake"), (b"cookie", b"a"), (b"cookie", b"b")])
    assert (answer.status, answer.body) == (200, b"behind")
    assert route.question().attributes.request.http.protocol == "HTTP/2"
    assert headers_of(route.question())["cookie"] == "a; b"
    assert route.seen[0].message.values(b"x-user") == [b"me"]


SENT = [("X-User", "client"), ("x-roles", "a"), ("authorization", "secret")]
#: What the service says; what the backend gets of x-user, x-roles, x-new and authorization.
EDITS: dict[str, tuple[bytes, list[list[str]]]] = {
    "nothing": (PASS, [["client"], ["a"], [], ["secret"]]),
    "no action overwrites": (passing(("x-user", "s")), [["s"], ["a"], [], ["secret"]]),
    "overwrite": (
        passing(("X-User", "s", OVERWRITE), ("x-new", "n", OVERWRITE)),
        [["s"], ["a"], ["n"], ["secret"]],
    ),
    "the last of two": (
        passing(("x-user", "s"), ("x-user", "t")),
        [["t"], ["a"], [], ["secret"]],
    ),
    "if absent": (
        passing(("x-user", "s", ADD_IF_ABSENT), ("x-new", "n", ADD_IF_ABSENT)),
        [["client"], ["a"], ["n"], ["secret"]],
    ),
    "if there": (
        passing(("x-user", "s", OVERWRITE_IF_THERE), ("x-new", "n", OVERWRITE_IF_THERE)),
        [["s"], ["a"], [], ["secret"]],
    ),
    "remove": (
        passing(remove=("Authorization", "X_ROLES", ":path", "host", "content-length")),
        [["client"], [], [], []],
    ),
    "set and remove": (
        passing(("x-user", "s"), ("x-new", "n"), remove=("x-user", "x-new")),
        [[], ["a"], [], ["secret"]],
    ),
    "an action that is none": (passing(("x-user", "s", 9)), [["s"], ["a"], [], ["secret"]]),
}


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("how", EDITS)
async def test_what_it_does_to_the_request(world: World, how: str, cached: bool) -> None:
    message, wanted = EDITS[how]
    route = await called(world, message, cache=AuthCache(ttl=60_000) if cached else None)
    for _ in range(1 + cached):
        assert (await route.ask("/p", headers=SENT)).body == b"behind"
    assert len(route.service.asks) == 1
    for call in route.seen:
        names = (b"x-user", b"x-roles", b"x-new", b"authorization")
        assert [[v.decode() for v in call.message.values(name)] for name in names] == wanted
        assert call.message.value(b"host") == b"test"


def append(name: str, value: str) -> bytes:
    """`append: true`, which is what services of before `append_action` say."""
    from core.policy.checkmessages import CheckResponse

    made = CheckResponse.FromString(passing((name, value)))
    made.ok_response.headers[0].append.value = True
    data: bytes = made.SerializeToString()
    return data


async def test_what_is_appended_stands_behind_the_clients(world: World) -> None:
    route = await called(world, append("x-roles", "s"))
    assert (await route.ask(headers=SENT)).status == 200
    assert route.seen[0].message.values(b"x-roles") == [b"a", b"s"]


async def test_what_it_sets_is_set_in_every_spelling(world: World) -> None:
    """What a backend takes for x-user is the service's word, wherever the client puts it."""
    route = await called(
        world, passing(("x-user", "me"), remove=("x-gone",)), http={"underscores": "Allow"}
    )
    raw = (
        b"POST / HTTP/1.1\r\nhost: test\r\nX_User: evil\r\nx.user: evil\r\nx-user: evil\r\nX_GONE: evil\r\n"
        b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-user: evil\r\nx_gone: evil\r\nx-kept: 1\r\n\r\n"
    )
    cut = raw.index(b"\r\n\r\n") + 4
    for late in (False, True):
        client = await route.client()
        if late:  # the rest comes when the service has spoken
            await client.send(raw[:cut])
            await world.until(lambda: len(route.service.asks) == 2)
            await world.turns(3)
            await client.send(raw[cut:])
        else:
            await client.send(raw)
        assert (await client.response()).status == 200
        message = route.seen[-1].message
        assert b"evil" not in message.raw and message.values(b"x-user") == [b"me"]


NEVER = ("Content-Length", "host", "transfer-encoding", "connection", "x-forwarded-for", "te")


async def test_what_is_the_proxys_it_does_not_set(world: World) -> None:
    lines = [(name, "never") for name in (*NEVER, "x-edge-internal", ":path", ":authority", "via")]
    framing = ("content-length", "transfer-encoding", "connection", "x-edge-internal", ":status")
    route = await called(world, passing(*lines, answer=tuple((name, "never") for name in framing)))
    answer = await route.ask("/a")
    assert (answer.status, answer.body) == (200, b"behind")
    message = route.seen[0].message
    assert message.target == b"/a"
    assert message.values(b"host") == [b"test"] and b"never" not in message.raw
    assert "never" not in [value for _, value in answer.headers]


async def test_what_it_says_to_the_client_of_a_request_that_passes(world: World) -> None:
    said = (
        ("set-cookie", "s=1"),
        ("x-frame", "DENY", OVERWRITE),
        ("x-there", "no", ADD_IF_ABSENT),
        ("x-absent", "yes", ADD_IF_ABSENT),
        ("x-gone", "no", OVERWRITE_IF_THERE),
        ("x-there", "more", APPEND),
    )
    route = await called(world, passing(answer=said))
    lines = [("set-cookie", "b=1"), ("X-Frame", "SAME"), ("x-there", "1")]
    route.backend.answer = lambda call: make_response(b"behind", 200, lines)
    answer = await route.ask()
    values = lambda name: [value for one, value in answer.headers if one.lower() == name]  # noqa: E731
    assert answer.body == b"behind"
    assert values("set-cookie") == ["b=1", "s=1"]
    assert values("x-frame") == ["DENY"] and values("x-there") == ["1", "more"]
    assert values("x-absent") == ["yes"] and values("x-gone") == []


async def test_an_answer_of_the_proxys_own_has_them_too(world: World) -> None:
    direct = ir.DirectResponse(status=418, body=b"tea")
    route = await called(world, passing(answer=(("x-said", "1"),)), rule={"direct": direct})
    answer = await route.ask()
    assert (answer.status, answer.body, answer.value("x-said")) == (418, b"tea", "1")


async def test_several_services(world: World) -> None:
    """Of one header the word of the first service stays, whatever the second one is and does with it."""
    asked: list[Call] = []

    def judge(call: Call) -> bytes:
        asked.append(call)
        return make_response(b"", 200, [("x-user", "second"), ("x-own", "2")])

    service = await world.backend(judge)
    second = make_auth(AUTH, to_backend=("x-user", "x-own"), headers=("x-user", "x-more"))
    first = passing(("x-user", "first"), ("x-more", "1"), remove=("x-own",))
    route = await called(
        world,
        first,
        unit=True,
        rule={"ext_auth": second},
        more=(make_cluster(service.port, name=AUTH),),
    )
    headers = [("x-user", "evil"), ("x-own", "evil"), ("x-more", "evil")]
    assert (await route.ask(headers=headers)).body == b"behind"
    message = route.seen[0].message
    assert message.values(b"x-user") == [b"first"] and message.values(b"x-own") == [b"2"]
    assert message.values(b"x-more") == [b"1"] and b"evil" not in message.raw
    shown = asked[0].message
    assert shown.values(b"x-user") == [b"first"] and b"evil" not in shown.raw


async def test_one_of_grpc_behind_one_of_http(world: World) -> None:
    service = await world.backend(http_passing(("x-user", "first")))
    auth = make_auth(AUTH, to_backend=("x-user",))
    route = await called(world, passing(("x-user", "second"), ("x-b", "2"), remove=("x-user",)))
    called_spec = make_auth(CALLED, grpc=True)
    fleet = fleet_of(
        auth,
        route.backend.port,
        make_cluster(service.port, name=AUTH),
        make_cluster(route.service.port, name=CALLED, protocol="h2"),
        unit=True,
        rule={"ext_auth": called_spec},
    )
    world.apply(fleet)
    assert (await route.ask(headers=[("x-user", "evil"), ("x-b", "evil")])).body == b"behind"
    assert route.seen[0].message.values(b"x-user") == [b"first"]
    assert route.seen[0].message.values(b"x-b") == [b"2"]
    assert headers_of(route.question())["x-user"] == "first"


async def test_who_is_asked_has_a_name(world: World) -> None:
    """The certificate's, where it shows one: that is whom a server of TLS takes itself for."""
    route = await called(world, PASS)
    name = "backend/ns/other/h2"
    cluster = make_cluster(route.service.port, name=name, protocol="h2")
    world.apply(fleet_of(make_auth(name, grpc=True), route.backend.port, cluster))
    assert (await route.ask()).status == 200
    assert route.service.asks[-1].value(":authority") == "other.ns"
