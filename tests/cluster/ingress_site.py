"""A release that serves Ingresses, with an application and classes: what tests of Ingresses in a cluster share.

In: a world, a prefix of the namespace. Out: a `Site` with the Deployments "one" and "two", and manifests of Ingresses.
Must never: hold what only one test needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster.installed import Installed, Manifest, edge_proxy, installed
from cluster.world.manifests import echo
from cluster.world.waiting import wait_until
from cluster.world.world import World
from tests.support.manifest import manifest

NETWORKING = "networking.k8s.io/v1"
NGINX = "nginx.ingress.kubernetes.io"
CONTROLLER = "example.com/ingress-old"


def ingress(
    namespace: str,
    name: str,
    class_name: str,
    host: str,
    service: str = "echo",
    **annotations: str,
) -> Manifest:
    """Return an Ingress for `/` of a host; `annotations` are those of ingress-nginx, with _ for -."""
    notes = {f"{NGINX}/{key.replace('_', '-')}": text for key, text in annotations.items()}
    backend = {"service": {"name": service, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec = {
        "ingressClassName": class_name,
        "rules": [{"host": host, "http": {"paths": [path]}}],
    }
    return manifest(f"Ingress {namespace}/{name}", spec, api=NETWORKING, annotations=notes)


def ingress_class(name: str, controller: str) -> Manifest:
    return manifest(f"IngressClass {name}", {"controller": controller}, api=NETWORKING)


class Site:
    """A release that adopts one class, an application, and a class of another controller."""

    def __init__(self, made: Installed, app: str) -> None:
        self.made, self.world, self.admin, self.app = made, made.world, made.admin, app
        self.adopted, self.other = f"{app}-adopted", f"{app}-other"

    def path(self, name: str = "") -> str:
        return f"/apis/{NETWORKING}/namespaces/{self.app}/ingresses" + (f"/{name}" if name else "")

    def addresses(self, name: str) -> list[str]:
        status = self.admin.get(self.path(name)).get("status") or {}
        found = (status.get("loadBalancer") or {}).get("ingress") or []
        return [one.get("ip") or one["hostname"] for one in found]

    def address(self, name: str) -> str:
        """Return the address of an Ingress once its status has it."""
        wait_until(lambda: self.addresses(name), 120)
        (address,) = self.addresses(name)
        return address

    def events(self, name: str) -> list[Manifest]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.app}/events"
        return [one for one in self.admin.items(path) if one["regarding"].get("name") == name]


@contextmanager
def open_site(world: World, prefix: str, **config: Any) -> Iterator[Site]:
    """Install a release with two proxies for Ingresses; `config` is added to its `ingress`."""
    app = world.namespace_for_pods(prefix)
    # One entry is a controller, the other one a class without an IngressClass.
    settings = {
        "ingress": {
            "enabled": True,
            "controllerName": f"example.com/{app}",
            "adoptClasses": [f"{CONTROLLER}-{app}", f"{app}-plain"],
            "edgeProxy": "ingress",
            **config,
        }
    }
    with installed(world, settings) as made:
        found = Site(made, app)
        world.admin.apply(
            edge_proxy(made.namespace, "ingress", deployment={"replicas": 2}),
            ingress_class(found.adopted, f"{CONTROLLER}-{app}"),
            ingress_class(found.other, "example.com/another"),
            *echo(app, "one"),
            *echo(app, "two"),
        )
        world.workloads.wait_rollout(app, "one")
        world.workloads.wait_rollout(app, "two")
        yield found
        for name in (found.adopted, found.other):
            world.admin.delete(f"/apis/{NETWORKING}/ingressclasses/{name}")
    world.admin.delete(f"/api/v1/namespaces/{app}")
