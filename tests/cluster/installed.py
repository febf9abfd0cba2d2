"""A release of the chart in a world, and what its users do with it: apply objects, look at statuses, ask for pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from cluster.world.client import Answer
from cluster.world.manifests import echo
from cluster.world.world import World
from controller.manifests.generate import FOLDER
from controller.manifests.naming import Release
from edgefast.translate.fleet.fleet import digest_of
from tests.support.manifest import manifest

GATEWAY = "gateway.networking.k8s.io/v1"
EDGE = "gateway.edge.io/v1alpha1"
PROXIES = "app.kubernetes.io/component=proxy"

Manifest = dict[str, Any]


class Installed:
    """One release. `admin` acts as a cluster's administrator would."""

    def __init__(self, world: World, release: Release, config: Mapping[str, Any]) -> None:
        self.world, self.admin, self.release = world, world.admin, release
        self.config: dict[str, Any] = dict(config)
        self.namespace = release.namespace

    @property
    def controller(self) -> str:
        """Return the controllerName of its GatewayClasses."""
        default = "gateway.edge.io/gatewayclass-controller"
        return str(self.config.get("gateway", {}).get("controllerName", default))

    # --- the installation -----------------------------------------------------------------------

    def helm(self, verb: str = "install", **values: Any) -> None:
        """Install or upgrade with the configuration, and other values, and wait for the rollout."""
        given = {"config": {"edgeGateway": self.config}, **values}
        where = (self.release.name, str(FOLDER), "--namespace", self.namespace)
        # Kinds are the world's, equal to the chart's; helm would look at every one again.
        self.world.helm.run(
            verb,
            *where,
            *(("--create-namespace", "--skip-crds") if verb == "install" else ()),
            *("--values", "-"),
            stdin=yaml.safe_dump(given),
        )
        self.world.workloads.wait_rollout(self.namespace, self.release.base, 120)

    def uninstall(self) -> None:
        """Remove the release and its namespace."""
        self.world.helm.run("uninstall", self.release.name, "--namespace", self.namespace)

    def controller_pod(self) -> Manifest:
        """Return the newest pod of the controller."""
        selector = (
            f"app.kubernetes.io/instance={self.release.name},app.kubernetes.io/component!=certgen"
        )
        pods = self.world.workloads.pods(self.namespace, selector)
        found = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
        return found[-1]

    def controller_log(self) -> str:
        """Return what the controller has logged."""
        return self.world.workloads.logs(self.namespace, self.controller_pod()["metadata"]["name"])

    def edit_config(self, text: str) -> None:
        """Put another text in the place of the configuration, past helm, as `kubectl edit` does."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{self.release.config}"
        self.admin.patch(path, {"data": {"edge-gateway.yaml": text}})

    # --- objects --------------------------------------------------------------------------------

    def gateway_class(self, name: str, proxy: tuple[str, str] | None = None) -> Manifest:
        """Return a GatewayClass of this controller; `proxy` is the (namespace, name) of its EdgeProxy."""
        spec: Manifest = {"controllerName": self.controller}
        if proxy is not None:
            spec["parametersRef"] = {
                "group": "gateway.edge.io",
                "kind": "EdgeProxy",
                "namespace": proxy[0],
                "name": proxy[1],
            }
        return manifest(f"GatewayClass {name}", spec)

    def gateway_of(self, namespace: str, name: str, seconds: float = 90.0) -> Manifest:
        """Return a Gateway once it is programmed in its present generation."""
        path = f"/apis/{GATEWAY}/namespaces/{namespace}/gateways/{name}"
        found: Manifest = self.admin.wait(path, is_programmed, seconds)
        return found

    def address(self, namespace: str, name: str) -> str:
        """Return the address of a Gateway once it is programmed."""
        (address,) = self.gateway_of(namespace, name)["status"]["addresses"]
        return str(address["value"])

    def wait_route(self, namespace: str, name: str, seconds: float = 60.0) -> Manifest:
        """Return a route once all its parents have accepted its present generation."""
        path = f"/apis/{GATEWAY}/namespaces/{namespace}/httproutes/{name}"
        found: Manifest = self.admin.wait(path, is_accepted, seconds)
        return found

    def wait_condition(
        self,
        kind: str,
        namespace: str,
        name: str,
        condition: Mapping[str, str],
        seconds: float = 60.0,
    ) -> Manifest:
        """Wait until any entry of a status has a condition with these fields; return the object."""
        path = f"/apis/{GATEWAY}/namespaces/{namespace}/{kind}/{name}"
        found: Manifest = self.admin.wait(
            path,
            lambda one: any(condition.items() <= has.items() for has in conditions_of(one)),
            seconds,
        )
        return found

    # --- requests -------------------------------------------------------------------------------

    def ask(
        self, address: str, host: str, path: str = "/", *, port: int = 80, **options: Any
    ) -> Answer:
        """Send one request from outside."""
        return self.world.client.request(f"http://{address}:{port}{path}", host=host, **options)

    def wait_status(
        self, address: str, host: str, status: int = 200, path: str = "/", *, port: int = 80
    ) -> Answer:
        """Ask until the answer has a status."""
        return self.world.client.wait(
            f"http://{address}:{port}{path}", lambda answer: answer.status == status, host=host
        )


def release_of(namespace: str, name: str = "edge-gateway") -> Release:
    """Return a release that does not meet any other."""
    return Release(name, namespace)


@contextmanager
def installed(
    world: World,
    config: Mapping[str, Any] | None = None,
    *,
    release: Release | None = None,
    values: Mapping[str, Any] | None = None,
) -> Iterator[Installed]:
    """Install a release for a while; afterwards it, its namespace, its classes and their Gateways are gone."""
    if release is None:
        release = Release("edge-gateway", world.namespace("edge"))
    config = dict(config or {})
    if (release.name, release.namespace) != ("edge-gateway", "edge-gateway-system"):
        own = {"controllerName": f"gateway.edge.io/{release.namespace}-{release.name}"}
        config.setdefault("gateway", own)
    made = Installed(world, release, config)
    try:
        made.helm("install", **(values or {}))
        yield made
    finally:
        _remove(made)


def _remove(made: Installed) -> None:
    classes = f"/apis/{GATEWAY}/gatewayclasses"
    ours = {
        one["metadata"]["name"]
        for one in made.admin.items(classes)
        if one["spec"]["controllerName"] == made.controller
    }
    for one in made.admin.items(f"/apis/{GATEWAY}/gateways"):
        if one["spec"]["gatewayClassName"] in ours:
            made.admin.remove({**one, "apiVersion": GATEWAY, "kind": "Gateway"})
    for name in ours:
        made.admin.delete(f"{classes}/{name}")
    made.uninstall()
    made.admin.delete(f"/api/v1/namespaces/{made.namespace}")


# --- manifests ----------------------------------------------------------------------------------


def listener(
    name: str = "http", port: int = 80, hostname: str = "", *, routes: str = "Same"
) -> Manifest:
    """Return a listener; `routes` is the namespaces that routes may be in: Same or All."""
    made: Manifest = {
        "name": name,
        "port": port,
        "protocol": "HTTP",
        "allowedRoutes": {"namespaces": {"from": routes}},
    }
    return made | ({"hostname": hostname} if hostname else {})


def gateway(
    namespace: str,
    name: str,
    class_name: str,
    *listeners: Manifest,
    infrastructure: Mapping[str, Any] | None = None,
) -> Manifest:
    """Return a Gateway; without listeners it has one on port 80."""
    spec: Manifest = {"gatewayClassName": class_name, "listeners": list(listeners) or [listener()]}
    if infrastructure:
        spec["infrastructure"] = dict(infrastructure)
    meta = {"namespace": namespace, "name": name}
    return {"apiVersion": GATEWAY, "kind": "Gateway", "metadata": meta, "spec": spec}


def route(
    namespace: str,
    name: str,
    parent: str,
    hostnames: Sequence[str] = (),
    *,
    path: str = "/",
    service: str = "echo",
    parent_namespace: str = "",
    version: str = "v1",
    **rule: Any,
) -> Manifest:
    """Return an HTTPRoute of one rule to a Service's port 80; `rule` has more fields of the rule."""
    reference = {"name": parent}
    if parent_namespace:
        reference["namespace"] = parent_namespace
    spec: Manifest = {
        "parentRefs": [reference],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": path}}],
                "backendRefs": [{"name": service, "port": 80}],
                **rule,
            }
        ],
    }
    if hostnames:
        spec["hostnames"] = list(hostnames)
    return manifest(
        f"HTTPRoute {namespace}/{name}", spec, api=f"gateway.networking.k8s.io/{version}"
    )


def edge_proxy(namespace: str, name: str, **spec: Any) -> Manifest:
    """Return an EdgeProxy whose proxies are small and do not linger."""
    quick = {"workers": 1, "shutdown": {"drainTimeout": "2s", "minDrainDuration": "0s"}}
    return manifest(f"EdgeProxy {namespace}/{name}", {**quick, **spec})


def application(world: World, name: str = "app", **labels: str) -> str:
    """Make a namespace with the echo backend in it; return its name. The backend is not waited for."""
    namespace = world.namespace_for_pods(name, **labels)
    world.admin.apply(*echo(namespace))
    return namespace


@contextmanager
def applications(world: World, *names: str) -> Iterator[tuple[str, ...]]:
    """Make such namespaces for a while."""
    made = tuple(application(world, name) for name in names)
    try:
        yield made
    finally:
        for namespace in made:
            world.admin.delete(f"/api/v1/namespaces/{namespace}")


def fleet_of(key: str) -> str:
    """Return the name of the fleet of "<namespace>/<Gateway>" or of a merged class (spec section 2)."""
    return f"edge-{key.replace('/', '-')}-{digest_of(key)}"


# --- what is seen -------------------------------------------------------------------------------


def backend_of(answer: Answer) -> str:
    """Return the namespace of the echo backend that answered."""
    assert answer.status == 200, answer
    return str(json.loads(answer.body)["namespace"])


def conditions_of(found: Any) -> Iterator[dict[str, Any]]:
    """Yield every condition of an object, of its listeners and parents too."""
    status = (found or {}).get("status") or {}
    yield from status.get("conditions") or []
    for part in ("listeners", "parents", "ancestors"):
        for one in status.get(part) or []:
            yield from one.get("conditions") or []


def condition(conditions: Any, type_: str) -> dict[str, Any]:
    """Return the condition of a type, {} when there is none."""
    return next((one for one in conditions or [] if one["type"] == type_), {})


def is_programmed(found: Any) -> bool:
    """Whether a Gateway is programmed, in its present generation."""
    return _holds((found or {}).get("status", {}).get("conditions"), "Programmed", found)


def is_accepted(found: Any) -> bool:
    """Whether every parent of a route has accepted it, in its present generation, with all references."""
    parents = (found or {}).get("status", {}).get("parents") or []
    return bool(parents) and all(
        _holds(one["conditions"], "Accepted", found)
        and _holds(one["conditions"], "ResolvedRefs", found)
        for one in parents
    )


def _holds(conditions: Any, type_: str, found: Any) -> bool:
    one = condition(conditions, type_)
    return one.get("status") == "True" and (
        one.get("observedGeneration") == found["metadata"]["generation"]
    )
