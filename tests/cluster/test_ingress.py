"""Ingresses in a cluster: served with status and Events, beside another controller, and changed under load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cluster.installed import Installed, Manifest, edge_proxy, installed
from cluster.world.manifests import echo
from cluster.world.waiting import wait_until
from cluster.world.world import World
from edgefast.translate.fleet.fleet import digest_of
from tests.support.manifest import manifest

NETWORKING = "networking.k8s.io/v1"
NGINX = "nginx.ingress.kubernetes.io"
CONTROLLER = "example.com/ingress-old"
MANY = 220
_WRITERS = 4


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


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[Site]:
    app = world.namespace_for_pods("ingresses")
    # One entry is a controller, the other one a class without an IngressClass.
    config = {
        "ingress": {
            "enabled": True,
            "controllerName": f"example.com/{app}",
            "adoptClasses": [f"{CONTROLLER}-{app}", f"{app}-plain"],
            "edgeProxy": "ingress",
        }
    }
    with installed(world, config) as made:
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


def test_an_ingress_is_served_with_its_address_and_an_event(site: Site) -> None:
    wrong = {"auth_url": "http://$host/auth", "proxy_body_size": "1k"}
    site.admin.apply(
        ingress(site.app, "shop", site.adopted, "shop.example", "one"),
        ingress(site.app, "closed", site.adopted, "closed.example", "one", **wrong),
    )
    address = site.address("shop")
    answer = site.made.wait_status(address, "shop.example", path="/cart")
    assert json.loads(answer.body)["path"] == "/cart"
    # The addresses are written when the proxies have the Ingress: the first request is answered.
    site.admin.apply(ingress(site.app, "late", site.adopted, "late.example", "two"))
    assert site.address("late") == address
    assert site.made.ask(address, "late.example").status == 200
    # An access rule that is not served closes the location, and an Event reports it.
    assert site.made.ask(address, "closed.example").status == 503
    wait_until(lambda: site.events("closed"), 60)
    (event,) = [one for one in site.events("closed") if "auth-url" in one["note"]]
    assert event["regarding"]["kind"] == "Ingress" and event["type"] == "Warning"
    assert not site.events("shop")
    # The objects that serve Ingresses are in no API; the fleet has the settings of the EdgeProxy.
    for kind in ("gateways", "httproutes"):
        assert not site.admin.items(
            f"/apis/gateway.networking.k8s.io/v1/namespaces/{site.app}/{kind}"
        )
    fleet = f"edge-ingress-{digest_of('Ingress')}"
    deployment = f"/apis/apps/v1/namespaces/{site.made.namespace}/deployments/{fleet}"
    assert site.admin.get(deployment)["spec"]["replicas"] == 2


def test_an_ingress_of_another_class_is_not_touched(site: Site) -> None:
    theirs = {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}
    site.admin.apply(
        ingress(site.app, "theirs", site.other, "theirs.example", "one"),
        ingress(site.app, "plain", f"{site.app}-plain", "plain.example", "one"),
    )
    site.admin.patch(f"{site.path('theirs')}/status", {"status": theirs})
    address = site.address("plain")
    site.made.wait_status(address, "plain.example")
    assert site.made.ask(address, "theirs.example").status == 404
    # It leaves our class: the address stays for the controller of its new class to replace, as with ingress-nginx.
    site.admin.patch(site.path("plain"), {"spec": {"ingressClassName": site.other}})
    site.made.wait_status(address, "plain.example", 404)
    assert site.addresses("plain") == [address]
    assert site.addresses("theirs") == ["203.0.113.9"]
    # It joins our class, and gets our address.
    site.admin.patch(site.path("theirs"), {"spec": {"ingressClassName": site.adopted}})
    wait_until(lambda: site.addresses("theirs") == [address], 60)
    assert site.made.ask(address, "theirs.example").status == 200


def test_fleets_in_the_namespaces_of_gateways_and_listed_namespaces(world: World) -> None:
    """The roles of a namespace suffice; an Ingress of a namespace that is not listed is not served."""
    app, elsewhere = world.namespace_for_pods("listed"), world.namespace_for_pods("elsewhere")
    controller = f"example.com/{app}"
    watch = {"type": "Namespaces", "namespaces": [app]}
    config = {
        "provider": {"kubernetes": {"deploy": {"type": "GatewayNamespace"}, "watch": watch}},
        "ingress": {"enabled": True, "controllerName": controller, "edgeProxy": "ingress"},
    }
    with installed(world, config) as made:
        found = Site(made, app)
        world.admin.apply(
            edge_proxy(made.namespace, "ingress"),
            ingress_class(app, controller),
            *echo(app),
            *echo(elsewhere),
            ingress(elsewhere, "other", app, "other.example"),
            ingress(app, "shop", app, "shop.example"),
        )
        address = found.address("shop")
        made.wait_status(address, "shop.example")
        assert made.ask(address, "other.example").status == 404
        path = f"/apis/{NETWORKING}/namespaces/{elsewhere}/ingresses/other"
        assert not world.admin.get(path)["status"]["loadBalancer"]
        world.admin.delete(f"/apis/{NETWORKING}/ingressclasses/{app}")
    for namespace in (app, elsewhere):
        world.admin.delete(f"/api/v1/namespaces/{namespace}")


def test_hundreds_of_ingresses_change_under_load(site: Site) -> None:
    hosts = [f"m{number}.example" for number in range(MANY)]

    def change(number: int, service: str, **annotations: str) -> None:
        made = ingress(
            site.app, f"many-{number}", site.adopted, hosts[number], service, **annotations
        )
        site.admin.apply(made)

    def each(work: Any) -> None:
        with ThreadPoolExecutor(_WRITERS) as pool:
            for done in [pool.submit(work, number) for number in range(MANY)]:
                done.result()

    each(lambda number: change(number, "one"))
    address = site.address(f"many-{MANY - 1}")
    wait_until(lambda: all(site.addresses(f"many-{one}") for one in range(0, MANY, 20)), 120)
    for host in hosts:
        site.made.wait_status(address, host)
    url = f"http://{address}"
    with site.world.client.load(url, hosts, 150.0, expected=(200,), per_connection=20) as answers:
        answers.wait_more(50)
        each(lambda number: change(number, "two", proxy_body_size="2m"))
        each(lambda number: change(number, "two", proxy_read_timeout=f"{10 + number}"))
        answers.wait_more(MANY * 2)

        def is_moved() -> bool:
            found = (site.made.ask(address, host) for host in hosts[:: MANY // 20])
            return all(json.loads(one.body)["pod"].startswith("two-") for one in found)

        wait_until(is_moved, 60)
    assert not answers.unexpected(200), answers.unexpected(200)
