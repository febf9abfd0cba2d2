"""Sessions: who tells which endpoint it was served by is served there again, and nobody else decides where a request goes."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from core.backend import Backend, make_response
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_rule
from core.policy.policies import TRAFFIC
from core.policy.sessions import (
    BY_COOKIE,
    BY_HEADER,
    NAME,
    get,
    keeping,
    now_ms,
    numbered,
    told,
    write,
)
from core.world import World
from edgefast import ir

MINUTE = 60_000


def fleet_of(one: ir.SessionPersistence, *clusters: ir.Cluster, **rule: Any) -> ir.Fleet:
    refs = [one.name for one in clusters]
    return make_fleet(
        make_host(make_rule(*refs, traffic=(TRAFFIC,), **rule)), *clusters, keeping(one)
    )


def ports(backends: list[Backend]) -> list[int]:
    return [one.port for one in backends]


async def test_a_client_stays_where_it_was(world: World) -> None:
    backends = await numbered(world, 8)
    port = await world.serve(fleet_of(BY_COOKIE, make_cluster(*ports(backends))))
    places = collections.Counter()
    for _ in range(30):
        client = await world.client(port)
        first = await get(client)
        value = told(first)
        places[first.body] += 1
        assert value == write(backends[int(first.body)].port)
        client = await world.client(port)
        for _ in range(5):
            again = await get(client, value)
            assert (again.body, again.value("set-cookie")) == (first.body, None)
    assert len(places) > 3


async def test_a_value_is_all_there_is(world: World) -> None:
    """No table: a proxy that has just begun finds every endpoint by what another one told, whatever is there besides."""
    backends = await numbered(world, 70)
    client = await world.client_of(fleet_of(BY_COOKIE, make_cluster(*reversed(ports(backends)))))
    for at, backend in enumerate(backends):
        answer = await get(client, write(backend.port))
        assert (answer.body, answer.value("set-cookie")) == (b"%d" % at, None)


async def test_cookies_attributes(world: World) -> None:
    backends = await numbered(world, 2)
    cluster = make_cluster(*ports(backends))
    lasting = ir.SessionPersistence(name=NAME, absolute=90_500, permanent=True, path="/shop")
    client = await world.client_of(fleet_of(lasting, cluster))
    for request in (make_request("/shop/cart"), make_request("*", method="OPTIONS")):
        answer = await client.ask(request)
        value, *attributes = (answer.value("set-cookie") or "").split("; ")
        assert attributes == ["Path=/shop", "Max-Age=91", "HttpOnly", "SameSite=Strict"]
        until = int(value.removeprefix(f"{NAME}=")[17:29], 16)
        assert now_ms(80) < until <= now_ms(90.5)


async def test_a_header(world: World) -> None:
    backends = await numbered(world, 8)
    client = await world.client_of(fleet_of(BY_HEADER, make_cluster(*ports(backends))))
    for _ in range(20):
        first = await client.get()
        value = first.value("x-sid")
        assert value is not None and first.value("set-cookie") is None
        for headers in ([("X-SID", value)], [("x-sid", "other"), ("x-sid", value)]):
            again = await client.ask(make_request(headers=headers))
            assert (again.body, again.value("x-sid")) == (first.body, None)
    # A cookie of the name says nothing there.
    answer = await client.ask(
        make_request(headers=[("cookie", f"x-sid={write(backends[0].port)}")])
    )
    assert answer.value("x-sid") is not None


async def test_one_without_a_name_is_the_rules_own(world: World) -> None:
    backends = await numbered(world, 2)
    one, other = make_rule(traffic=(TRAFFIC,)), make_rule(traffic=(TRAFFIC,), name="other")
    fleet = make_fleet(
        make_host(("/a", one), ("/b", other)),
        make_cluster(*ports(backends)),
        keeping(ir.SessionPersistence()),
    )
    client = await world.client_of(fleet)
    names = [(await get(client, path=path)).value("set-cookie") for path in ("/a", "/b")]
    said = [ir.name_session("ns/web", 0), ir.name_session("ns/web", "other")]
    assert [(one or "").partition("=")[0] for one in names] == said


# --- what is no session -----------------------------------------------------------------------------------------------------------


def forge(good: str) -> dict[str, str]:
    return {
        "empty": "",
        "short": good[:-1],
        "long": good + "0",
        "another version": "2" + good[1:],
        "upper case": good[0] + "ABCDEF" + good[7:],
        "no digits": good[:5] + "g" + good[6:],
        "quoted": f'"{good}"',
        "nobody": write(1),
        "of another cluster": write(1, cluster="service/ns/other/80"),
        "bytes": "\x80\xff" * 20 + "1",
        "huge": "1" * 4000,
        "over": good[:17] + f"{now_ms(-1):012x}" + "0" * 12,
        "rested too long": good[:29] + f"{now_ms(-1):012x}",
    }


#: What may be another backend's, as far as can be told.
OTHERS = ("nobody", "of another cluster")


@pytest.mark.parametrize("what", list(forge("1" + "0" * 40)))
async def test_what_is_no_session_is_none(world: World, what: str) -> None:
    backends = await numbered(world, 4)
    client = await world.client_of(fleet_of(BY_COOKIE, make_cluster(*ports(backends))))
    value = forge(write(backends[2].port))[what]
    found = set()
    for _ in range(20):
        answer = await get(client, value)
        said = told(answer).split(".")
        assert answer.status == 200 and said[0] == write(backends[int(answer.body)].port)
        assert said[1:] == ([value] if what in OTHERS else [])
        found.add(answer.body)
    assert len(found) > 1
    # Behind it a good one counts.
    answer = await get(client, value, write(backends[2].port))
    assert (answer.body, answer.value("set-cookie")) == (b"2", None)


async def test_so_many_values_are_looked_at(world: World) -> None:
    backends = await numbered(world, 8)
    for one, name in ((BY_COOKIE, "cookie"), (BY_HEADER, "x-sid")):
        client = await world.client_of(fleet_of(one, make_cluster(*ports(backends))))
        for junk, kept in ((15, True), (16, False)):
            found = set()
            for _ in range(12):
                values = [write(1)] * junk + [write(backends[3].port)]
                pairs = values if one.header else [f"{NAME}={value}" for value in values]
                answer = await client.ask(make_request(headers=[(name, pair) for pair in pairs]))
                found.add(answer.body)
            assert (found == {b"3"}) == kept


async def test_sessions_end(world: World) -> None:
    """What was given for longer than is said now ends, too; one without an end is none where sessions have one."""
    backends = await numbered(world, 8)
    one = ir.SessionPersistence(name=NAME, absolute=MINUTE)
    port = await world.serve(fleet_of(one, make_cluster(*ports(backends))))
    client, last = await world.client(port), backends[5].port
    for until, kept in (
        (now_ms(30), True),
        (now_ms(90), True),  # clocks differ
        (now_ms(600), False),
        (now_ms(-0.001), False),
        (0, False),
    ):
        found = {(await get(client, write(last, until=until))).body for _ in range(12)}
        assert (found == {b"5"}) == kept, until
    answer = await get(client)
    assert now_ms(50) < int(told(answer)[17:29], 16) <= now_ms(60)
    assert "Max-Age" not in (answer.value("set-cookie") or "")


async def test_sessions_that_rest_end(world: World) -> None:
    """Each answer says anew until when it may rest; how long it lasts stays what it was."""
    backends = await numbered(world, 8)
    one = ir.SessionPersistence(name=NAME, absolute=10 * MINUTE, idle=MINUTE)
    client = await world.client_of(fleet_of(one, make_cluster(*ports(backends))))
    until = now_ms(300)
    answer = await get(client, write(backends[5].port, until=until, idle=now_ms(5)))
    again = told(answer)
    assert answer.body == b"5" and again[:29] == write(backends[5].port, until=until)[:29]
    assert now_ms(50) < int(again[29:], 16) <= now_ms(60)
    gone = write(backends[5].port, until=until, idle=now_ms(-0.001))
    assert {(await get(client, gone)).body for _ in range(12)} != {b"5"}


# --- weights ------------------------------------------------------------------------------------------------------------------------


async def test_weights_come_first(world: World) -> None:
    """And clients have a session with each backend that these lead them to."""
    backends = await numbered(world, 8)
    old = make_cluster(*ports(backends[:4]), name="service/ns/old/80")
    new = make_cluster(*ports(backends[4:]), name="service/ns/new/80")
    refs = (ir.BackendRef(cluster=old.name, weight=1), ir.BackendRef(cluster=new.name, weight=1))
    for one in (BY_COOKIE, BY_HEADER):
        rule = make_rule(*refs, session=one)
        client = await world.client_of(make_fleet(make_host(rule), old, new))
        value, places, answers = "", [], []
        for _ in range(20):
            pair = [("x-sid", value)] if one.header else [("cookie", f"{NAME}={value}")]
            answer = await client.ask(make_request(headers=pair if value else []))
            said = answer.value("x-sid" if one.header else "set-cookie")
            if said is not None:
                value = said.partition(";")[0].removeprefix(f"{NAME}=")
            places.append(int(answer.body))
            answers.append(said is not None)
        assert answers == [True, True] + [False] * 18
        assert len({at for at in places if at < 4}) == len({at for at in places if at >= 4}) == 1
        assert abs(sum(at < 4 for at in places) - 10) <= 1
        assert value == ".".join(
            write(backends[at].port, cluster=old.name if at < 4 else new.name)
            for at in (places[1], places[0])
        )


async def test_a_backend_of_no_weight_has_no_sessions(world: World) -> None:
    backends = await numbered(world, 4)
    old = make_cluster(*ports(backends[:2]), name="service/ns/old/80")
    new = make_cluster(*ports(backends[2:]), name="service/ns/new/80")
    refs = (ir.BackendRef(cluster=old.name, weight=0), ir.BackendRef(cluster=new.name, weight=9))
    fleet = make_fleet(make_host(make_rule(*refs, session=BY_COOKIE)), old, new)
    client = await world.client_of(fleet)
    for _ in range(10):
        value = write(backends[1].port, cluster=old.name)
        assert (await get(client, value)).body in (b"2", b"3")


async def test_others_are_kept_for_others(world: World) -> None:
    """So many of them, each whole and good; none twice, and none of this backend."""
    backends = await numbered(world, 2)
    one = ir.SessionPersistence(name=NAME, absolute=MINUTE)
    client = await world.client_of(fleet_of(one, make_cluster(*ports(backends))))
    later = now_ms(30)
    others = [write(at, until=later, cluster="c") for at in range(1, 6)]
    over = write(9, until=now_ms(-1), cluster="c")
    gone = write(backends[0].port, until=later)[:1] + "Z" + others[0][2:]
    mine = write(backends[0].port, until=now_ms(-1))
    answer = await get(client, ".".join([mine, over, others[0], gone, *others[1:]]))
    assert told(answer).split(".")[1:] == others[:3]
    # As it is told again it leads there, and past a joint that is none nothing is read.
    again = await get(client, told(answer))
    assert (again.body, again.value("set-cookie")) == (answer.body, None)
    first, *rest = told(answer).split(".")
    assert told(await get(client, ",".join([*rest, first]))).split(".")[1:] == others[:1]


async def test_no_endpoint_of_another_rule(world: World) -> None:
    """A value that another rule gave leads nowhere where the endpoint is none of the rule's; it is kept for that one."""
    mine, others = await numbered(world, 2), await world.backend(lambda call: make_response(b"no"))
    other = make_cluster(others.port, name="service/ns/other/80")
    rule, far = make_rule(session=BY_COOKIE), make_rule(other.name, session=BY_COOKIE)
    host = make_host(("/a", rule), ("/b", far))
    client = await world.client_of(make_fleet(host, make_cluster(*ports(mine)), other))
    value = told(await get(client, path="/b"))
    assert value == write(others.port, cluster=other.name)
    for _ in range(10):
        answer = await get(client, value, path="/a")
        assert answer.body in (b"0", b"1") and told(answer).endswith(f".{value}")
        assert (await get(client, told(answer), path="/b")).value("set-cookie") is None


@pytest.mark.parametrize(("ceilings", "name"), [(0, "own"), (1, NAME)])
async def test_the_rules_own_comes_before_defaults(world: World, ceilings: int, name: str) -> None:
    backends = await numbered(world, 2)
    own = ir.SessionPersistence(name="own")
    fleet = fleet_of(BY_COOKIE, make_cluster(*ports(backends)), session=own, ceilings=ceilings)
    client = await world.client_of(fleet)
    answer = await get(client)
    assert (answer.value("set-cookie") or "").startswith(f"{name}=1")


async def test_a_policy_changes(world: World) -> None:
    backends = await numbered(world, 4)
    cluster = make_cluster(*ports(backends))
    client = await world.client_of(fleet_of(BY_COOKIE, cluster))
    assert told(await get(client))
    world.apply(fleet_of(BY_HEADER, cluster))
    answer = await get(client)
    assert (answer.value("set-cookie"), len(answer.value("x-sid") or "")) == (None, 41)
    world.apply(
        make_fleet(
            make_host(make_rule(traffic=(TRAFFIC,))),
            cluster,
            ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic()),
        )
    )
    answer = await get(client)
    assert (answer.value("set-cookie"), answer.value("x-sid")) == (None, None)


async def test_beside_a_hash(world: World) -> None:
    """The first choice is by the key, whose cookie is told besides."""
    backends = await numbered(world, 8)
    cookie = ir.HashCookie("key", ttl=0, attributes="; Path=/")
    balancer = ir.LoadBalancer(type="hash", hash=ir.HashPolicy(cookie=cookie))
    unit = ir.PolicyUnit(
        name=TRAFFIC, traffic=ir.Traffic(session=BY_COOKIE, load_balancer=balancer)
    )
    fleet = make_fleet(
        make_host(make_rule(traffic=(TRAFFIC,))), make_cluster(*ports(backends)), unit
    )
    client = await world.client_of(fleet)
    answer = await get(client)
    lines = [value for name, value in answer.headers if name == "set-cookie"]
    assert [one.partition("=")[0] for one in lines] == ["key", NAME]
    key = lines[0].partition(";")[0]
    by_key = [(await client.ask(make_request(headers=[("cookie", key)]))).body for _ in range(3)]
    assert by_key == [answer.body] * 3
    other = next(at for at in range(8) if b"%d" % at != answer.body)
    named = f"{key}; {NAME}={write(backends[other].port)}"
    assert (await client.ask(make_request(headers=[("cookie", named)]))).body == b"%d" % other
