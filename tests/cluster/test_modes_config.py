"""The configuration in a cluster: edits of the ConfigMap, sound ones and others; restarts; another mode by helm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster.cutover import go_after
from cluster.installed import (
    Installed,
    applications,
    backend_of,
    condition,
    edge_proxy,
    fleet_of,
    gateway,
    installed,
    route,
)
from cluster.world.waiting import wait_until
from cluster.world.world import World

#: Proxies of a fleet, by default: each may be told of once.
_PROXIES = 2


@pytest.fixture(scope="module")
def release(world: World) -> Iterator[Installed]:
    """A release with a class named as its namespace."""
    with installed(world) as made:
        made.admin.apply(
            edge_proxy(made.namespace, "edge"),
            made.gateway_class(made.namespace, (made.namespace, "edge")),
        )
        yield made


@pytest.fixture(scope="module")
def app(world: World) -> Iterator[str]:
    """A namespace with a backend."""
    with applications(world, "app") as (made,):
        yield made


def test_edits_of_the_configuration(release: Installed, app: str) -> None:
    """Valid: picked up. Wrong: refused with its line, told in an Event. Restarted: applied."""
    api, name = release.admin, release.namespace
    api.apply(gateway(app, "eg", name), route(app, "web", "eg"))
    address = release.address(app, "eg")
    release.wait_status(address, "any.example")
    pod = release.controller_pod()["metadata"]
    config = yaml.safe_load(_text(release))

    with release.world.client.load(f"http://{address}", ["any.example"], rate=20) as answers:
        # Sound: the namespace of the Gateway is watched no more, while the controller runs on.
        selector = {"matchLabels": {"edge.example/config": "yes"}}
        watch = {"type": "NamespaceSelector", "namespaceSelector": selector}
        provider = {"type": "Orchestrator", "orchestrator": {"watch": watch}}
        labelled = {"metadata": {"labels": {"edge.example/config": "yes"}}}
        api.patch(f"/api/v1/namespaces/{app}", labelled)
        other = release.world.namespace("other")
        release.edit_config(yaml.safe_dump({**config, "provider": provider}))
        wait_until(lambda: "configuration changed" in release.controller_log())
        api.apply(gateway(other, "eg", name))
        api.apply(route(app, "more", "eg", ["more.example"], path="/more"))
        release.wait_route(app, "more")
        assert release.wait_status(address, "more.example", path="/more")
        path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{other}/gateways/eg"
        assert not api.get(path)["status"].get("addresses")

        # Wrong in line 3: said so, and what was before stays.
        first = {name: config.pop(name) for name in ("apiVersion", "kind")}
        rest = {**config, "provider": provider}
        wrong = f"{yaml.safe_dump(first)}loging: {{level: debug}}\n{yaml.safe_dump(rest)}"
        release.edit_config(wrong)
        wait_until(lambda: "configuration refused" in release.controller_log())
        (said,) = [
            one for one in release.controller_log().splitlines() if "configuration refused" in one
        ]
        assert "/etc/edge-gateway/edge-gateway.yaml:3" in said
        assert '"loging"' in said or "loging" in said
        event = _event(release)
        assert ":3" in event["note"]
        api.apply(route(app, "later", "eg", ["later.example"], path="/later"))
        release.wait_status(address, "later.example", path="/later")
        assert not api.get(path)["status"].get("addresses")

        # A new process does not start with it; the rollout waits and the old one goes on.
        release.world.workloads.restart(release.namespace, release.release.base)
        wait_until(lambda: _crashed(release), 90)
        api.apply(route(app, "still", "eg", ["still.example"], path="/still"))
        release.wait_status(address, "still.example", path="/still")

        # Sound again, and as at the start: the restart that waits applies it, other namespaces count again.
        release.edit_config(yaml.safe_dump({**first, **config}))
        release.world.workloads.wait_rollout(release.namespace, release.release.base, 150)
        assert release.controller_pod()["metadata"]["name"] != pod["name"]
        assert release.address(other, "eg") != address
        answers.wait_more(20)
    assert not answers.unexpected(200)


def test_the_name_of_the_controller_changes_without_helm(release: Installed, app: str) -> None:
    """A new start inside the pod takes it in. What is of the old name serves on, says so, and is taken back as it was."""
    api = release.admin
    config = yaml.safe_load(_text(release))
    before = release.controller
    renamed = f"{before}-two"
    api.apply(
        gateway(app, "stays", release.namespace), route(app, "stays", "stays", ["stays.example"])
    )
    address = release.address(app, "stays")
    release.wait_status(address, "stays.example")
    service = f"/api/v1/namespaces/{release.namespace}/services/{fleet_of(f'{app}/stays')}"
    uid = api.get(service)["metadata"]["uid"]
    config["gateway"]["controllerName"] = renamed
    spec = {**release.gateway_class("x")["spec"], "controllerName": renamed}
    second = {**release.gateway_class(f"{release.namespace}-two"), "spec": spec}
    api.apply(second, gateway(app, "two", f"{release.namespace}-two"), route(app, "two", "two"))
    with release.world.client.load(f"http://{address}", ["stays.example"], rate=20) as answers:
        release.edit_config(yaml.safe_dump(config))
        try:
            release.world.workloads.wait_rollout(release.namespace, release.release.base)
            own = release.address(app, "two")
            assert backend_of(release.wait_status(own, "any.example")) == app
            _is_nobodys(release, app, address, before)
        finally:
            api.remove(gateway(app, "two", ""))
            path = f"/api/v1/namespaces/{release.namespace}/services/{fleet_of(f'{app}/two')}"
            api.wait_gone(path)
            api.remove(second)
            release.edit_config(_replace(config, before))
            assert release.address(app, "stays") == address
        answers.wait_more(20)
    assert not answers.unexpected(200)
    release.wait_route(app, "stays")
    assert api.get(service)["metadata"]["uid"] == uid


def _is_nobodys(release: Installed, app: str, address: str, former: str) -> None:
    """The Gateway, its route and its class say that nobody answers for them; an Event and the log name the fleet."""
    root = "/apis/gateway.networking.k8s.io/v1"
    fleet = f"{release.namespace}/{fleet_of(f'{app}/stays')}"

    def is_unknown(found: dict[str, Any], type_: str) -> bool:
        told = condition(found["status"]["conditions"], type_)
        return told["status"] == "Unknown" and "observedGeneration" in told

    found = release.admin.wait(
        f"{root}/namespaces/{app}/gateways/stays", lambda one: is_unknown(one, "Programmed")
    )
    assert is_unknown(found, "Accepted")
    assert (
        f"fleet {fleet} serves its last table"
        in condition(found["status"]["conditions"], "Accepted")["message"]
    )
    assert [one["value"] for one in found["status"]["addresses"]] == [address]
    release.admin.wait(
        f"{root}/namespaces/{app}/httproutes/stays",
        lambda one: former not in [it["controllerName"] for it in one["status"]["parents"]],
    )
    release.admin.wait(
        f"{root}/gatewayclasses/{release.namespace}", lambda one: is_unknown(one, "Accepted")
    )
    wait_until(lambda: f"fleet {fleet} serves its last table" in release.controller_log())
    events = f"/apis/events.k8s.io/v1/namespaces/{app}/events"
    wait_until(
        lambda: any(
            one["reason"] == "FleetKept" and fleet in one["note"]
            for one in release.admin.items(events)
        )
    )


def test_another_mode_by_helm(world: World, app: str) -> None:
    """Fleets move to the namespaces of their Gateways; the one before serves until the other one does, then it goes."""
    with installed(world) as made:
        made.admin.apply(
            edge_proxy(made.namespace, "edge"),
            made.gateway_class(made.namespace, (made.namespace, "edge")),
            gateway(app, "moves", made.namespace),
            route(app, "moves", "moves", ["moves.example"]),
        )
        address = made.address(app, "moves")
        made.wait_status(address, "moves.example")
        fleet = fleet_of(f"{app}/moves")
        pods = "/api/v1/pods"
        seen = made.admin.get(pods)["metadata"]["resourceVersion"]
        made.config["provider"] = {"orchestrator": {"deploy": {"type": "GatewayNamespace"}}}
        made.helm("upgrade")
        go_after(
            made.admin.watch(pods, 240, resourceVersion=seen),
            here=[f"{app}/{fleet}"],
            gone=[f"{made.namespace}/{fleet}"],
        )
        moved = made.world.workloads.address(app, fleet)
        assert moved != address
        wait_until(lambda: made.address(app, "moves") == moved)
        assert backend_of(made.wait_status(moved, "moves.example")) == app
        made.admin.wait_gone(f"/api/v1/namespaces/{made.namespace}/services/{fleet}")
        # Its key goes with it, though Secrets are none of this mode's to delete.
        made.admin.wait_gone(f"/api/v1/namespaces/{made.namespace}/secrets/{fleet}-xds")
        # The proxies of before, whom the new controller turns away until they go, are no flood in its log.
        said = re.findall(r" (?:warning|error) (.*)", made.controller_log())
        often = Counter(re.sub(r"[\d.:]+", "#", one) for one in said)
        assert all(count <= _PROXIES for count in often.values()), often


def _replace(config: dict[str, object], name: str) -> str:
    return yaml.safe_dump({**config, "gateway": {"controllerName": name}})


def _text(release: Installed) -> str:
    path = f"/api/v1/namespaces/{release.namespace}/configmaps/{release.release.config}"
    return str(release.admin.get(path)["data"]["edge-gateway.yaml"])


def _event(release: Installed) -> dict[str, str]:
    path = f"/apis/events.k8s.io/v1/namespaces/{release.namespace}/events"
    found: list[dict[str, str]] = []

    def is_told() -> bool:
        found[:] = [
            one for one in release.admin.items(path) if one["reason"] == "ConfigurationRefused"
        ]
        return bool(found)

    wait_until(is_told)
    return found[0]


def _crashed(release: Installed) -> bool:
    """Whether the newest pod of the controller has ended and said where the mistake is."""
    pod = release.controller_pod()
    statuses = pod["status"].get("containerStatuses") or []
    if not any("terminated" in {**one["state"], **one["lastState"]} for one in statuses):
        return False  # before that, its node may not even know it
    return "/etc/edge-gateway/edge-gateway.yaml:3" in release.controller_log()
