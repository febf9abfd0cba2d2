"""ResponseHeaderModifier on the proxy's own answers: a rule's filters apply to its redirects, limits and failures."""

from __future__ import annotations

from typing import Any

import pytest

from core.client import Response, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker
from core.world import World
from edgefast import ir

HSTS = ("strict-transport-security", "max-age=31536000")
OPS = ir.HeaderOps(
    set=(HSTS, ("Server", "mine")), add=(("x-more", "1"),), remove=("Retry-After", "date")
)
CLOSED = ir.PolicyUnit(name="security/ns/p#authorization", authorization=ir.Authorization(()))
LIMIT = ir.RateLimit(name="ns/f#0", counter="c", requests=0, unit=3600)
SHUT = ir.PolicyUnit(name="traffic/ns/t", traffic=ir.Traffic(max_requests=0))
LARGE = ir.PolicyUnit(name="traffic/ns/l", traffic=ir.Traffic(body_size=1))
REPLACED = ir.PolicyUnit(
    name="traffic/ns/o",
    traffic=ir.Traffic(
        override=(ir.ResponseOverride(statuses=((403, 403),), status=410, body=b"gone"),)
    ),
)
RULES: dict[str, tuple[int, ir.Rule]] = {
    "redirect": (301, ir.Rule("ns/r", 0, redirect=ir.Redirect(status=301), response_headers=OPS)),
    "direct": (
        418,
        ir.Rule(
            "ns/r", 0, response_headers=OPS,
            direct=ir.DirectResponse(status=418, body=b"tea", content_type="text/html"),
        ),
    ),
    "limit": (429, make_rule(rate_limits=(LIMIT,), response_headers=OPS)),
    "no endpoint": (503, make_rule(response_headers=OPS)),
    "shut": (503, make_rule(response_headers=OPS, traffic=(SHUT.name,))),
    "denied": (403, make_rule(response_headers=OPS, policies=(CLOSED.name,))),
    "replaced": (
        410,
        make_rule(response_headers=OPS, policies=(CLOSED.name,), traffic=(REPLACED.name,)),
    ),
    "no weight": (500, make_rule(ir.BackendRef(cluster=CLUSTER, weight=0), response_headers=OPS)),
    "too large": (413, make_rule(response_headers=OPS, traffic=(LARGE.name,))),
    "of the backendRef": (503, make_rule(ir.BackendRef(cluster=CLUSTER, response_headers=OPS))),
}  # fmt: skip


def make(rule: ir.Rule, **http: Any) -> ir.Fleet:
    listener = make_listener(retry_after=True, **http)
    units = (CLOSED, SHUT, LARGE, REPLACED)
    return make_fleet(listener, make_host(rule), make_cluster(), *units)


def check(answer: Response, kind: str) -> None:
    assert answer.status == RULES[kind][0]
    assert answer.value(HSTS[0]) == HSTS[1]
    assert answer.value("server") == "mine"
    assert answer.value("x-more") == "1"
    assert answer.value("date") is answer.value("retry-after") is None
    assert answer.value("location") == ("http://test:8080/" if kind == "redirect" else None)


@pytest.mark.parametrize("kind", RULES)
async def test_own_answers_have_what_the_rule_says(world: World, kind: str) -> None:
    client = await world.client_of(make(RULES[kind][1]))
    body = b"too much" if kind == "too large" else None
    answer = await client.ask(make_request(method="POST" if body else "GET", body=body))
    check(answer, kind)
    if kind == "direct":
        assert (answer.body, answer.value("content-type")) == (b"tea", "text/html")
    if kind == "no endpoint":
        assert answer.value("content-type") == "text/plain"


@pytest.mark.parametrize("kind", ["redirect", "limit", "no endpoint"])
async def test_own_answers_of_http2(world: World, kind: str) -> None:
    asker = Asker(await world.client_of(make(RULES[kind][1])))
    fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/")]
    check(await asker.ask([*fields, (b":authority", b"test")]), kind)


async def test_a_content_type_is_replaced(world: World) -> None:
    ops = ir.HeaderOps(set=(("Content-Type", "application/json"),))
    rule = ir.Rule(
        "ns/r", 0, response_headers=ops, direct=ir.DirectResponse(status=200, body=b"{}")
    )
    client = await world.client_of(make(rule))
    assert (await client.get()).value("content-type") == "application/json"


async def test_cors_lines_stay(world: World) -> None:
    """As on answers of backends: the CORS filter sets these headers."""
    ops = ir.HeaderOps(remove=("access-control-allow-origin", "vary"), set=(HSTS,))
    rule = make_rule(response_headers=ops, cors=ir.Cors(allow_origins=("http://a.test",)))
    client = await world.client_of(make(rule))
    answer = await client.get(headers=[("origin", "http://a.test")])
    assert answer.status == 503
    assert answer.value("access-control-allow-origin") == "http://a.test"
    assert answer.value(HSTS[0]) == HSTS[1]


async def test_a_call_of_grpc_keeps_its_status(world: World) -> None:
    ops = ir.HeaderOps(set=(HSTS, ("content-type", "x/y"), ("grpc-status", "0")))
    client = await world.client_of(make(make_rule(response_headers=ops)))
    call = [("content-type", "application/grpc"), ("te", "trailers")]
    answer = await client.ask(make_request("/a.B/C", method="POST", headers=call, body=b"x"))
    assert answer.value("content-type") == "application/grpc"
    assert answer.value("grpc-status") == "14"
    assert answer.value(HSTS[0]) == HSTS[1]


async def test_answers_without_a_rule_have_none(world: World) -> None:
    host = make_host(("/a", make_rule(response_headers=OPS)))
    client = await world.client_of(make_fleet(host, make_cluster()))
    assert (await client.get("/b")).value(HSTS[0]) is None
    assert (await client.get("/a")).value(HSTS[0]) == HSTS[1]
    assert (await client.get("/b")).value("server") == "edgefast"
