"""Filters of a listener: asked before a request is routed, of those that no rule takes as well."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import Call, make_response
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.authenticators import KEYS, make_keys
from core.policy.authorized import (
    AUTH,
    DENY,
    FILTER,
    PASS,
    make_auth,
    make_unit,
    passing,
    with_filters,
)
from core.policy.filtered import INNER, SECOND, by_tenant, filtered
from core.world import World
from edgefast import ir


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
async def test_a_request_that_no_rule_takes_is_shown_first(world: World, method: str) -> None:
    found = await filtered(world, passing(status=401), make_host(("/there", make_rule())))
    for path in ("/", "/nowhere", "/there"):
        assert await found.status(path, method=method) == 401
    assert await found.status(host="other", method=method) == 401
    assert found.service.count == 4 and found.seen == []
    found.service.answer = passing()
    assert await found.status("/nowhere", method=method) == 404
    assert found.service.count == 5
    lines = world.lines()
    assert [one["flags"] for one in lines] == ["DENY"] * 4 + ["NR"]
    assert {one["policy"] for one in lines[:4]} == {FILTER}
    assert world.counters.policy("listener/ns/gw/http\tfilters.requests[0]") == {
        "denied": 4,
        "allowed": 1,
    }


async def test_a_host_that_nobody_has(world: World) -> None:
    found = await filtered(world, lambda call: DENY, make_host(make_rule(), hostname="a.test"))
    assert await found.status(host="b.test") == 403
    found.service.answer = lambda call: PASS
    assert await found.status(host="b.test") == 404
    assert await found.status(host="a.test") == 200


@pytest.mark.parametrize(
    "rule",
    [
        {"redirect": ir.Redirect(hostname="b.test")},
        {"direct": ir.DirectResponse(status=201)},
        {"status": 500},
        {"cors": ir.Cors(allow_origins=("*",))},
    ],
)
async def test_no_answer_of_the_proxys_own_escapes(world: World, rule: dict[str, Any]) -> None:
    found = await filtered(world, lambda call: DENY, make_host(make_rule(**rule)))
    headers = [("origin", "http://c.test"), ("access-control-request-method", "PUT")]
    for method in ("GET", "OPTIONS"):
        assert await found.status(method=method, headers=headers) == 403
    found.service.answer = lambda call: PASS
    expected = {"redirect": 302, "direct": 201, "status": 500, "cors": 204}[next(iter(rule))]
    assert await found.status(method="OPTIONS", headers=headers) == expected


async def test_rules_match_on_what_it_says(world: World) -> None:
    found = await filtered(
        world, passing(("x-tenant", "one")), by_tenant(), to_backend=("x-tenant", "host")
    )
    assert await found.status(headers=[("x-tenant", "two")]) == 200
    message = found.seen[0].message
    assert message.values(b"x-tenant") == [b"one"] and message.value(b"host") == b"test"
    found.service.answer = passing(("x-tenant", "two"), ("host", "a.test"))
    assert await found.status(headers=[("x-tenant", "one"), ("X-TENANT", "one")]) == 418
    found.service.answer = (
        passing()
    )  # it has no settings for this request, and of the client nobody hears it
    assert await found.status(headers=[("x-tenant", "one")]) == 418
    assert await found.status(headers=[("X-Tenant", "one")]) == 418


async def test_in_their_order_and_nobody_after_one_that_refuses(world: World) -> None:
    second = await world.backend(passing(("x-a", "second"), ("x-b", "second")))
    more = make_unit(make_auth(INNER, to_backend=("x-a", "x-b"), headers=("x-a",)), SECOND)
    found = await filtered(
        world,
        passing(("x-a", "first")),
        units=(more,),
        names=(FILTER, SECOND),
        clusters=(make_cluster(second.port, name=INNER),),
        to_backend=("x-a",),
    )
    shown: list[bytes] = []

    def judge(call: Call) -> bytes:
        shown.extend(call.message.values(b"x-a"))
        return make_response(headers=(("x-a", "second"), ("x-b", "second")))

    second.answer = judge
    assert await found.status() == 200
    assert shown == [b"first"]  # one is told what those before it have said
    message = found.seen[0].message
    assert message.values(b"x-a") == [b"first"] and message.values(b"x-b") == [b"second"]
    found.service.answer = lambda call: DENY
    assert await found.status() == 403
    assert second.count == 1
    found.service.answer, second.answer = (lambda call: PASS), (lambda call: DENY)
    assert await found.status() == 403
    assert len(found.seen) == 1


@pytest.mark.parametrize("broken", [ir.PolicyUnit(name=SECOND, status=500, reason="why"), None])
async def test_one_that_is_broken_or_not_there_closes_all(
    world: World, broken: ir.PolicyUnit | None
) -> None:
    found = await filtered(
        world,
        lambda call: PASS,
        make_host(("/there", make_rule())),
        units=(broken,) if broken else (),
        names=(FILTER, SECOND),
    )
    for path in ("/there", "/nowhere"):
        assert await found.status(path) == 500
    assert found.service.count == 0 and found.seen == []
    assert [one["policy"] for one in world.lines()] == [SECOND, SECOND]


async def test_what_a_unit_becomes_holds_at_once(world: World) -> None:
    found = await filtered(world, lambda call: PASS)
    client = await found.client()
    assert (await client.ask(make_request())).status == 200
    parts = (
        make_host(make_rule()),
        make_cluster(found.backend),
        make_cluster(found.service.port, name=AUTH),
    )
    listener = with_filters(make_listener(), FILTER)
    world.apply(make_fleet(listener, *parts, ir.PolicyUnit(name=FILTER, status=500)))
    assert (await client.ask(make_request())).status == 500
    world.apply(make_fleet(listener, *parts))  # gone, and the listener names it still
    assert (await client.ask(make_request())).status == 500
    world.apply(make_fleet(listener, *parts, make_unit(make_auth(), FILTER)))
    assert (await client.ask(make_request())).status == 200
    world.apply(make_fleet(make_listener(), *parts))
    found.service.answer = lambda call: DENY
    assert (await client.ask(make_request())).status == 200


@pytest.mark.parametrize("path", ["/there", "/nowhere"])
async def test_a_service_that_is_down(world: World, path: str) -> None:
    found = await filtered(world, None, make_host(("/there", make_rule())))
    found.service.answer = lambda call: b"nonsense\r\n\r\n"
    assert await found.status(path) == 403
    gone = make_cluster(world.refusing_port(), name=AUTH)
    world.apply(
        make_fleet(
            with_filters(make_listener(), FILTER),
            make_host(("/there", make_rule())),
            make_cluster(found.backend),
            gone,
            make_unit(make_auth(), FILTER),
        )
    )
    assert await found.status(path) == 403
    assert found.seen == []


async def test_a_rule_asks_besides(world: World) -> None:
    """Two of one kind, in two phases: nobody overrides the other, and what the listener's has said stays."""
    inner = await world.backend()
    shown: list[tuple[bytes, ...]] = []

    def judge(call: Call) -> bytes:
        shown.append(tuple(call.message.values(b"x-user")))
        return make_response(headers=(("x-user", "inner"), ("x-role", "inner")))

    inner.answer = judge
    own = make_auth(INNER, to_backend=("x-user", "x-role"), headers=("x-user",))
    found = await filtered(
        world,
        passing(("x-user", "outer")),
        make_host(make_rule(ext_auth=own)),
        clusters=(make_cluster(inner.port, name=INNER),),
        to_backend=("x-user",),
    )
    headers = [("x-user", "client"), ("x-role", "client")]
    assert await found.status(headers=headers) == 200
    assert shown == [(b"outer",)]
    message = found.seen[0].message
    assert message.values(b"x-user") == [b"outer"] and message.values(b"x-role") == [b"inner"]
    inner.answer = lambda call: DENY
    assert await found.status() == 403
    found.service.answer = lambda call: DENY
    assert await found.status() == 403
    assert inner.count == 2 and len(found.seen) == 1


async def test_rules_about_headers_see_what_it_says(world: World) -> None:
    name = "security/ns/p#authorization"
    rule = ir.AccessRule(allow=True, headers=(("x-role", ("admin",)),))
    found = await filtered(
        world,
        passing(("x-role", "admin")),
        make_host(make_rule(policies=(name,))),
        units=(ir.PolicyUnit(name=name, authorization=ir.Authorization(rules=(rule,))),),
        to_backend=("x-role",),
    )
    assert await found.status(headers=[("x-role", "guest")]) == 200
    found.service.answer = passing(("x-role", "guest"))
    assert await found.status(headers=[("x-role", "admin")]) == 403


async def test_a_credential_that_it_gives_is_taken_out(world: World) -> None:
    found = await filtered(
        world,
        passing(("x-key", "k-alice"), ("cookie", "a=1; key=k-alice")),
        make_host(make_rule(policies=(KEYS,))),
        units=(make_keys("header:x-key", "cookie:key", sanitize=True),),
        to_backend=("x-key", "cookie"),
    )
    assert await found.status(headers=[("x-key", "wrong"), ("cookie", "key=wrong")]) == 200
    message = found.seen[0].message
    assert b"k-alice" not in message.raw and b"wrong" not in message.raw
    assert message.values(b"cookie") == [b"a=1"]


async def test_no_log_shows_what_a_rule_would_be_shown(world: World) -> None:
    found = await filtered(
        world,
        lambda call: DENY,
        make_host(make_rule(policies=(KEYS,))),
        units=(make_keys("param:key"),),
    )
    assert await found.status("/a?key=k-alice") == 403
    (line,) = world.lines()
    assert "k-alice" not in str(line)
