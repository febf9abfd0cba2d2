"""Ingresses in a cluster: served with status and Events, beside another controller, and changed under load."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster.ingress_site import NETWORKING, Site, ingress, ingress_class, open_site
from cluster.installed import Manifest, edge_proxy, installed
from cluster.world.manifests import echo
from cluster.world.waiting import wait_until
from cluster.world.world import World
from edgefast.translate.fleet.fleet import digest_of

MANY = 1000
_WRITERS = 8
_WRITING_SECONDS = 300
#: What a change of an Ingress replaces: cheaper than applying it.
_CHANGED = ("spec", "metadata")


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[Site]:
    with open_site(world, "ingresses") as found:
        yield found


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


def test_a_thousand_ingresses_change_under_load(site: Site) -> None:
    hosts = [f"m{number}.example" for number in range(MANY)]

    def make(number: int, service: str, **annotations: str) -> Manifest:
        name = f"many-{number}"
        return ingress(site.app, name, site.adopted, hosts[number], service, **annotations)

    def each(work: Callable[[int], object]) -> None:
        with ThreadPoolExecutor(_WRITERS) as pool:
            for _ in pool.map(work, range(MANY), timeout=_WRITING_SECONDS):
                pass

    def change(number: int, service: str, **annotations: str) -> None:
        body = make(number, service, **annotations)
        site.admin.patch(site.path(f"many-{number}"), {key: body[key] for key in _CHANGED})

    def unpublished() -> int:
        found = site.admin.items(site.path())
        mine = [one for one in found if one["metadata"]["name"].startswith("many-")]
        status = [(one.get("status") or {}).get("loadBalancer") or {} for one in mine]
        return MANY - sum(bool(one.get("ingress")) for one in status)

    each(lambda number: site.admin.create(make(number, "one")))
    wait_until(lambda: not unpublished(), 120, every=0.5)
    address = site.address(f"many-{MANY - 1}")
    # The addresses are written when the proxies have the Ingresses.
    assert {site.made.ask(address, host).status for host in hosts[:: MANY // 20]} == {200}
    url = f"http://{address}"
    with site.world.client.load(url, hosts, 150.0, expected=(200,), per_connection=20) as answers:
        answers.wait_more(50)
        each(lambda number: change(number, "two", proxy_body_size="2m"))
        each(lambda number: change(number, "two", proxy_read_timeout=f"{10 + number}"))
        answers.wait_more(MANY)

        def is_moved() -> bool:
            found = (site.made.ask(address, host) for host in hosts[:: MANY // 20])
            return all(json.loads(one.body)["pod"].startswith("two-") for one in found)

        wait_until(is_moved, 60)
    assert not answers.unexpected(200), answers.unexpected(200)
