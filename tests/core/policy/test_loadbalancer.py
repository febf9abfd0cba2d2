"""By what endpoints are chosen: in turn, by chance, by a key; what ejections, weights, overrides and mirrors make of it."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from h2.events import ResponseReceived, StreamEnded

from core.backend import Backend, make_response
from core.client import Client, make_request
from core.exchange.test_grpc import DONE, grpc_head
from core.fleets import CLUSTER, PORT, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.test_both import begin, events
from core.policy.authenticators import KEYS, make_keys
from core.policy.policies import TRAFFIC
from core.world import World
from edgefast import ir
from edgefast.explain import RequestSpec, Served
from edgefast.explain.explain import explain

LOWER = "traffic/ns/lower"
BY_USER = ir.LoadBalancer(type="hash", hash=ir.HashPolicy(headers=("x-user",)))
TURNS, CHANCE = ir.LoadBalancer(type="round_robin"), ir.LoadBalancer(type="random")
USERS = tuple(f"u{at}" for at in range(60))


def balancing(one: ir.LoadBalancer, name: str = TRAFFIC) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(load_balancer=one))


async def make_backends(world: World, count: int) -> list[Backend]:
    """Each answers with its number."""
    return [
        await world.backend(lambda call, at=at: make_response(b"%d" % at)) for at in range(count)
    ]


def weigh(backends: Iterable[Backend], *weights: int) -> ir.Cluster:
    """A cluster of them, the last weight being that of all others."""
    found = make_cluster(*(one.port for one in backends))
    endpoints = tuple(
        msgspec.structs.replace(one, weight=weights[min(at, len(weights) - 1)])
        for at, one in enumerate(found.endpoints)
    )
    return msgspec.structs.replace(found, endpoints=endpoints)


def fleet_of(one: ir.LoadBalancer, cluster: ir.Cluster, **listener: Any) -> ir.Fleet:
    host = make_host(make_rule(traffic=(TRAFFIC,)))
    return make_fleet(make_listener(**listener), host, cluster, balancing(one))


async def where(client: Client, user: str = "") -> int:
    headers = [("x-user", user)] if user else []
    return int((await client.ask(make_request(headers=headers))).body)


# --- in turn, and by chance -----------------------------------------------------------------------------------------------------------


async def test_each_has_its_turn(world: World) -> None:
    port = await world.serve(fleet_of(TURNS, weigh(await make_backends(world, 5), 1)))
    one, other = await world.client(port), await world.client(port)
    found = [await where(one if at % 3 else other) for at in range(50)]
    for at in range(0, 50, 5):
        assert sorted(found[at : at + 5]) == list(range(5))


async def test_turns_are_weighted(world: World) -> None:
    client = await world.client_of(fleet_of(TURNS, weigh(await make_backends(world, 3), 6, 3, 1)))
    found = collections.Counter([await where(client) for _ in range(200)])
    assert all(abs(found[at] - 20 * weight) <= 2 for at, weight in enumerate((6, 3, 1))), found
    await where(client)
    # Other weights begin anew, and nobody has to catch up with what others had.
    world.apply(fleet_of(TURNS, weigh(await make_backends(world, 3), 1)))
    found = collections.Counter([await where(client) for _ in range(30)])
    assert found == {0: 10, 1: 10, 2: 10}


async def test_turns_go_past_who_fails(world: World) -> None:
    """A request that its turn failed gets the next one; in the end the endpoint is left out, and its turns go to all others alike."""
    backends = await make_backends(world, 4)
    client = await world.client_of(fleet_of(TURNS, weigh(backends, 1)))
    backends[1].close()
    while world.counters["endpoint_ejections"] == 0:
        assert await where(client) != 1
    found = collections.Counter([await where(client) for _ in range(30)])
    assert found.keys() == {0, 2, 3} and max(found.values()) - min(found.values()) <= 2


async def test_chance_is_weighted(world: World) -> None:
    client = await world.client_of(fleet_of(CHANCE, weigh(await make_backends(world, 3), 6, 3, 1)))
    found = collections.Counter([await where(client) for _ in range(1000)])
    for at, weight in enumerate((6, 3, 1)):
        assert 100 * weight * 0.5 < found[at] < 100 * weight * 1.6, found


# --- by a key -------------------------------------------------------------------------------------------------------------------------


async def test_weights_of_keys(world: World) -> None:
    backends = await make_backends(world, 3)
    client = await world.client_of(fleet_of(BY_USER, weigh(backends, 8, 1, 1)))
    heavy = [await where(client, user) for user in USERS]
    assert heavy.count(0) > 36  # of 48 by its weight
    world.apply(fleet_of(BY_USER, weigh(backends, 1)))
    even = [await where(client, user) for user in USERS]
    assert even.count(0) < 33
    # Who weighs less now loses keys; nobody's key moves between the others.
    assert all(now == was for was, now in zip(heavy, even, strict=True) if was)


async def test_an_ejected_endpoint_has_its_keys_again_when_it_is_back(world: World) -> None:
    backends = await make_backends(world, 4)
    client = await world.client_of(fleet_of(BY_USER, weigh(backends, 1)))
    before = [await where(client, user) for user in USERS]
    number = backends[2].port
    backends[2].close()
    while world.counters["endpoint_ejections"] == 0:
        away = [await where(client, user) for user in USERS]
    away = [await where(client, user) for user in USERS]
    assert 2 not in away
    assert all(now == was for was, now in zip(before, away, strict=True) if was != 2)
    back = await Backend(lambda call: make_response(b"2")).start(port=number)
    world.keep(back)
    # Its ejection is forgotten with its place in the set: it is gone, and comes again.
    world.apply(fleet_of(BY_USER, weigh([one for one in backends if one.port != number], 1)))
    world.apply(fleet_of(BY_USER, weigh(backends, 1)))
    assert [await where(client, user) for user in USERS] == before


async def test_failures_beyond_the_64th_endpoint_go_on_too(world: World) -> None:
    """Which were tried is noted of 64; a key that leads beyond them leads elsewhere the next time, and always to the same place."""
    backend = Backend(
        lambda call: make_response(call.link.transport.get_extra_info("sockname")[0].encode())
    )
    world.keep(await backend.start(host="0.0.0.0"))
    endpoints = [ir.Endpoint(address=f"127.0.0.{2 + at}", port=backend.port) for at in range(64)]
    endpoints.append(ir.Endpoint(address="127.0.0.1", port=world.refusing_port(), weight=4))
    cluster = ir.Cluster(name=CLUSTER, endpoints=tuple(endpoints))
    client, failures = await world.client_of(fleet_of(BY_USER, cluster)), 0
    for at in range(300):
        answers = []
        for _ in range(2):
            before = world.counters["upstream_connect_failures"]
            answers.append(await client.ask(make_request(headers=[("x-user", f"u{at}")])))
            failures += world.counters["upstream_connect_failures"] - before
        assert [one.status for one in answers] == [200, 200]
        assert answers[0].body == answers[1].body or world.counters["endpoint_ejections"]
    assert failures >= 4


async def test_http2_clients_keep_their_cookie(world: World) -> None:
    cookie = ir.HashCookie("sid", ttl=0, attributes="; HttpOnly; Path=/")
    fleet = fleet_of(
        ir.LoadBalancer(type="hash", hash=ir.HashPolicy(cookie=cookie)),
        weigh(await make_backends(world, 5), 1),
        http2=ir.Http2Settings(enabled=True),
    )
    port = await world.serve(fleet)
    client, frames = await begin(world, port)
    get = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")]
    places = set()
    for stream in range(1, 41, 4):
        frames.send_headers(stream, get, end_stream=True)
        await client.send(frames.data_to_send())
        given, body = heads_of(await events(client, frames, StreamEnded))
        pair, _, attributes = given["set-cookie"].partition(";")
        assert attributes == " HttpOnly; Path=/"
        # Another cookie before it, in a field of its own as HTTP/2 may have it.
        again = [*get, ("cookie", "a=b"), ("cookie", pair)]
        frames.send_headers(stream + 2, again, end_stream=True)
        await client.send(frames.data_to_send())
        kept, other = heads_of(await events(client, frames, StreamEnded))
        assert "set-cookie" not in kept and other == body
        by_http1 = await world.client(port)
        answer = await by_http1.ask(make_request(headers=[("cookie", pair)]))
        assert (answer.body, answer.value("set-cookie")) == (body, None)
        by_http1.close()
        places.add(body)
    assert len(places) > 1


def heads_of(found: list[Any]) -> tuple[dict[str, str], bytes]:
    (head,) = (dict(one.headers) for one in found if isinstance(one, ResponseReceived))
    return head, b"".join(one.data for one in found if hasattr(one, "data"))


async def test_calls_of_grpc(world: World) -> None:
    def reply(at: int) -> bytes:
        head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\nx-at: %d\r\ntransfer-encoding: "
        )
        return head % at + b"chunked\r\n\r\n" + DONE % 0

    backends = [await world.backend(lambda call, at=at: reply(at)) for at in range(5)]
    port = await world.serve(fleet_of(BY_USER, weigh(backends, 1)))
    client, places = await world.client(port), {}
    for user in USERS[:20] * 2:
        await client.send(grpc_head(headers=[("x-user", user)]))
        answer = await client.response()
        assert places.setdefault(user, answer.value("x-at")) == answer.value("x-at")
    assert len(set(places.values())) > 1


async def test_a_key_may_be_whose_the_request_is(world: World) -> None:
    """What a unit says of a client counts, and not what the client says of itself."""
    by_client = ir.LoadBalancer(type="hash", hash=ir.HashPolicy(headers=("x-client",)))
    backends = await make_backends(world, 5)
    rule = make_rule(policies=(KEYS,), traffic=(TRAFFIC,))
    fleet = make_fleet(
        make_host(rule),
        weigh(backends, 1),
        make_keys(forward_header="x-client", sanitize=True),
        balancing(by_client),
    )
    client = await world.client_of(fleet)
    for name in ("alice", "bob"):
        found = set()
        for user in USERS[:20]:
            headers = [("x-key", f"k-{name}"), ("x-client", user)]
            found.add((await client.ask(make_request(headers=headers))).body)
        (place,) = found
        told = explain(
            Served(fleet), RequestSpec(port=PORT, host="test", headers=(("x-key", f"k-{name}"),))
        )
        assert told.backends[0].chosen == f"127.0.0.1:{backends[int(place)].port}"


# --- who says it ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ceilings", [0, 1])
async def test_least_requests_replace_a_key_that_is_inherited(world: World, ceilings: int) -> None:
    """The more specific default counts, or the override."""
    rule = make_rule(traffic=(TRAFFIC, LOWER), ceilings=ceilings)
    fleet = make_fleet(
        make_host(rule),
        weigh(await make_backends(world, 5), 1),
        balancing(ir.LoadBalancer()),
        balancing(BY_USER, LOWER),
    )
    client = await world.client_of(fleet)
    assert len({await where(client, "one") for _ in range(60)}) == 5


async def test_a_policy_changes_under_a_rule(world: World) -> None:
    cluster = weigh(await make_backends(world, 5), 1)
    client = await world.client_of(fleet_of(BY_USER, cluster))
    assert len({await where(client, "one") for _ in range(20)}) == 1
    world.apply(fleet_of(TURNS, cluster))
    assert sorted([await where(client, "one") for _ in range(5)]) == list(range(5))
    world.apply(fleet_of(BY_USER, cluster))
    assert len({await where(client, "one") for _ in range(20)}) == 1


async def test_copies_have_the_key_of_their_request(world: World) -> None:
    shadows = await make_backends(world, 5)
    main = await world.backend(lambda call: make_response(b"0"))
    copies = msgspec.structs.replace(weigh(shadows, 1), name="shadow")
    rule = make_rule(traffic=(TRAFFIC,), mirrors=(ir.Mirror("shadow", 1, 1),))
    fleet = make_fleet(make_host(rule), make_cluster(main.port), copies, balancing(BY_USER))
    client = await world.client_of(fleet)
    for _ in range(20):
        await where(client, "one")
    await world.until(lambda: sum(one.count for one in shadows) == 20, "copies")
    assert sorted(one.count for one in shadows) == [0, 0, 0, 0, 20]


async def test_any_free_connection_is_taken_where_there_may_be_no_more(world: World) -> None:
    """A bound of connections comes before a key: waiting beside one that is free would be absurd."""
    backends = await make_backends(world, 5)
    cluster = msgspec.structs.replace(weigh(backends, 1), max_connections=1)
    client = await world.client_of(fleet_of(BY_USER, cluster))
    found = {await where(client, user) for user in USERS}
    assert len(found) == 1
    assert sum(len(one.links) for one in backends) == 1
    assert world.cluster(CLUSTER)["connections"] == 1


@pytest.mark.parametrize("kind", ["least_request", "round_robin"])
async def test_a_new_endpoint_starts_slowly(world: World, kind: Any) -> None:
    """Of a long window it gets about a tenth of its share at first; the ones that were there at the beginning all of theirs."""
    backends = [await world.backend(lambda call: make_response(b"x")) for _ in range(3)]

    def fleet(count: int, window: int) -> ir.Fleet:
        balancer = ir.LoadBalancer(type=kind, slow_start=window)
        unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(load_balancer=balancer))
        ports = [one.port for one in backends[:count]]
        return make_fleet(
            make_listener(), make_host(make_rule(traffic=(TRAFFIC,))), make_cluster(*ports), unit
        )

    client = await world.client_of(fleet(2, 3_600_000))
    for _ in range(100):
        await client.get()
    assert all(one.count >= 25 for one in backends[:2])
    world.apply(fleet(3, 3_600_000))
    for _ in range(600):
        await client.get()
    assert 2 <= backends[2].count <= 60  # of 200
    world.apply(fleet(3, 1))
    before = backends[2].count
    for _ in range(300):
        await client.get()
    assert backends[2].count - before >= 60
