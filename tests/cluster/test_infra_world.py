"""A fleet in a whole cluster: pods as they are rendered do start, roll without losing a request, and go with their owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster.world.manifests import echo
from cluster.world.world import World
from controller.manifests.load import load_install
from controller.manifests.naming import Release
from controller.manifests.render import render_install
from edgefast.translate.fleet.fleet import digest_of
from tests.support.manifest import manifest

GATEWAY = "gateway.networking.k8s.io/v1"


class Tenant:
    """An installation in a namespace of its own, with a class, an EdgeProxy and a Gateway in another one."""

    def __init__(self, world: World, mode: str) -> None:
        self.world = world
        self.system, self.namespace = world.namespace("system"), world.namespace("apps")
        self.controller = f"gateway.edge.io/{self.system}"
        self.name = f"{self.system}-class"
        self.fleet_namespace = self.namespace if mode == "GatewayNamespace" else self.system
        config: dict[str, Any] = {
            "gateway": {"controllerName": self.controller},
            "provider": {"kubernetes": {"deploy": {"type": mode}}},
        }
        values = yaml.safe_dump({"config": {"edgeGateway": config}}).encode()
        install, problems = load_install(
            Release("edge-gateway", self.system), [("values.yaml", values)]
        )
        assert install is not None, problems
        world.admin.apply(*render_install(install, crds=False))
        world.workloads.wait_rollout(self.system, "edge-gateway")
        self.proxy({})
        reference = {
            "group": "gateway.edge.io",
            "kind": "EdgeProxy",
            "name": "edge",
            "namespace": self.system,
        }
        world.admin.apply(
            manifest(
                f"GatewayClass {self.name}",
                {"controllerName": self.controller, "parametersRef": reference},
            ),
            *echo(self.namespace),
        )

    def proxy(self, deployment: dict[str, Any]) -> None:
        """Set what the EdgeProxy says of the workload; drains are short."""
        shutdown = {"drainTimeout": "9s", "minDrainDuration": "4s"}
        self.world.admin.apply(
            manifest(
                f"EdgeProxy {self.system}/edge",
                {"workers": 1, "deployment": deployment, "shutdown": shutdown},
            )
        )

    def gateway(self) -> tuple[str, str]:
        """Make a Gateway with a route; return its fleet's name and address."""
        self.world.admin.apply(
            manifest(
                f"Gateway {self.namespace}/eg",
                {
                    "gatewayClassName": self.name,
                    "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
                },
            ),
            manifest(
                f"HTTPRoute {self.namespace}/echo",
                {
                    "parentRefs": [{"name": "eg"}],
                    "rules": [{"backendRefs": [{"name": "echo", "port": 80}]}],
                },
            ),
        )
        fleet = f"edge-{self.namespace}-eg-{digest_of(f'{self.namespace}/eg')}"
        return fleet, self.world.workloads.address(self.fleet_namespace, fleet)

    def programmed(self) -> dict[str, Any]:
        """Wait for the Gateway to be programmed; return the condition."""
        path = f"/apis/{GATEWAY}/namespaces/{self.namespace}/gateways/eg"
        found = self.world.admin.wait(path, _programmed)
        return _programmed(found) or {}

    def remove(self) -> None:
        """Remove everything."""
        for path in (
            f"/apis/{GATEWAY}/gatewayclasses/{self.name}",
            f"/api/v1/namespaces/{self.namespace}",
            f"/api/v1/namespaces/{self.system}",
        ):
            if self.world.admin.find(path):
                self.world.admin.delete(path)


def _programmed(gateway: Any) -> dict[str, Any] | None:
    conditions = ((gateway or {}).get("status") or {}).get("conditions") or []
    found = (one for one in conditions if one["type"] == "Programmed" and one["status"] == "True")
    return next(found, None)


@pytest.fixture(params=["ControllerNamespace", "GatewayNamespace"])
def tenant(world: World, request: pytest.FixtureRequest) -> Iterator[Tenant]:
    """An installation in each deployment mode."""
    made = Tenant(world, request.param)
    yield made
    made.remove()


def test_pods_start_roll_and_go(tenant: Tenant) -> None:
    world, where = tenant.world, tenant.fleet_namespace
    fleet, address = tenant.gateway()
    condition = tenant.programmed()
    assert "1/1 proxies" in condition["message"], condition
    world.workloads.wait_rollout(where, fleet)
    (pod,) = world.workloads.pods(where, "app.kubernetes.io/component=proxy")
    assert [one["name"] for one in pod["spec"]["containers"]] == ["edge", "shutdown-manager"]
    assert pod["metadata"]["name"].startswith(f"{fleet}-")
    world.client.wait(f"http://{address}/", lambda answer: answer.status == 200)

    with world.client.load(f"http://{address}", ["any.example"], rate=50) as answers:
        answers.wait_more(50)
        # The template changes: every pod is replaced, the old one drains.
        tenant.proxy({"labels": {"rolled": "once"}})
        _wait_template(tenant, fleet, "once")
        world.workloads.wait_rollout(where, fleet)
        answers.wait_more(100)
        # What does not concern pods rolls none: same generation after one proxy more.
        path = f"/apis/apps/v1/namespaces/{where}/deployments/{fleet}"
        template = world.admin.get(path)["spec"]["template"]
        tenant.proxy({"labels": {"rolled": "once"}, "replicas": 2})
        world.admin.wait(path, lambda found: found["spec"]["replicas"] == 2)
        world.workloads.wait_rollout(where, fleet)
        assert world.admin.get(path)["spec"]["template"] == template
        answers.wait_more(100)
        # And back: the one that goes drains too, long after its readiness failed.
        tenant.proxy({"labels": {"rolled": "once"}, "replicas": 1})
        world.admin.wait(path, lambda found: found["spec"]["replicas"] == 1)
        world.admin.wait(path, lambda found: found["status"].get("terminatingReplicas", 0) == 0)
        answers.wait_more(100)
    assert not answers.unexpected(200)

    # Without a controller, the garbage collector removes what its owner is gone of.
    deployment = f"/apis/apps/v1/namespaces/{tenant.system}/deployments/edge-gateway"
    world.admin.patch(deployment, {"spec": {"replicas": 0}})
    world.admin.wait(deployment, lambda found: not found["status"].get("replicas"))
    owner = (
        f"/apis/{GATEWAY}/namespaces/{tenant.namespace}/gateways/eg"
        if where == tenant.namespace
        else f"/apis/{GATEWAY}/gatewayclasses/{tenant.name}"
    )
    world.admin.delete(owner)
    for kind in ("apps/v1/{}/deployments", "/{}/services", "/{}/serviceaccounts", "/{}/configmaps"):
        root, _, plural = kind.partition("/{}/")
        group = f"/apis/{root}" if root else "/api/v1"
        world.admin.wait_gone(f"{group}/namespaces/{where}/{plural}/{fleet}")


def _wait_template(tenant: Tenant, fleet: str, label: str) -> None:
    path = f"/apis/apps/v1/namespaces/{tenant.fleet_namespace}/deployments/{fleet}"

    def is_new(found: Any) -> bool:
        labels = found["spec"]["template"]["metadata"]["labels"]
        return bool(labels.get("rolled") == label)

    tenant.world.admin.wait(path, is_new)
