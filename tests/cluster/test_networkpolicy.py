"""networkPolicy.enabled where it is enforced: proxies, replicas, probes and chosen readers of metrics get through, and nobody else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from cluster.installed import (
    GATEWAY,
    PROXIES,
    Installed,
    applications,
    backend_of,
    conditions_of,
    edge_proxy,
    fleet_of,
    gateway,
    installed,
    route,
)
from cluster.policy import enforced
from cluster.world.waiting import wait_until
from cluster.world.world import World

XDS, TOKENS, RELAY, METRICS, PROBES = 18000, 18001, 18002, 19001, 8081
_SECONDS = "2"
#: Exit statuses of curl: answered; cut off by somebody who listens (TLS ports say nothing to plain text); not heard of.
_ANSWERED, _CUT_OFF, _SILENCE = 0, (0, 1, 52, 56), 28


@pytest.fixture(scope="module", params=["ControllerNamespace", "GatewayNamespace"])
def release(world: World, request: pytest.FixtureRequest) -> Iterator[Installed]:
    """Two controllers with a policy that lets the namespaces labelled `monitoring` read metrics."""
    readers = [{"namespaceSelector": {"matchLabels": {"edge.example/monitoring": "yes"}}}]
    values = {
        "networkPolicy": {"enabled": True, "metricsFrom": readers},
        "deployment": {"replicas": 2},
    }
    config = {"provider": {"orchestrator": {"deploy": {"type": request.param}}}}
    with installed(world, config, values=values) as made:
        made.admin.apply(
            edge_proxy(made.namespace, "edge"),
            made.gateway_class(made.namespace, (made.namespace, "edge")),
        )
        yield made


@pytest.fixture
def apps(world: World) -> Iterator[tuple[str, ...]]:
    """Two namespaces with a backend in each; the second one may read metrics."""
    with applications(world, "app", "prometheus") as made:
        labels = {"metadata": {"labels": {"edge.example/monitoring": "yes"}}}
        world.admin.patch(f"/api/v1/namespaces/{made[1]}", labels)
        yield made


def test_who_gets_through(release: Installed, apps: tuple[str, ...]) -> None:
    world, admin, system = release.world, release.admin, release.namespace
    app, monitoring = apps
    own = release.config["provider"]["orchestrator"]["deploy"]["type"] == "GatewayNamespace"
    admin.apply(gateway(app, "eg", system), route(app, "web", "eg", ["web.example"]))
    address = release.address(app, "eg")
    assert backend_of(release.wait_status(address, "web.example")) == app
    for namespace in apps:
        world.workloads.wait_rollout(namespace, "echo")

    place = app if own else system
    (proxy,) = world.workloads.pods(place, f"{PROXIES},gateway.edge.io/owning-gateway-name=eg")
    controllers = [
        one["metadata"]["name"]
        for one in world.workloads.pods(system, "control-plane=edge-gateway")
        if one["status"].get("phase") == "Running"
    ]
    assert len(controllers) == 2
    target = admin.get(f"/api/v1/namespaces/{system}/pods/{controllers[0]}")["status"]["podIP"]

    def reach(namespace: str, pod: str, container: str, port: int) -> int:
        """Return curl's exit status for a request from inside a pod."""
        path = {METRICS: "/metrics", PROBES: "/readyz"}.get(port, "/")
        curl = ["/usr/bin/curl", "-s", "-o", "/dev/null", "--connect-timeout", _SECONDS]
        command = [*curl, f"http://{target}:{port}{path}"]
        return world.workloads.execute(namespace, pod, container, command).returncode

    def from_app(namespace: str, port: int) -> int:
        (one,) = world.workloads.pods(namespace, "app=echo")
        return reach(namespace, one["metadata"]["name"], "echo", port)

    assert from_app(app, METRICS) == _ANSWERED, "nothing is enforced yet"
    assert from_app(app, XDS) in _CUT_OFF
    policy = admin.get(
        f"/apis/networking.k8s.io/v1/namespaces/{system}/networkpolicies/{release.release.base}"
    )
    with enforced(world, policy):
        name = proxy["metadata"]["name"]
        for port in (XDS, TOKENS):
            assert reach(place, name, "edge", port) in _CUT_OFF
            assert from_app(app, port) == _SILENCE
        assert reach(system, controllers[1], "edge-gateway", RELAY) in _CUT_OFF
        assert reach(place, name, "edge", RELAY) == _SILENCE
        assert from_app(monitoring, METRICS) == _ANSWERED
        assert from_app(app, METRICS) == _SILENCE
        assert from_app(app, PROBES) == _ANSWERED

        # All of it works on: a proxy that starts anew finds a controller, and its answer finds the leader.
        count = _restarts(release, place, name)
        os.kill(world.workloads.pid(place, name, "edge"), signal.SIGKILL)
        wait_until(lambda: _restarts(release, place, name) > count)
        world.workloads.wait_rollout(place, fleet_of(f"{app}/eg"))
        admin.apply(route(app, "late", "eg", ["late.example"]))
        release.wait_route(app, "late")
        release.wait_status(address, "late.example")
        told = f"/apis/{GATEWAY}/namespaces/{app}/gateways/eg"
        admin.wait(
            told, lambda one: any("1/1 proxies" in has["message"] for has in conditions_of(one))
        )
    assert from_app(app, METRICS) == _ANSWERED


def _restarts(release: Installed, namespace: str, pod: str) -> int:
    found = release.admin.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")
    return sum(one["restartCount"] for one in found["status"].get("containerStatuses") or ())
