"""What an authorisation service is asked, and what becomes of its answer."""

from __future__ import annotations

import pytest

from core.backend import Call, make_response
from core.client import make_request
from core.fleets import make_cluster
from core.policy.authorized import (
    AUTH,
    DENY,
    PASS,
    fleet_of,
    guarded,
    make_auth,
    of_a_rule,
    passing,
)
from core.world import World
from edgefast import ir
from edgefast.ir.policy import AuthBackend


@pytest.mark.parametrize("unit", [False, True])
async def test_a_request_passes_when_the_service_says_so(world: World, unit: bool) -> None:
    route = await guarded(world, passing(), unit=unit)
    answer = await route.ask("/a/../b?c=d", headers=[("authorization", "Bearer x"), ("x-own", "1")])
    assert (answer.status, answer.body) == (200, b"behind")
    assert route.service.count == 1 and len(route.seen) == 1
    assert world.counters["auth_calls"] == 1


async def test_what_the_service_is_shown(world: World) -> None:
    route = await guarded(world, None, headers=("cookie", "x-tenant"), path="/check/")
    client = await route.client()
    headers = [
        ("authorization", "Bearer x"),
        ("X-Tenant", "a"),
        ("x-tenant", "b"),
        ("cookie", "s=1"),
        ("x-other", "no"),
        ("x-forwarded-method", "FAKE"),
        ("x-forwarded-uri", "/fake"),
        ("x-edge-internal", "true"),
    ]
    await client.send(make_request("/a/./b%2d?c=d", method="POST", headers=headers, body=b"12345"))
    call = await route.service.call()
    message = call.message
    assert (message.method, message.target) == (b"POST", b"/check/a/b-?c=d")
    assert message.value(b"host") == b"test"
    assert message.value(b"authorization") == b"Bearer x"
    assert message.values(b"x-tenant") == [b"a", b"b"]
    assert message.value(b"cookie") == b"s=1"
    assert message.value(b"content-length") == b"0"
    assert message.value(b"x-other") is None
    assert message.value(b"x-forwarded-method") == b"POST"
    assert message.value(b"x-forwarded-uri") == b"/a/b-?c=d"
    assert message.value(b"x-forwarded-host") == b"test"
    assert message.value(b"x-forwarded-proto") == b"http"
    assert message.value(b"x-forwarded-for") == b"127.0.0.1"
    assert message.body == b""
    call.send(PASS)
    assert (await client.response()).status == 200
    (behind,) = route.seen
    assert behind.message.body == b"12345"
    assert behind.message.value(b"x-request-id") == message.value(b"x-request-id")


async def test_a_path_of_its_own(world: World) -> None:
    route = await guarded(world, None, path_override="/oauth2/auth?x=y")
    client = await route.client()
    await client.send(make_request("/a?b"))
    call = await route.service.call()
    assert call.message.target == b"/oauth2/auth?x=y"
    assert call.message.value(b"x-forwarded-uri") == b"/a?b"
    call.send(PASS)
    assert (await client.response()).status == 200


async def test_a_path_of_parts_of_the_request(world: World) -> None:
    template = (
        "/v/{method}{path}?h={host}:{authority}&s={scheme}&q={query}&u={target}&e={escapedTarget}"
    )
    route = await guarded(world, None, path_template=template)
    client = await route.client()
    await client.send(make_request("/x/../a%2d?b=c&d", host="A.test:80"))
    call = await route.service.call()
    assert call.message.target == (
        b"/v/GET/a-?h=a.test:A.test:80&s=http&q=b=c&d&u=/x/../a%2d?b=c&d&e=%2Fx%2F..%2Fa%252d%3Fb%3Dc%26d"
    )
    assert call.message.value(b"x-forwarded-uri") == b"/a-?b=c&d"
    call.send(PASS)
    assert (await client.response()).status == 200


async def test_a_cached_answer_is_for_the_same_path_of_a_check(world: World) -> None:
    cache = ir.AuthCache(ttl=10_000, key_headers=("x-tenant",))
    route = await guarded(world, passing(), path_template="/v?u={target}", cache=cache)
    for target in ("/a", "/a", "/x/../a"):
        assert (await route.ask(target)).status == 200
    assert route.service.count == 2


async def test_other_statuses_may_let_pass(world: World) -> None:
    route = await guarded(world, passing(status=202), statuses=(202,))
    assert (await route.ask()).status == 200
    route.service.answer = passing(status=200)
    answer = await route.ask()
    assert answer.status == 200 and answer.body == b"" and len(route.seen) == 1


async def test_a_denial_is_the_clients(world: World) -> None:
    headers = (
        ("location", "https://login.test/?r=1"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("content-type", "text/html"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("keep-alive", "5"),
        ("x-edge-internal", "true"),
    )
    route = await guarded(world, passing(*headers, body=b"<p>go</p>", status=302))
    answer = await route.ask()
    assert (answer.status, answer.body) == (302, b"<p>go</p>")
    assert answer.value("location") == "https://login.test/?r=1"
    assert [value for name, value in answer.headers if name == "set-cookie"] == ["a=1", "b=2"]
    assert answer.value("content-type") == "text/html"
    for name in ("x-hop", "keep-alive", "x-edge-internal"):
        assert answer.value(name) is None
    assert route.seen == []
    assert world.counters["auth_denied"] == 1
    assert [line["flags"] for line in world.lines()] == ["DENY"]


async def test_a_denial_of_head_has_no_body(world: World) -> None:
    route = await guarded(world, lambda call: b"HTTP/1.1 401 No\r\ncontent-length: 5\r\n\r\n")
    client = await route.client()
    await client.send(make_request(method="HEAD"))
    assert (await client.response(head=True)).status == 401
    route.service.answer = lambda call: PASS
    assert (await client.ask(make_request())).status == 200


@pytest.mark.parametrize("status", [204, 304])
async def test_a_denial_that_can_have_no_body(world: World, status: int) -> None:
    route = await guarded(world, lambda call: b"HTTP/1.1 %d No\r\n\r\n" % status)
    client = await route.client()
    await client.send(make_request())
    assert (await client.response(head=True)).status == status
    assert route.seen == []


async def test_a_denial_in_chunks(world: World) -> None:
    chunks = b"HTTP/1.1 403 No\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx-late: 1\r\n\r\n"
    route = await guarded(world, lambda call: chunks)
    answer = await route.ask()
    assert (answer.status, answer.body) == (403, b"abcde")


async def test_a_denial_until_the_connection_closes(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    await client.send(make_request())
    call = await route.service.call()
    call.send(b"HTTP/1.1 403 No\r\n\r\nto the end")
    call.link.close()
    answer = await client.response()
    assert (answer.status, answer.body) == (403, b"to the end")


async def test_interim_answers_say_nothing(world: World) -> None:
    route = await guarded(world, lambda call: b"HTTP/1.1 103 Early\r\nx-user: me\r\n\r\n" + DENY)
    assert (await route.ask()).status == 403
    assert route.seen == []


async def test_services_have_their_shares(world: World) -> None:
    one, two, backend = (
        await world.backend(passing()),
        await world.backend(passing()),
        await world.backend(passing()),
    )
    spec = ir.ExtAuth(backends=(AuthBackend("one", 3), AuthBackend("two", 1)))
    clusters = make_cluster(one.port, name="one"), make_cluster(two.port, name="two")
    client = await world.client_of(fleet_of(spec, backend.port, *clusters))
    for _ in range(8):
        assert (await client.ask(make_request())).status == 200
    assert (one.count, two.count) == (6, 2)


async def test_a_policy_and_the_rules_own_are_both_asked(world: World) -> None:
    order: list[str] = []

    def note(name: str, data: bytes):  # type: ignore[no-untyped-def]
        def answer(call: Call) -> bytes:
            order.append(name)
            seen[name] = call
            return data

        return answer

    seen: dict[str, Call] = {}
    mine = make_auth(headers=("x-user",), to_backend=("x-user", "x-role"))
    user = make_response(headers=(("x-user", "first"), ("x-role", "r1")))
    own = make_response(headers=(("x-role", "r2"),))
    one, two = await world.backend(note("unit", user)), await world.backend(note("own", own))
    behind: list[Call] = []

    def keep(call: Call) -> bytes:
        behind.append(call)
        return PASS

    backend = await world.backend(keep)
    fleet = fleet_of(
        mine,
        backend.port,
        make_cluster(one.port, name=AUTH),
        unit=True,
        rule={"ext_auth": make_auth("own", headers=("x-user",), to_backend=("x-role",))},
        more=(make_cluster(two.port, name="own"),),
    )
    client = await world.client_of(fleet)
    assert (
        await client.ask(make_request(headers=[("x-user", "fake"), ("x-role", "fake")]))
    ).status == 200
    assert order == ["unit", "own"]
    assert seen["unit"].message.values(b"x-user") == [
        b"fake"
    ]  # what the client says, for the service to judge
    assert seen["own"].message.values(b"x-user") == [b"first"]
    assert behind[0].message.values(b"x-user") == [b"first"]
    assert behind[0].message.values(b"x-role") == [b"r1"]
    two.answer = lambda call: DENY
    assert (await client.ask(make_request())).status == 403
    one.answer = lambda call: DENY
    count = two.count
    assert (await client.ask(make_request())).status == 403
    assert two.count == count and len(behind) == 1


@of_a_rule
async def test_a_preflight_is_answered_before(world: World) -> None:
    route = await guarded(
        world, passing(status=401), rule={"cors": ir.Cors(allow_origins=("http://a.test",))}
    )
    headers = [("origin", "http://a.test"), ("access-control-request-method", "PUT")]
    assert (await route.ask(method="OPTIONS", headers=headers)).status == 204
    assert route.service.count == 0
    answer = await route.ask(headers=headers[:1])
    assert answer.status == 401
    assert answer.value("access-control-allow-origin") == "http://a.test"  # the page may read why


async def test_a_redirect_is_for_those_who_may_enter(world: World) -> None:
    rule = {"redirect": ir.Redirect(hostname="other.test")}
    route = await guarded(world, lambda call: DENY, rule=rule)
    assert (await route.ask()).status == 403
    route.service.answer = lambda call: PASS
    assert (await route.ask("/x?y")).value("location") == "http://other.test:8080/x?y"


async def test_the_path_is_rewritten_behind_it(world: World) -> None:
    rewrite = ir.Rewrite(path=ir.PathRewrite(kind="full", value="/new"))
    route = await guarded(world, None, rule={"rewrite": rewrite})
    client = await route.client()
    await client.send(make_request("/old?q"))
    call = await route.service.call()
    assert call.message.target == b"/old?q"
    call.send(PASS)
    assert (await client.response()).status == 200
    assert route.seen[0].message.target == b"/new?q"


async def test_asterisk(world: World) -> None:
    route = await guarded(world, None, path="/p")
    client = await route.client()
    await client.send(make_request("*", method="OPTIONS"))
    call = await route.service.call()
    assert call.message.target == b"/p/"
    call.send(PASS)
    assert (await client.response()).status == 200
    assert route.seen[0].message.target == b"*"


async def test_limits_count_who_has_entered_by_what_the_service_says(world: World) -> None:
    limit = ir.RateLimit(
        name="ns/l#0", counter="c", requests=1, unit=3600, distinct_headers=("x-user",)
    )
    route = await guarded(world, None, to_backend=("x-user",), rule={"rate_limits": (limit,)})
    users = iter(["a", "b", "a"])
    route.service.answer = lambda call: make_response(headers=(("x-user", next(users)),))
    answers = [(await route.ask(headers=[("x-user", f"fake{i}")])).status for i in range(3)]
    assert answers == [200, 200, 429]
    route.service.answer = lambda call: DENY
    assert (await route.ask()).status == 403


async def test_a_request_is_shown_once_and_tried_twice(world: World) -> None:
    retry = ir.Retry(codes=(503,), attempts=2, backoff=1)
    route = await guarded(
        world, passing(("x-user", "me")), to_backend=("x-user",), rule={"retry": retry}
    )
    answers = iter([make_response(status=503), PASS])
    calls: list[Call] = []

    def behind(call: Call) -> bytes:
        calls.append(call)
        return next(answers)

    route.backend.answer = behind
    assert (await route.ask()).status == 200
    assert route.service.count == 1
    assert [call.message.value(b"x-user") for call in calls] == [b"me", b"me"]


async def test_mirrors_get_what_has_entered(world: World) -> None:
    shadow = await world.backend()
    rule = {"mirrors": (ir.Mirror(cluster="shadow"),)}
    route = await guarded(
        world,
        lambda call: DENY,
        to_backend=("x-user",),
        rule=rule,
        more=(make_cluster(shadow.port, name="shadow"),),
    )
    assert (await route.ask()).status == 403
    route.service.answer = passing(("x-user", "me"))
    assert (await route.ask("/in", headers=[("x-user", "fake")])).status == 200
    copy = await shadow.call()
    assert copy.path == "/in" and copy.message.values(b"x-user") == [b"me"]
    copy.reply()
    await world.settle()
    assert shadow.count == 1
