"""Which namespaces count: watch.type Namespaces and NamespaceSelector, with labels that come and go at run time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.installed import (
    GATEWAY,
    Installed,
    applications,
    backend_of,
    condition,
    edge_proxy,
    fleet_of,
    gateway,
    installed,
    is_programmed,
    listener,
    route,
)
from cluster.world.api import ApiError
from cluster.world.world import World


def _config(deploy: str = "ControllerNamespace", **watch: Any) -> dict[str, Any]:
    return {"provider": {"orchestrator": {"deploy": {"type": deploy}, "watch": watch}}}


def _make_class(made: Installed) -> str:
    """Make a class named as the controller's namespace."""
    made.admin.apply(
        edge_proxy(made.namespace, "edge"),
        made.gateway_class(made.namespace, (made.namespace, "edge")),
    )
    return made.namespace


@pytest.fixture(scope="module")
def apps(world: World) -> Iterator[tuple[str, ...]]:
    """Three namespaces with a backend in each."""
    with applications(world, "team-a", "team-b", "team-c") as made:
        yield made


@pytest.mark.parametrize("deploy", ["ControllerNamespace", "GatewayNamespace"])
def test_only_listed_namespaces_count(world: World, apps: tuple[str, ...], deploy: str) -> None:
    """Permissions are per listed namespace; a namespace more is one edit of the values."""
    listed, added, other = apps
    gone = world.namespace("gone")
    config = _config(deploy, type="Namespaces", namespaces=[listed, gone])
    with installed(world, config) as made:
        name = _make_class(made)
        for namespace in apps:
            world.admin.apply(
                gateway(namespace, name, name),
                route(namespace, name, name, [f"{namespace}.example"]),
            )
        address = made.address(listed, name)
        assert backend_of(made.wait_status(address, f"{listed}.example")) == listed
        where = listed if deploy == "GatewayNamespace" else made.namespace
        world.admin.get(f"/api/v1/namespaces/{where}/services/{fleet_of(f'{listed}/{name}')}")
        for namespace in (added, other):
            _has_no_status_of(made, namespace, name)
            assert made.ask(address, f"{namespace}.example").status == 404
        account = world.accounts.api_for(f"{made.namespace}/edge-gateway")
        account.get(f"/apis/{GATEWAY}/namespaces/{listed}/httproutes")
        for path in (
            f"/apis/{GATEWAY}/httproutes",
            f"/apis/{GATEWAY}/namespaces/{other}/httproutes",
        ):
            with pytest.raises(ApiError) as told:
                account.get(path)
            assert told.value.status == 403

        # One of the listed ones is deleted, with the permissions there: a new controller goes without it.
        world.admin.delete(f"/api/v1/namespaces/{gone}")
        world.admin.wait_gone(f"/api/v1/namespaces/{gone}")
        world.workloads.restart(made.namespace, made.release.base)
        world.workloads.wait_rollout(made.namespace, made.release.base)
        world.admin.apply(route(listed, "after", name, ["after.example"]))
        made.wait_status(address, "after.example")

        watch = made.config["provider"]["orchestrator"]["watch"]
        watch["namespaces"] = [listed, added]
        with world.client.load(f"http://{address}", [f"{listed}.example"], rate=20) as answers:
            made.helm("upgrade")
            new = made.address(added, name)
            assert backend_of(made.wait_status(new, f"{added}.example")) == added
            answers.wait_more(20)
        assert not answers.unexpected(200)
        _has_no_status_of(made, other, name)
        for namespace in apps:
            world.admin.remove(gateway(namespace, name, name), route(namespace, name, name))


def test_labels_of_namespaces_decide_at_run_time(world: World, apps: tuple[str, ...]) -> None:
    """A label added brings a namespace in, a label removed takes it out, without a restart."""
    first, second, third = apps
    selector = {"matchLabels": {"edge.example/tenant": "yes"}}
    config = _config(type="NamespaceSelector", namespaceSelector=selector)
    _label(world, first, "yes")
    with installed(world, config) as made:
        name = _make_class(made)
        pod = made.controller_pod()["metadata"]["name"]
        world.admin.apply(
            gateway(first, name, name, listener(routes="All")),
            *(route(one, name, name, [f"{one}.example"], parent_namespace=first) for one in apps),
            gateway(second, name, name),
        )
        address = made.address(first, name)
        made.wait_status(address, f"{first}.example")
        _has_no_status_of(made, second, name)
        assert made.ask(address, f"{second}.example").status == 404

        with world.client.load(f"http://{address}", [f"{first}.example"], rate=20) as answers:
            _label(world, second, "yes")
            assert backend_of(made.wait_status(address, f"{second}.example")) == second
            own = made.address(second, name)
            assert own != address
            assert made.ask(address, f"{third}.example").status == 404
            _label(world, second, "no")
            made.wait_status(address, f"{second}.example", 404)
            # Its own fleet serves on with its last table, and its Gateway does not say that all is well.
            path = f"/apis/{GATEWAY}/namespaces/{second}/gateways/{name}"
            left = world.admin.wait(path, lambda one: not is_programmed(one))["status"]
            told = condition(left["conditions"], "Programmed")
            assert told["status"] == "Unknown"
            assert f"namespace {second} is not watched; fleet " in told["message"]
            assert [one["value"] for one in left["addresses"]] == [own]
            made.wait_status(own, "any.example", 404)
            _label(world, second, "yes")
            made.wait_status(address, f"{second}.example")
            assert made.address(second, name) == own
            answers.wait_more(5)
        assert not answers.unexpected(200)
        _label(world, second, None)
        made.wait_status(address, f"{second}.example", 404)
        assert made.controller_pod()["metadata"]["name"] == pod
        assert made.controller_pod()["status"]["containerStatuses"][0]["restartCount"] == 0
        _has_no_status_of(made, third, name)


def _label(world: World, namespace: str, value: str | None) -> None:
    labels = {"labels": {"edge.example/tenant": value}}
    world.admin.patch(f"/api/v1/namespaces/{namespace}", {"metadata": labels})


def _has_no_status_of(made: Installed, namespace: str, name: str) -> None:
    """Neither the Gateway nor the route of a name has a word of this controller in its status."""
    for kind in ("gateways", "httproutes"):
        path = f"/apis/{GATEWAY}/namespaces/{namespace}/{kind}/{name}"
        found = made.admin.find(path)
        if found is None:
            continue
        status = found.get("status") or {}
        assert not status.get("addresses")
        assert not status.get("listeners")
        assert all(one["reason"] == "Pending" for one in status.get("conditions") or [])
        assert made.controller not in [one["controllerName"] for one in status.get("parents") or []]
