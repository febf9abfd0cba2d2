"""What sentences of the Gateway API's own comments say and the official suite leaves out, asked of one release as its users would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from cluster.installed import (
    GATEWAY,
    Installed,
    Manifest,
    application,
    backend_of,
    condition,
    conditions_of,
    edge_proxy,
    gateway,
    installed,
    listener,
    route,
)
from cluster.world.api import ApiError
from cluster.world.world import World
from tests.support.manifest import manifest

HOSTS = {"exact": "a.b.example.com", "inner": "*.b.example.com", "outer": "*.example.com"}


class Site:
    """A release, a Gateway "gw" with three listeners on port 80 and one on 8080, and two namespaces with backends."""

    def __init__(self, made: Installed, app: str, other: str) -> None:
        self.made, self.admin, self.app, self.other = made, made.admin, app, other
        ports = [listener(name, 80, host) for name, host in HOSTS.items()]
        shown = gateway(app, "gw", made.namespace, *ports, listener("alt", 8080))
        selector = {"matchLabels": {"kubernetes.io/metadata.name": other}}
        shown["spec"]["allowedListeners"] = {
            "namespaces": {"from": "Selector", "selector": selector}
        }
        self.gateway = shown
        self.admin.apply(
            edge_proxy(made.namespace, "edge"),
            made.gateway_class(made.namespace, (made.namespace, "edge")),
            shown,
        )
        self.address = made.address(app, "gw")

    def path(self, kind: str, name: str, namespace: str = "") -> str:
        """Return the path of an object of the Gateway API."""
        return f"/apis/{GATEWAY}/namespaces/{namespace or self.app}/{kind}/{name}"

    def attached(self, wanted: dict[str, int]) -> Manifest:
        """Wait until listeners of the Gateway have these numbers of routes; return the Gateway."""
        found: Manifest = self.admin.wait(
            self.path("gateways", "gw"), lambda one: wanted.items() <= _numbers(one).items()
        )
        return found

    def sets(self, wanted: int) -> None:
        """Wait until the Gateway counts these ListenerSets."""
        self.admin.wait(
            self.path("gateways", "gw"),
            lambda one: one["status"].get("attachedListenerSets", 0) == wanted,
        )

    def location(self, host: str, path: str = "/", port: int = 80) -> str:
        """Return where a request is sent to, "" when it is not."""
        answer = self.made.ask(self.address, host, path, port=port)
        return answer.headers.get("location", "")


def _numbers(one: Manifest) -> dict[str, int]:
    return {found["name"]: found["attachedRoutes"] for found in one["status"]["listeners"]}


def _answering(
    site: Site, name: str, parents: Sequence[Manifest], hosts: Sequence[str] = ()
) -> Manifest:
    """Return a route that redirects to a host of its own name."""
    made = route(site.app, name, "gw", hosts)
    made["spec"]["parentRefs"] = list(parents)
    to = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{name}.test", "port": 80}}
    made["spec"]["rules"] = [{"filters": [to]}]
    return made


def _is_current(one: Any) -> bool:
    """Tell whether every condition is of the object's present generation."""
    found = list(conditions_of(one))
    generation = one["metadata"]["generation"]
    return bool(found) and all(has.get("observedGeneration") == generation for has in found)


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[Site]:
    """The release and its Gateway, programmed."""
    with installed(world) as made:
        namespaces = [application(world, name) for name in ("sweep", "other")]
        try:
            yield Site(made, *namespaces)
        finally:
            for one in namespaces:
                world.admin.delete(f"/api/v1/namespaces/{one}")


def test_listeners_of_one_port_whose_hostnames_overlap(site: Site) -> None:
    """Each request is of the most specific listener alone; a route of the whole Gateway is on all of them."""
    everywhere = _answering(site, "everywhere", [{"name": "gw"}], ["*.b.example.com"])
    outer = _answering(site, "outer", [{"name": "gw", "sectionName": "outer"}])
    twice = _answering(
        site,
        "twice",
        [{"name": "gw", "sectionName": "inner"}, {"name": "gw", "sectionName": "exact"}],
    )
    site.admin.apply(everywhere, outer, twice)
    for one in ("everywhere", "outer", "twice"):
        site.made.wait_route(site.app, one)
    found = site.attached({"exact": 2, "inner": 2, "outer": 2, "alt": 1})
    assert _is_current(found)
    site.made.wait_status(site.address, "x.example.com", 302)
    for host, path in (
        ("a.b.example.com", "/"),
        ("A.B.Example.com:80", "/x"),
        ("c.b.example.com", "/"),
    ):
        # The route's own wildcard before no hostname, on the exact listener too.
        assert site.location(host, path) == f"http://everywhere.test{path}", host
    assert site.location("x.example.com") == "http://outer.test/"
    assert site.made.ask(site.address, "example.com").status == 404
    assert site.made.ask(site.address, "a.example.org").status == 404
    site.admin.remove(everywhere)
    site.made.wait_status(site.address, "c.b.example.com", 404, port=8080)
    for host in ("a.b.example.com", "c.b.example.com"):
        assert site.location(host) == "http://twice.test/"
    # One parentRef goes, and what was said of it; the listener has no route, and the wider one's are not for it.
    twice["spec"]["parentRefs"].pop()
    site.admin.apply(twice)
    site.made.wait_status(site.address, "a.b.example.com", 404)
    site.attached({"exact": 0, "inner": 1, "outer": 1, "alt": 0})
    path = site.path("httproutes", "twice")
    parents = site.admin.wait(path, lambda one: len(one["status"]["parents"]) == 1)["status"]
    assert parents["parents"][0]["parentRef"]["sectionName"] == "inner"
    site.admin.remove(outer, twice)
    site.attached({"exact": 0, "inner": 0, "outer": 0, "alt": 0})


def test_section_and_port_must_both_be_right(site: Site) -> None:
    """And a reference that is wrong does not harm one of the same route that is right."""
    pairs = [{"name": "gw", "sectionName": "alt", "port": 8080}]
    pairs.append({"name": "gw", "sectionName": "outer", "port": 8080})
    site.admin.apply(_answering(site, "pair", pairs))

    def told(route: Manifest) -> dict[str, str]:
        parents = (route.get("status") or {}).get("parents") or ()
        accepted = {
            one["parentRef"]["sectionName"]: condition(one["conditions"], "Accepted")
            for one in parents
        }
        return {name: one.get("reason", "") for name, one in accepted.items()}

    # Bad news first: good news waits for the proxies.
    both = {"alt": "Accepted", "outer": "NoMatchingParent"}
    site.admin.wait(site.path("httproutes", "pair"), lambda one: told(one) == both)
    site.made.wait_status(site.address, "any.example.com", 302, port=8080)
    assert site.made.ask(site.address, "any.example.com").status == 404
    site.admin.delete(site.path("httproutes", "pair"))
    site.made.wait_status(site.address, "any.example.com", 404, port=8080)


def test_entries_of_other_controllers_stay_and_ours_go(site: Site) -> None:
    """Whether the route changes, its parent is exchanged for one that is not there, or comes back."""
    shared = _answering(site, "shared", [{"name": "gw"}], ["shared.example.com"])
    site.admin.apply(shared)
    site.made.wait_route(site.app, "shared")
    path = site.path("httproutes", "shared")
    foreign = {
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"},
        "controllerName": "example.com/other",
        "conditions": [
            {
                "type": "Accepted",
                "status": "False",
                "reason": "Busy",
                "message": "of another",
                "lastTransitionTime": "2020-01-01T00:00:00Z",
            }
        ],
    }
    own = site.admin.get(path)["status"]["parents"]
    site.admin.patch(f"{path}/status", {"status": {"parents": [foreign, *own]}})
    for parent, wanted in (("nothing", 1), ("gw", 2), ("gw", 2)):
        shared["spec"]["parentRefs"] = [{"name": parent}]
        shared["spec"]["hostnames"].append(f"n{len(shared['spec']['hostnames'])}.example.com")
        site.admin.apply(shared)
        found = site.admin.wait(
            path,
            lambda one, wanted=wanted: (
                len(one["status"]["parents"]) == wanted
                and all(
                    has["observedGeneration"] == one["metadata"]["generation"]
                    for entry in one["status"]["parents"]
                    if entry["controllerName"] == site.made.controller
                    for has in entry["conditions"]
                )
            ),
        )
        assert foreign in found["status"]["parents"]
    site.admin.delete(path)


def test_a_grant_that_is_taken_back(site: Site) -> None:
    """500 at once and said, for backends and for nothing else of the rule; given again, served again."""
    grant = manifest(
        f"ReferenceGrant {site.other}/routes",
        {
            "from": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": site.app}
            ],
            "to": [{"group": "", "kind": "Service", "name": "echo"}],
        },
        api="gateway.networking.k8s.io/v1beta1",
    )
    far = route(site.app, "far", "gw", ["far.example.com"])
    mirror = {"backendRef": {"name": "nothing", "port": 80}}
    far["spec"]["rules"] = [
        {"backendRefs": [{"name": "echo", "namespace": site.other, "port": 80}]},
        {
            "matches": [{"path": {"value": "/near"}}],
            "filters": [{"type": "RequestMirror", "requestMirror": mirror}],
            "backendRefs": [
                {"name": "echo", "port": 80},
                {"name": "gone", "port": 80, "weight": 0},
            ],
            "timeouts": {"request": "0s", "backendRequest": "0s"},
        },
        {
            "matches": [{"path": {"value": "/nobody"}}],
            "backendRefs": [{"name": "echo", "port": 80, "weight": 0}],
        },
    ]
    site.admin.apply(grant, far)
    for _ in range(2):
        answer = site.made.wait_status(site.address, "far.example.com")
        assert backend_of(answer) == site.other
        # A mirror to nothing and a share of nothing cost no request, and are told.
        assert (
            backend_of(site.made.wait_status(site.address, "far.example.com", path="/near"))
            == site.app
        )
        assert site.made.ask(site.address, "far.example.com", "/nobody").status == 500
        unresolved = {"type": "ResolvedRefs", "status": "False", "reason": "BackendNotFound"}
        site.made.wait_condition("httproutes", site.app, "far", unresolved)
        site.admin.remove(grant)
        site.made.wait_status(site.address, "far.example.com", 500)
        refused = {"type": "ResolvedRefs", "status": "False", "reason": "RefNotPermitted"}
        site.made.wait_condition("httproutes", site.app, "far", refused)
        assert site.made.ask(site.address, "far.example.com", "/near").status == 200
        site.admin.apply(grant)
    site.admin.remove(grant, far)


def test_a_listener_set_of_another_namespace(site: Site) -> None:
    """Its routes are of its namespace; the Gateway's own come first; forbidden, it is gone at once and told."""
    spec = {
        "parentRef": {"name": "gw", "namespace": site.app},
        "listeners": [
            listener("mine", 80, "set.example.net"),
            listener("taken", 80, HOSTS["inner"]),
        ],
    }
    meta = {"namespace": site.other, "name": "more"}
    more = {"apiVersion": GATEWAY, "kind": "ListenerSet", "metadata": meta, "spec": spec}
    parent = {"kind": "ListenerSet", "name": "more", "namespace": site.other}
    inside = route(site.other, "inside", "more")
    inside["spec"]["parentRefs"] = [parent]
    site.admin.apply(more, inside, _answering(site, "outside", [parent]))
    site.made.wait_route(site.other, "inside")
    assert backend_of(site.made.wait_status(site.address, "set.example.net")) == site.other
    assert site.made.ask(site.address, "x.b.example.com").status == 404
    refused = {"type": "Accepted", "reason": "NotAllowedByListeners"}
    site.made.wait_condition("httproutes", site.app, "outside", refused)
    conflict = {"type": "Conflicted", "reason": "HostnameConflict"}
    site.made.wait_condition("listenersets", site.other, "more", conflict)
    path = site.path("listenersets", "more", site.other)
    found = site.admin.wait(path, lambda one: _numbers(one) == {"mine": 1, "taken": 1})
    assert _is_current(found)
    assert "inner" not in str(found["status"]), "names of the Gateway's listeners are its own"
    site.sets(1)
    closed = {
        **site.gateway,
        "spec": {**site.gateway["spec"], "allowedListeners": {"namespaces": {"from": "None"}}},
    }
    site.admin.apply(closed)
    site.made.wait_status(site.address, "set.example.net", 404)
    site.made.wait_condition(
        "listenersets", site.other, "more", {"type": "Accepted", "reason": "NotAllowed"}
    )
    lost = {"type": "Accepted", "reason": "NoMatchingParent"}
    site.made.wait_condition("httproutes", site.other, "inside", lost)
    site.sets(0)
    site.admin.apply(site.gateway)
    site.made.wait_status(site.address, "set.example.net")
    site.admin.remove(more, inside)
    site.admin.delete(site.path("httproutes", "outside"))
    site.made.wait_status(site.address, "set.example.net", 404)


def test_conflicting_listeners_count_their_routes(site: Site) -> None:
    """None of two that conflict wins; the rest is served, and both are named to the Gateway's owner."""
    secure = listener("secure", 90) | {
        "protocol": "HTTPS",
        "tls": {"certificateRefs": [{"name": "none"}]},
    }
    site.admin.apply(
        gateway(site.app, "torn", site.made.namespace, listener(), listener("plain", 90), secure),
        _answering(site, "whole", [{"name": "torn"}]),
    )
    address = site.made.address(site.app, "torn")
    site.made.wait_route(site.app, "whole")
    site.made.wait_status(address, "any.example.com", 302)
    found = site.admin.wait(
        site.path("gateways", "torn"),
        lambda one: _numbers(one) == {"http": 1, "plain": 1, "secure": 1},
    )
    assert _is_current(found)
    for one in found["status"]["listeners"]:
        told = condition(one["conditions"], "Conflicted")
        assert told.get("reason", "") == ("" if one["name"] == "http" else "ProtocolConflict")
    accepted = condition(found["status"]["conditions"], "Accepted")
    assert (accepted["status"], accepted["reason"]) == ("True", "ListenersNotValid")
    assert "conflicted: plain, secure; served: http" in accepted["message"]
    with pytest.raises(OSError):
        site.made.ask(address, "any.example.com", port=90, seconds=1.0)
    site.admin.delete(site.path("httproutes", "whole"))
    site.admin.delete(site.path("gateways", "torn"))


def test_a_policy_of_one_port(site: Site) -> None:
    """TLS is spoken to the port that is named and to no other; a name that is no port may mean any of them: none is spoken to."""
    ports = [
        {"name": name, "port": number, "targetPort": "http"}
        for name, number in (("a", 81), ("b", 82))
    ]
    meta = {"namespace": site.app, "name": "ports"}
    service = {"selector": {"app": "echo"}, "ports": ports}
    target = {"group": "", "kind": "Service", "name": "ports", "sectionName": "c"}
    policy: Manifest = manifest(
        f"BackendTLSPolicy {site.app}/port",
        {
            "targetRefs": [target],
            "validation": {"hostname": "a.test", "wellKnownCACertificates": "System"},
        },
    )
    both = route(site.app, "both", "gw", ["ports.example.com"])
    both["spec"]["rules"] = [
        {
            "matches": [{"path": {"value": f"/{one['name']}"}}],
            "backendRefs": [{"name": "ports", "port": one["port"]}],
        }
        for one in ports
    ]
    site.admin.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service}, policy, both
    )
    missing = {"type": "Accepted", "status": "False", "reason": "TargetNotFound"}
    site.made.wait_condition("backendtlspolicies", site.app, "port", missing)
    for path in ("/a", "/b"):
        site.made.wait_status(site.address, "ports.example.com", 500, path)
    target["sectionName"] = "b"
    site.admin.apply(policy)
    site.made.wait_status(site.address, "ports.example.com", 503, "/b")  # it speaks no TLS
    site.made.wait_status(site.address, "ports.example.com", 200, "/a")
    accepted = {"type": "Accepted", "status": "True"}
    found = site.made.wait_condition("backendtlspolicies", site.app, "port", accepted)
    assert _is_current(found)
    site.admin.remove(policy)
    site.made.wait_status(site.address, "ports.example.com", 200, "/b")
    site.admin.remove(both)


def test_what_the_api_server_does_not_let_in(site: Site) -> None:
    """Rules of one name, a redirect beside a rewrite, two references to one listener."""
    named = _answering(site, "named", [{"name": "gw"}])
    named["spec"]["rules"] = [{"name": "one", **named["spec"]["rules"][0]}] * 2
    mixed = _answering(site, "mixed", [{"name": "gw"}])
    rewrite = {"type": "URLRewrite", "urlRewrite": {"hostname": "a.test"}}
    mixed["spec"]["rules"][0]["filters"].append(rewrite)
    twice = _answering(site, "again", [{"name": "gw", "sectionName": "alt"}] * 2)
    for one in (named, mixed, twice):
        with pytest.raises(ApiError) as told:
            site.admin.apply(one)
        assert told.value.status == 422, one
