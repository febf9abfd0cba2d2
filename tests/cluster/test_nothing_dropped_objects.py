"""Under a steady load: routes, backends and listeners come, change and go by the hundred, and no request notices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle

import pytest

from cluster.installed import listener, route
from cluster.under_load import STEADY, UnderLoad, listeners_of, under_load
from cluster.world.api import Api
from cluster.world.manifests import echo
from cluster.world.waiting import wait_until
from cluster.world.world import World

ROUTES = 1000
FLIPS = 1000


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[UnderLoad]:
    """One release for all tests here; each leaves the Gateway as it found it."""
    with under_load(world) as made:
        yield made


def test_a_thousand_routes_come_change_and_go(site: UnderLoad) -> None:
    hosts = [f"r{number}.example" for number in range(ROUTES)]

    def create(api: Api, number: int) -> None:
        api.create(route(site.app, f"many-{number}", "eg", [hosts[number]], service="one"))

    def edit(api: Api, number: int) -> None:
        changed = route(site.app, f"many-{number}", "eg", [hosts[number]], service="two")
        api.patch(site.path("httproutes", f"many-{number}"), {"spec": changed["spec"]})

    def delete(api: Api, number: int) -> None:
        api.delete(site.path("httproutes", f"many-{number}"))

    before, tables = site.attached(), site.tables()
    with site.load():
        # A host is unknown until its route is there, and nothing else in between.
        with site.load(hosts, (200, 404)):
            site.each(create, range(ROUTES))
            site.wait_routes("many-", ROUTES)
        wait_until(lambda: site.attached() == before + ROUTES)
        with site.no_table_shrinks(), site.load(hosts, rate=200) as answers:
            site.each(edit, range(ROUTES))
            site.wait_routes("many-", ROUTES)
            answers.wait_more(ROUTES)
        for number in range(0, ROUTES, 97):
            answer = site.made.ask(site.address, hosts[number])
            assert json.loads(answer.body)["pod"].startswith("two-")
        with site.load(hosts, (200, 404)):
            site.each(delete, range(ROUTES))
            wait_until(lambda: site.attached() == before)
            # That a route is gone is said at once, and heard by one proxy after the other.
            wait_until(lambda: site.tables() == tables)
        with site.load(hosts, (404,), rate=400) as answers:
            answers.wait_more(ROUTES)


def test_a_route_changes_its_backend_a_thousand_times(site: UnderLoad) -> None:
    names = cycle(("two", "one"))
    with site.no_table_shrinks(), site.load(rate=300):
        for _ in range(FLIPS):
            changed = route(site.app, "steady", "eg", [STEADY], service=next(names))
            site.admin.patch(site.path("httproutes", "steady"), {"spec": changed["spec"]})
        found = site.made.wait_route(site.app, "steady")
        last = found["spec"]["rules"][0]["backendRefs"][0]["name"]
        for _ in range(10):
            body = json.loads(site.made.ask(site.address, STEADY).body)
            assert body["pod"].startswith(f"{last}-")


def test_a_backend_of_twenty_pods_is_rolled(site: UnderLoad) -> None:
    site.admin.apply(
        *echo(site.app, "many", replicas=20),
        route(site.app, "rolled", "eg", ["rolled.example"], service="many"),
    )
    site.world.workloads.wait_rollout(site.app, "many")
    site.made.wait_route(site.app, "rolled")
    site.made.wait_status(site.address, "rolled.example")

    def pods() -> set[str]:
        return {one["metadata"]["name"] for one in site.world.workloads.pods(site.app, "app=many")}

    old = pods()
    with site.load(["rolled.example", STEADY], rate=200) as answers:
        site.world.workloads.restart(site.app, "many")
        site.world.workloads.wait_rollout(site.app, "many", 120)
        answers.wait_more(200)
    wait_until(lambda: not old & pods())
    seen = set()
    for _ in range(200):
        seen.add(json.loads(site.made.ask(site.address, "rolled.example").body)["pod"])
        if len(seen) == 20:
            break
    assert len(seen) > 10 and seen <= pods() - old
    site.admin.remove(route(site.app, "rolled", "eg"), *echo(site.app, "many"))


def test_listeners_come_and_go(site: UnderLoad) -> None:
    gateway = site.path("gateways", "eg")
    site.admin.apply(
        route(site.app, "wild", "eg", ["a.wild.example", "b.other.example"], service="two")
    )
    site.made.wait_route(site.app, "wild")
    hosts = [STEADY, "a.wild.example", "b.other.example"]
    with site.load(hosts, rate=200):
        for turn in range(3):
            port = 8100 + turn
            # On ports of their own, and on this one with hostnames that take requests from the first listener.
            more = [
                listener(f"port-{turn}", port),
                listener("wild", 80, "*.wild.example"),
                listener(f"steady-{turn}", 80, STEADY),
            ]
            site.admin.patch(gateway, listeners_of(*more))
            site.made.gateway_of(site.app, "eg")
            site.made.wait_status(site.address, STEADY, port=port)
            with site.load(rate=50):
                site.admin.patch(gateway, listeners_of(*more[:1]))
                site.made.gateway_of(site.app, "eg")
            assert site.made.ask(site.address, "b.other.example", port=port).status == 200
            site.admin.patch(gateway, listeners_of())
            site.made.gateway_of(site.app, "eg")
    site.admin.remove(route(site.app, "wild", "eg"))
