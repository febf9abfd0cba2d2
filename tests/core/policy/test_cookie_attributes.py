"""Sessions of a BackendTrafficPolicy: attributes of the cookie, what a failed endpoint means, and sessions before weights."""

from __future__ import annotations

import collections

import msgspec
import pytest

from core.backend import Call, make_response
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_rule
from core.policy.policies import TRAFFIC
from core.policy.sessions import BY_COOKIE, BY_HEADER, NAME, get, keeping, numbered, told, write
from core.world import World
from edgefast import ir

OTHER = "service/ns/canary/80"
#: User-Agents of browsers that reject SameSite=None, and of others (chromium.org, "SameSite=None: Known Incompatible Clients").
OLD = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/66.0.3359.139 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 12_0 like Mac OS X) AppleWebKit/604.1.34 (KHTML, like Gecko) Version/12.0 Safari/604.1",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.0 Safari/605.1.15",
)
NEW = (
    "",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0 Safari/605.1.15",
)


@pytest.mark.parametrize(
    ("session", "attributes"),
    [
        ({}, ["Path=/", "HttpOnly", "SameSite=Strict"]),
        ({"domain": "a.test"}, ["Path=/", "Domain=a.test", "HttpOnly", "SameSite=Strict"]),
        ({"same_site": "lax"}, ["Path=/", "HttpOnly", "SameSite=Lax"]),
        ({"same_site": "none"}, ["Path=/", "HttpOnly", "SameSite=None"]),
        ({"same_site": "unset"}, ["Path=/", "HttpOnly"]),
        ({"secure": True}, ["Path=/", "HttpOnly", "Secure", "SameSite=Strict"]),
        (
            {"absolute": 5000, "permanent": True, "path": "/a", "domain": ".a.test"},
            ["Path=/a", "Domain=.a.test", "Max-Age=5", "HttpOnly", "SameSite=Strict"],
        ),
    ],
)
async def test_attributes(world: World, session: dict[str, object], attributes: list[str]) -> None:
    backends = await numbered(world, 2)
    one = msgspec.structs.replace(BY_COOKIE, **session)
    fleet = make_fleet(
        make_rule(traffic=(TRAFFIC,)), make_cluster(*(one.port for one in backends)), keeping(one)
    )
    answer = await get(await world.client_of(fleet))
    assert (answer.value("set-cookie") or "").split("; ")[1:] == attributes


async def test_none_is_for_clients_that_take_it(world: World) -> None:
    backends = await numbered(world, 2)
    one = msgspec.structs.replace(BY_COOKIE, same_site="none_if_supported")
    fleet = make_fleet(
        make_rule(traffic=(TRAFFIC,)), make_cluster(*(one.port for one in backends)), keeping(one)
    )
    client = await world.client_of(fleet)
    for agents, expected in ((OLD, False), (NEW, True)):
        for agent in agents:
            answer = await client.ask(make_request(headers=[("user-agent", agent)]))
            assert ("SameSite=None" in (answer.value("set-cookie") or "")) == expected, agent


@pytest.mark.parametrize("stays", [False, True])
async def test_a_session_after_a_failed_try(world: World, stays: bool) -> None:
    """With changeOnFailure: false the cookie names the endpoint that failed, which may be well again."""
    failing = await world.backend(lambda call: make_response(b"failed", 503))
    working = await world.backend(lambda call: make_response(b"works"))
    one = msgspec.structs.replace(BY_COOKIE, stays=stays)
    rule = make_rule(traffic=(TRAFFIC,), retry=ir.Retry(codes=(503,), attempts=1, backoff=1))
    fleet = make_fleet(rule, make_cluster(failing.port, working.port), keeping(one))
    client = await world.client_of(fleet)
    answer = await get(client, write(failing.port))
    assert answer.body == b"works"
    assert answer.value("set-cookie") is None if stays else told(answer) == write(working.port)
    # An endpoint that is gone is replaced in either case.
    newest = told(await get(client, write(1))).partition(".")[0]
    assert newest in (write(working.port), write(failing.port))


@pytest.mark.parametrize("one", [BY_COOKIE, BY_HEADER])
@pytest.mark.parametrize("first", [False, True])
async def test_sessions_before_weights(
    world: World, one: ir.SessionPersistence, first: bool
) -> None:
    def number(at: int):  # type: ignore[no-untyped-def]
        return lambda call: make_response(b"%d" % at)

    old, new = await world.backend(number(0)), await world.backend(number(1))
    refs = (
        ir.BackendRef(cluster=make_cluster().name, weight=1),
        ir.BackendRef(cluster=OTHER, weight=1),
    )
    fleet = make_fleet(
        make_host(make_rule(*refs, traffic=(TRAFFIC,))),
        make_cluster(old.port),
        make_cluster(new.port, name=OTHER),
        keeping(msgspec.structs.replace(one, first=first)),
    )
    client = await world.client_of(fleet)
    name = "cookie" if one is BY_COOKIE else "x-sid"
    value = write(new.port, cluster=OTHER)
    header = (name, f"{NAME}={value}" if one is BY_COOKIE else value)
    served = collections.Counter(
        [(await client.ask(make_request(headers=[header]))).body for _ in range(20)]
    )
    assert served == ({b"1": 20} if first else {b"0": 10, b"1": 10})


async def test_a_session_does_not_keep_a_backend_without_weight(world: World) -> None:
    backends = await numbered(world, 3)
    names = (make_cluster().name, "service/ns/b/80", OTHER)
    refs = [
        ir.BackendRef(cluster=name, weight=weight)
        for name, weight in zip(names, (1, 1, 0), strict=True)
    ]
    fleet = make_fleet(
        make_host(make_rule(*refs, traffic=(TRAFFIC,))),
        *(make_cluster(each.port, name=name) for each, name in zip(backends, names, strict=True)),
        keeping(msgspec.structs.replace(BY_COOKIE, first=True)),
    )
    client = await world.client_of(fleet)
    value = write(backends[2].port, cluster=OTHER)
    served = {(await get(client, value)).body for _ in range(8)}
    assert served == {b"0", b"1"}


async def test_sessions_that_are_looked_at_are_bounded(world: World) -> None:
    """16 sessions of a request, as everywhere; what follows them counts for nothing."""
    backends = await numbered(world, 2)
    names = (make_cluster().name, OTHER)
    fleet = make_fleet(
        make_host(make_rule(*(ir.BackendRef(cluster=name) for name in names), traffic=(TRAFFIC,))),
        *(make_cluster(each.port, name=name) for each, name in zip(backends, names, strict=True)),
        keeping(msgspec.structs.replace(BY_COOKIE, first=True)),
    )
    client = await world.client_of(fleet)
    value, unknown = write(backends[1].port, cluster=OTHER), write(1)
    assert {(await get(client, *[unknown] * 15, value)).body for _ in range(4)} == {b"1"}
    assert {(await get(client, *[unknown] * 16, value)).body for _ in range(4)} == {b"0", b"1"}


async def test_the_request_reaches_the_backend_unchanged(world: World) -> None:
    calls: list[Call] = []
    backend = await world.backend(lambda call: calls.append(call) or make_response(b"x"))  # type: ignore[func-returns-value]
    one = msgspec.structs.replace(BY_COOKIE, first=True, stays=True, domain="a.test")
    fleet = make_fleet(make_rule(traffic=(TRAFFIC,)), make_cluster(backend.port), keeping(one))
    await get(await world.client_of(fleet), "x")
    assert calls[0].message.value(b"cookie") == f"a=b; {NAME}=x".encode()
