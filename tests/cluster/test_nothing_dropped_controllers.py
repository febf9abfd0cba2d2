"""Under a steady load: controllers are killed, stopped, restarted and cut off from the cluster, and no request notices."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from cluster.installed import conditions_of, route
from cluster.under_load import PATIENT, STEADY, UnderLoad, under_load
from cluster.world.waiting import wait_until
from cluster.world.world import World

OUTAGE = 15  # seconds; a minute in the long form
ROUTES = 30


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[UnderLoad]:
    """Two controllers; each test leaves two, and the Gateway as it was."""
    with under_load(world, controllers=2, shutdown=PATIENT) as made:
        for number in range(ROUTES):
            made.admin.apply(
                route(made.app, f"fixed-{number}", "eg", [f"fixed-{number}.example"], service="two")
            )
        made.wait_routes("fixed-", ROUTES)
        yield made


HOSTS = [STEADY, *(f"fixed-{number}.example" for number in range(ROUTES))]


def changes_are_taken(site: UnderLoad, name: str) -> None:
    """A route made now is served, its status is written, and it goes again."""
    site.admin.apply(route(site.app, name, "eg", [f"{name}.example"], service="two"))
    site.made.wait_status(site.address, f"{name}.example")
    site.made.wait_route(site.app, name)
    site.admin.delete(site.path("httproutes", name))
    site.made.wait_status(site.address, f"{name}.example", 404)


def test_the_leader_is_killed(site: UnderLoad) -> None:
    leader = site.leader()
    assert leader in site.controllers()
    with site.no_table_shrinks(), site.load(HOSTS):
        os.kill(site.pid(leader, "edge-gateway"), signal.SIGKILL)
        changes_are_taken(site, "killed")
        wait_until(lambda: site.leader())
    site.world.workloads.wait_rollout(site.namespace, site.made.release.base)


def test_the_leader_is_stopped_and_goes_on(site: UnderLoad) -> None:
    leader = site.leader()
    pid = site.pid(leader, "edge-gateway")
    with site.no_table_shrinks(), site.load(HOSTS) as answers:
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: site.leader() not in ("", leader))
            changes_are_taken(site, "stopped")
        finally:
            os.kill(pid, signal.SIGCONT)
        answers.wait_more(200)
        # It has slept through the end of its time: what it wanted to write then, it does not.
        assert site.leader() != leader
        changes_are_taken(site, "awake")
    site.world.workloads.wait_rollout(site.namespace, site.made.release.base)


def test_all_controllers_are_restarted(site: UnderLoad) -> None:
    with site.no_table_shrinks(), site.load(HOSTS):
        site.restart_controllers()
        changes_are_taken(site, "restarted")


def test_a_proxy_is_restarted_while_no_controller_runs(site: UnderLoad) -> None:
    site.scale_controllers(0)
    with site.no_table_shrinks(), site.load(HOSTS) as answers:
        for pod in site.proxies():
            name, address = pod["metadata"]["name"], pod["status"]["podIP"]
            os.kill(site.pid(name, "edge"), signal.SIGTERM)
            wait_until(lambda name=name: restarts(site, name) == 1)  # type: ignore[misc]
            site.world.workloads.wait_pod(site.namespace, name)
            # Its table is the one that it had kept.
            assert site.metrics(address, "edgefast_xds_connected") == 0
            assert site.metrics(address, "edgefast_table_resources") > ROUTES
            answers.wait_more(100)
    # Killed without a word, it loses what it was at and nothing else; what it says afterwards is right.
    (pod, *_) = site.proxies()
    name = pod["metadata"]["name"]
    client = site.world.client
    with client.load(f"http://{site.address}", HOSTS, rate=100, per_connection=20) as answers:
        os.kill(site.pid(name, "edge"), signal.SIGKILL)
        wait_until(lambda: restarts(site, name) == 2)
        site.world.workloads.wait_pod(site.namespace, name)
        answers.wait_more(100)
    assert set(answers.by_status) == {200}, answers.unexpected(200)
    with site.load(HOSTS):
        site.scale_controllers(2)
        changes_are_taken(site, "back")


def restarts(site: UnderLoad, name: str) -> int:
    """Return how often a proxy's container was started again."""
    found = site.admin.get(f"/api/v1/namespaces/{site.namespace}/pods/{name}")
    statuses = found["status"].get("containerStatuses") or []
    return sum(one["restartCount"] for one in statuses if one["name"] == "edge")


def test_proxies_of_followers_count_for_the_leader(site: UnderLoad) -> None:
    """Three controllers; the leader serves no proxy, and still says what they serve."""
    with site.no_table_shrinks(), site.load(HOSTS):
        site.scale_controllers(3)
        wait_until(lambda: sum(streams(site, one) for one in site.controllers()) >= 2)
        # Of three, one at least has none of two proxies: the Lease is given to it by hand.
        idle = next(one for one in site.controllers() if not streams(site, one))
        address = address_of(site, idle)
        site.admin.patch(site.lease(), {"spec": {"holderIdentity": f"{idle}_{address}"}})
        wait_until(lambda: leads(site, address))
        changes_are_taken(site, "relayed")
        assert site.leader() == idle and not streams(site, idle)
        # A new leader hears of proxies one by one.
        site.admin.wait(
            site.path("gateways", "eg"),
            lambda one: any("2/2 proxies" in has["message"] for has in conditions_of(one)),
        )
        site.scale_controllers(2)


def leads(site: UnderLoad, address: str) -> bool:
    """Whether the controller at an address says that it leads."""
    try:
        return site.metrics(address, "edgefast_controller_leader") == 1
    except (OSError, KeyError):
        return False


def streams(site: UnderLoad, controller: str) -> float:
    """Return how many proxies a controller serves."""
    address = address_of(site, controller)
    try:
        return site.metrics(address, "edgefast_controller_streams") if address else 0.0
    except (OSError, KeyError):
        return 0.0


def address_of(site: UnderLoad, pod: str) -> str:
    """Return the address of a pod, "" when it has none yet."""
    found = site.admin.get(f"/api/v1/namespaces/{site.namespace}/pods/{pod}")
    return str(found["status"].get("podIP") or "")


@pytest.mark.parametrize("seconds", [OUTAGE, pytest.param(60, marks=pytest.mark.heavy)])
def test_etcd_and_the_api_server_are_away(site: UnderLoad, world: World, seconds: int) -> None:
    plane = world.plane
    versions = {pod["status"]["podIP"] for pod in site.proxies()}
    with site.no_table_shrinks(), site.load(HOSTS, rate=100) as answers:
        try:
            plane.stop_apiserver()
            assert plane.etcd is not None
            plane.etcd.stop()
            answers.wait_more(100 * seconds, 4 * seconds + 30)
        finally:
            plane.start_etcd()
            plane.start_apiserver()
        wait_until(lambda: site.leader())
        changes_are_taken(site, "after")
    assert {pod["status"]["podIP"] for pod in site.proxies()} == versions
    site.world.workloads.wait_rollout(site.namespace, site.made.release.base)
