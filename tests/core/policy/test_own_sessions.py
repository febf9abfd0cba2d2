"""Sessions of backends themselves (XBackend sessionPersistence): each keeps its own clients, whatever its rule says, but for an Override."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_rule
from core.policy.policies import TRAFFIC
from core.policy.sessions import get, keeping, numbered, told, write
from core.world import World
from edgefast import ir

OWN = ir.SessionPersistence(name="sid")
OTHER = ir.SessionPersistence(name="other")
PODS = "xbackend/ns/pods"


def share(session: ir.SessionPersistence | None = OWN, cluster: str = PODS) -> ir.BackendRef:
    return ir.BackendRef(cluster=cluster, session=session)


async def test_clients_stay_by_cookie(world: World) -> None:
    backends = await numbered(world, 4)
    cluster = make_cluster(*(one.port for one in backends), name=PODS)
    port = await world.serve(make_fleet(make_host(make_rule(share())), cluster))
    for _ in range(8):
        client = await world.client(port)
        first = await get(client)
        assert told(first) == write(backends[int(first.body)].port, cluster=PODS)
        for _ in range(4):
            again = await get(await world.client(port), told(first))
            assert (again.body, again.value("set-cookie")) == (first.body, None)


async def test_clients_stay_by_header(world: World) -> None:
    backends = await numbered(world, 4)
    cluster = make_cluster(*(one.port for one in backends), name=PODS)
    by_header = ir.SessionPersistence(name="x-sid", header=True)
    port = await world.serve(make_fleet(make_host(make_rule(share(by_header))), cluster))
    first = await get(await world.client(port))
    value = first.value("x-sid")
    assert value == write(backends[int(first.body)].port, cluster=PODS)
    for _ in range(8):
        client = await world.client(port)
        again = await client.ask(make_request("/", headers=[("x-sid", value or "")]))
        assert again.body == first.body


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ({"session": OTHER}, "sid"),  # the rule's own
        ({"traffic": (TRAFFIC,)}, "sid"),  # a policy's
        ({"traffic": (TRAFFIC,), "ceilings": 1}, "other"),  # a policy's that is an Override
        ({"traffic": (TRAFFIC,), "ceilings": 1, "session": OWN}, "other"),
    ],
)
async def test_an_override_alone_comes_before(
    world: World, rule: dict[str, object], name: str
) -> None:
    backends = await numbered(world, 2)
    cluster = make_cluster(*(one.port for one in backends), name=PODS)
    units = (keeping(OTHER),) if "traffic" in rule else ()
    fleet = make_fleet(make_host(make_rule(share(), **rule)), cluster, *units)
    answer = await get(await world.client_of(fleet))
    assert (answer.value("set-cookie") or "").startswith(f"{name}=")


async def test_each_backend_keeps_its_own(world: World) -> None:
    """One says something, one nothing, and there the rule's holds."""
    one, two = await numbered(world, 2)
    clusters = make_cluster(one.port, name=PODS), make_cluster(two.port, name="service/ns/web/80")
    rule = make_rule(share(), share(None, "service/ns/web/80"), session=OTHER)
    port = await world.serve(make_fleet(make_host(rule), *clusters))
    seen = set()
    for _ in range(8):
        answer = await get(await world.client(port))
        seen.add((answer.body, (answer.value("set-cookie") or "").partition("=")[0]))
    assert seen == {(b"0", "sid"), (b"1", "other")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"idle": 600_000}, {}),
        ({"absolute": 600_000}, {}),
        ({"absolute": 600_000, "idle": 300_000}, {"absolute": 3_600_000, "idle": 1_800_000}),
    ],
)
async def test_backends_of_one_name_leave_each_other_theirs(
    world: World, one: dict[str, int], other: dict[str, int]
) -> None:
    """How long a session lasts is said by its own backend, and by no other one that has a session in the same cookie."""
    backends = await numbered(world, 8)
    ports = [backend.port for backend in backends]
    clusters = [make_cluster(*ports[:4], name=PODS), make_cluster(*ports[4:], name=f"{PODS}2")]
    shares = [
        share(ir.SessionPersistence(name="sid", **said), cluster.name)
        for said, cluster in zip((one, other), clusters, strict=True)
    ]
    port = await world.serve(make_fleet(make_host(make_rule(*shares)), *clusters))
    value: tuple[str, ...] = ()
    seen: set[int] = set()
    for _ in range(60):
        answer = await get(await world.client(port), *value)
        seen.add(int(answer.body))
        if answer.value("set-cookie"):
            value = (told(answer),)
    assert sorted(number // 4 for number in seen) == [0, 1]
