"""Store: identity, objects that cannot be read, changes that are held back. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from controller.kube import store as store_module
from controller.kube.change_queue import STAGES
from controller.kube.depth import DEPTH, MARK
from controller.kube.reflector import Item
from controller.kube.store import REGEX_SLICE, Source, Store
from edgefast.api.kinds import EXPERIMENTAL_GROUP
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef


class Told:
    def __init__(self) -> None:
        self.changes = 0
        self.statuses: list[str] = []
        self.store = Store(self.on_change, lambda ref: self.statuses.append(ref.name))
        self.source = Source(released=True)

    def on_change(self) -> None:
        self.changes += 1

    def put(self, kind: str, raw: Any, source: Source | None = None) -> None:
        text = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
        meta = json.loads(text)["metadata"]
        item = Item(
            meta.get("namespace", ""), meta["name"], meta["resourceVersion"], msgspec.Raw(text)
        )
        self.store.put(source or self.source, kind, item)


def route(name: str = "r", version: int = 1, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "resourceVersion": str(version), "uid": "u"}
    return {
        "apiVersion": f"{GATEWAY_GROUP}/v1",
        "kind": "HTTPRoute",
        "metadata": {**meta, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"parentRefs": [{"name": "g"}], "rules": [{}]},
        **more,
    }


REF = ObjectRef("HTTPRoute", "ns", "r", GATEWAY_GROUP)


def test_what_nobody_reads_changes_nothing() -> None:
    told = Told()
    told.put("HTTPRoute", route())
    before = told.store.snapshot()
    assert told.changes == 1 and told.statuses == ["r"]
    new = route(version=2, status={"parents": []})
    new["metadata"]["managedFields"] = [{"manager": "x"}]
    new["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    told.put("HTTPRoute", new)
    assert told.changes == 1 and told.statuses == ["r", "r"]
    assert told.store.snapshot() is before
    present = told.store.present(REF)
    assert present is not None
    assert (present.resource_version, present.generation, present.uid) == ("2", 1, "u")
    assert json.loads(present.status) == {"parents": []}
    told.put("HTTPRoute", {**new, "metadata": {**new["metadata"], "resourceVersion": "3"}})
    assert told.statuses == ["r", "r"]  # the same status
    assert told.store.counts["HTTPRoute"] == 1


def test_statuses_of_experimental_kinds_are_seen() -> None:
    told = Told()
    policy = {
        "apiVersion": f"{EXPERIMENTAL_GROUP}/v1alpha1",
        "kind": "XBackendTrafficPolicy",
        "metadata": {"name": "x", "namespace": "ns", "resourceVersion": "7", "uid": "u"},
        "spec": {"targetRefs": [{"group": "", "kind": "Service", "name": "a"}]},
        "status": {"ancestors": []},
    }
    told.put("XBackendTrafficPolicy", policy)
    ref = ObjectRef("XBackendTrafficPolicy", "ns", "x", EXPERIMENTAL_GROUP)
    present = told.store.present(ref)
    assert present is not None and told.statuses == ["x"]
    assert (present.resource_version, json.loads(present.status)) == ("7", {"ancestors": []})


def test_of_services_and_their_endpoints_only_what_is_read_is_kept() -> None:
    told = Told()
    meta = {"namespace": "ns", "resourceVersion": "1", "uid": "u", "generation": 1}
    label = {"kubernetes.io/service-name": "web"}
    spec: dict[str, Any] = {"ports": [{"port": 80}], "clusterIP": "10.96.0.9"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {**meta, "name": "web"}}
    slice_: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**meta, "name": "web-x", "labels": {**label, "endpoints": "z"}},
        "addressType": "IPv4",
    }
    told.put("Service", {**service, "spec": spec})
    told.put("EndpointSlice", slice_)
    before = told.store.snapshot()
    (found,) = before.slices_by_service["ns", "web"]
    assert found.metadata.labels == label
    assert before.services["ns", "web"].spec.ports[0].port == 80
    assert before.services["ns", "web"].spec.cluster_ip == "10.96.0.9"  # of service-upstream
    # What a controller of endpoints writes at each rollout beside the endpoints.
    noted = {**slice_["metadata"], "annotations": {"last-change": "now"}, "generation": 2}
    told.put("EndpointSlice", {**slice_, "metadata": {**noted, "resourceVersion": "2"}})
    assert told.changes == 2 and told.store.snapshot() is before
    # Further addresses and selectors are for others.
    named = {**service, "metadata": {**meta, "name": "web", "resourceVersion": "2"}}
    told.put(
        "Service", {**named, "spec": {**spec, "externalIPs": ["192.0.2.1"], "selector": {"a": "b"}}}
    )
    assert told.changes == 2 and told.store.snapshot() is before
    moved = {**slice_, "metadata": {**noted, "resourceVersion": "3", "labels": {}}}
    told.put("EndpointSlice", moved)
    assert told.changes == 3 and not told.store.snapshot().slices_by_service


def test_a_change_back_before_the_next_snapshot_is_a_change_of_nothing() -> None:
    told = Told()
    told.put("HTTPRoute", route())
    before = told.store.snapshot()
    told.put("HTTPRoute", route(version=2, spec={"hostnames": ["a.example.com"]}))
    told.put("HTTPRoute", route(version=3))
    assert told.store.snapshot() is before
    told.store.delete(told.source, "HTTPRoute", "ns", "r")
    assert told.store.present(REF) is None
    told.put("HTTPRoute", route(version=4))
    assert told.store.snapshot().http_routes["ns", "r"] is before.http_routes["ns", "r"]
    assert told.store.counts["HTTPRoute"] == 1


@pytest.mark.parametrize(
    "spec",
    [
        {"rules": 7},
        {"rules": [{"matches": [{"path": {"value": []}}]}]},
        {"parentRefs": [{}]},
        "text",
        None,
    ],
    ids=str,
)
def test_a_bad_object_leaves_its_last_good_version_and_the_others(spec: Any) -> None:
    told = Told()
    told.put("HTTPRoute", route())
    good = told.store.snapshot().http_routes["ns", "r"]
    told.put("HTTPRoute", route(version=2, spec=spec))
    told.put("HTTPRoute", route("never", 3, spec=spec))
    told.put("HTTPRoute", route("other", 4))
    snapshot = told.store.snapshot()
    assert {key for key, one in snapshot.http_routes.items() if one.closed is None} == {
        ("ns", "r"),
        ("ns", "other"),
    }
    assert snapshot.http_routes["ns", "r"] is good
    assert told.store.problems.keys() == {("HTTPRoute", "ns", "r"), ("HTTPRoute", "ns", "never")}
    assert told.store.refused["HTTPRoute"] == 2
    told.put("HTTPRoute", route("never", 5))
    told.store.delete(told.source, "HTTPRoute", "ns", "r")
    assert not told.store.problems
    assert told.store.snapshot().http_routes.keys() == {("ns", "never"), ("ns", "other")}


def test_fields_of_a_newer_api_are_passed_over() -> None:
    told = Told()
    spec = {"parentRefs": [{"name": "g", "new": 1}], "newer": {"x": 1}, "rules": [{"newest": [1]}]}
    told.put("HTTPRoute", route(spec=spec))
    found = told.store.snapshot().http_routes["ns", "r"]
    assert found.spec.parent_refs[0].name == "g" and not told.store.problems


def test_a_secret_that_cannot_be_read_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    meta = {"name": "s", "namespace": "ns", "resourceVersion": "1"}
    told.put("Secret", {"metadata": meta, "data": {"password": "hunter2!"}})
    told.put("Secret", {"metadata": {**meta, "name": "t"}, "data": {"password": 31337}})
    assert len(told.store.problems) == 2
    shown = caplog.text + "".join(told.store.problems.values())
    assert "hunter2" not in shown and "31337" not in shown


def test_what_is_nested_too_deep_is_no_value() -> None:
    """Its word stands where any value may stand: it is refused, not taken for one."""
    told = Told()
    text = json.dumps(route(spec={"parentRefs": [{"name": "g"}], "newer": "DEEP"}))
    told.put("HTTPRoute", text.encode().replace(b'"DEEP"', MARK))
    assert told.store.snapshot().http_routes["ns", "r"].closed is not None
    assert told.store.problems["HTTPRoute", "ns", "r"] == "HTTPRoute:  TooLong"


def test_what_a_decoder_takes_and_nobody_can_render_is_refused() -> None:
    told = Told()
    for number, levels in enumerate((DEPTH // 2, DEPTH)):
        affinity = {"nodeAffinity": "DEEP"}
        meta = {"name": f"p{number}", "namespace": "ns", "resourceVersion": "1", "uid": "u"}
        plain = {"metadata": meta, "spec": {"deployment": {"affinity": affinity}}}
        deep = b'{"a":' * levels + b"1" + b"}" * levels
        told.put("EdgeProxy", json.dumps(plain).encode().replace(b'"DEEP"', deep))
    assert [one.metadata.name for one in told.store.snapshot().edge_proxies.values()] == ["p0"]
    assert told.store.problems == {("EdgeProxy", "ns", "p1"): "EdgeProxy:  TooLong"}


def test_the_place_of_a_route_that_cannot_be_read_is_closed() -> None:
    """Only while it has no good version; a status can be written all the same."""
    told = Told()
    broken = {"parentRefs": [{"name": "g"}], "hostnames": ["a.example"], "rules": [{"matches": 1}]}
    told.put("HTTPRoute", route(spec=broken))
    first = told.store.snapshot().http_routes["ns", "r"]
    assert first.closed is not None and first.closed.path == "spec.rules[0].matches"
    assert (first.spec.hostnames, first.spec.parent_refs[0].name) == (("a.example",), "g")
    assert (first.metadata.uid, first.metadata.generation) == ("u", 1)
    assert first.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    present = told.store.present(REF)
    assert present is not None and present.resource_version == "1"
    told.put("HTTPRoute", route(version=2, spec={**broken, "hostnames": ["b.example"]}))
    assert told.store.snapshot().http_routes["ns", "r"].spec.hostnames == ("b.example",)
    assert told.store.problems and told.store.counts["HTTPRoute"] == 1
    told.put("HTTPRoute", route(version=3))
    good = told.store.snapshot().http_routes["ns", "r"]
    assert good.closed is None and not told.store.problems
    told.put("HTTPRoute", route(version=4, spec=broken))
    assert told.store.snapshot().http_routes["ns", "r"] is good
    told.store.delete(told.source, "HTTPRoute", "ns", "r")
    assert not told.store.snapshot().http_routes and not told.store.problems


@pytest.mark.parametrize("kind", ["Gateway", "ListenerSet"])
def test_the_places_of_listeners_that_cannot_be_read_are_closed(kind: str) -> None:
    """Only while there is no good version; a status can be written all the same."""
    told = Told()
    listener = {"name": "a", "port": 80, "protocol": "HTTP", "hostname": "a.example"}
    owner: dict[str, Any] = (
        {"gatewayClassName": "c"} if kind == "Gateway" else {"parentRef": {"name": "g"}}
    )

    def put(version: int, **more: Any) -> None:
        meta = {"name": "r", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
        told.put(kind, {"metadata": meta, "spec": {**owner, "listeners": [{**listener, **more}]}})

    def found() -> Any:
        return told.store.snapshot().get(ObjectRef(kind, "ns", "r"))

    put(1, allowedRoutes=7)
    assert found().closed is not None
    assert (found().spec.listeners[0].hostname, found().metadata.uid) == ("a.example", "u")
    assert told.store.present(ObjectRef(kind, "ns", "r")) is not None
    put(2)
    good = found()
    assert good.closed is None and not told.store.problems
    put(3, allowedRoutes=7)
    assert found() is good and told.store.problems


def test_a_place_that_cannot_be_told_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours there costs that route alone."""
    monkeypatch.setattr(store_module, "close_api_object", lambda *_: 1 / 0)
    told = Told()
    told.put("HTTPRoute", route(spec={"parentRefs": [{"name": "g"}], "rules": 7}))
    told.put("HTTPRoute", route("good"))
    assert [one.metadata.name for one in told.store.snapshot().http_routes.values()] == ["good"]
    assert ("HTTPRoute", "ns", "r") in told.store.problems


def test_a_source_joins_as_a_whole() -> None:
    told = Told()
    joining = Source()
    told.put("HTTPRoute", route("a"), joining)
    told.put("HTTPRoute", route("b", 2), joining)
    told.store.delete(joining, "HTTPRoute", "ns", "b")
    assert not told.changes and not told.store.snapshot().http_routes
    told.store.release(joining)
    assert told.changes == 1
    assert told.store.snapshot().http_routes.keys() == {("ns", "a")}
    told.put("HTTPRoute", route("c", 3), joining)
    assert told.changes == 2 and ("ns", "c") in told.store.snapshot().http_routes


def test_a_namespace_that_was_only_implied_is_counted_when_it_comes() -> None:
    told = Told()
    told.put("HTTPRoute", route())
    assert ("", "ns") in told.store.snapshot().namespaces
    meta = {"name": "ns", "uid": "u", "resourceVersion": "1"}
    told.put("Namespace", {"metadata": meta})
    told.put("Namespace", {"metadata": {**meta, "resourceVersion": "2"}})
    assert told.store.counts["Namespace"] == 1 and told.changes == 2
    told.put("Namespace", {"metadata": {**meta, "labels": {"a": "b"}}})
    assert told.store.snapshot().namespaces["", "ns"].metadata.labels["a"] == "b"
    told.store.delete(told.source, "Namespace", "", "ns")
    assert "a" not in told.store.snapshot().namespaces["", "ns"].metadata.labels
    assert told.store.counts["Namespace"] == 0


def test_twenty_thousand_objects() -> None:
    told = Told()
    for at in range(20_000):
        told.put("HTTPRoute", route(f"r{at}", at + 1))
    assert len(told.store.snapshot().http_routes) == told.store.counts["HTTPRoute"] == 20_000


def heavy(namespace: str, name: str, version: int = 1, regexes: int = 40) -> dict[str, Any]:
    """Return a route that matches by regular expressions."""
    made = route(name, version)
    made["metadata"]["namespace"] = namespace
    path = {"type": "RegularExpression", "value": f"/v{version}/.*"}
    made["spec"]["rules"] = [{"matches": [{"path": path}] * regexes}]
    return made


def served(told: Told) -> list[tuple[str, str, str]]:
    """Return namespace, name and version of the routes that a snapshot has."""
    return [
        (*key, one.spec.rules[0].matches[0].path.value[1:3])
        for key, one in sorted(told.store.snapshot().http_routes.items())
    ]


def test_routes_that_cost_much_are_taken_in_by_turns_of_their_namespaces() -> None:
    told = Told()
    for at in range(4):
        told.put("HTTPRoute", heavy("a", f"r{at}"))
    assert len(served(told)) == 4  # the first snapshot has all there is
    told.store.renew()
    for at in range(4):
        told.put("HTTPRoute", heavy("a", f"r{at}", 2))
    told.put("HTTPRoute", heavy("b", "r", 2))
    told.put("HTTPRoute", route("plain"))  # has no cost, and does not wait
    assert REGEX_SLICE < 80
    first = served(told)
    assert ("b", "r", "v2") in first and ("a", "r0", "v2") in first
    assert [one for one in first if one[2] == "v1"] == [("a", f"r{at}", "v1") for at in (1, 2, 3)]
    assert any(key == ("ns", "plain") for key in told.store.snapshot().http_routes)
    assert (
        served(told) == first and told.store.deferred == 3
    )  # no further route before the next run
    # A newer version replaces a waiting one, and a deletion ends the waiting.
    told.put("HTTPRoute", heavy("a", "r1", 3))
    told.store.delete(told.source, "HTTPRoute", "a", "r2")
    changes = told.changes
    told.store.renew()
    assert told.changes == changes + 1  # another run is asked for
    assert served(told)[:3] == [("a", "r0", "v2"), ("a", "r1", "v3"), ("a", "r3", "v2")]
    changes = told.changes
    told.store.renew()
    assert told.changes == changes and not told.store.deferred


EDGE = "gateway.edge.io/v1alpha1"
POLICY = ("SecurityPolicy", "ns", "p")


def other(
    kind: str, namespace: str, name: str, version: str, spec: Any = None, **more: Any
) -> dict[str, Any]:
    meta = {"namespace": namespace} if namespace else {}
    meta |= {"name": name, "resourceVersion": "1", "uid": "u", **more}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec or {}}


def security_policy(namespace: str, kind: str = "HTTPRoute") -> dict[str, Any]:
    target = {"group": GATEWAY_GROUP, "kind": kind, "name": "r"}
    spec = {"targetRefs": [target], "authorization": {"defaultAction": "Deny"}}
    return other("SecurityPolicy", namespace, "p", EDGE, spec)


def attached(name: str, version: int = 1, regexes: int = 128) -> dict[str, Any]:
    """Return a route of a Gateway in the namespace infra, with too many regular expressions for a slice."""
    made = heavy("ns", name, version, regexes)
    made["spec"]["parentRefs"] = [{"name": "g", "namespace": "infra"}]
    return made


def before_and_after(told: Told, seen: Callable[[Snapshot], object]) -> list[tuple[int, bool]]:
    """Return, for each slice, how many routes of ns are in their new version, and whether the change is seen."""
    found = []
    for _ in range(5):
        snapshot = told.store.snapshot()
        new = [one for one in served(told) if one[0] == "ns" and one[2] == "v2"]
        found.append((len(new), bool(seen(snapshot))))
        told.store.renew()
    return found


CLASS = "edge"
GRANT = {
    "from": [{"group": GATEWAY_GROUP, "kind": "HTTPRoute", "namespace": "ns"}],
    "to": [{"group": "", "kind": "Service"}],
}
LISTENER = {"name": "http", "port": 80, "protocol": "HTTP"}


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (None, lambda one: ("ns", "p") not in one.security_policies),
        (
            security_policy("ns", "Gateway"),
            lambda one: one.security_policies["ns", "p"].spec.target_refs[0].kind == "Gateway",
        ),
        (security_policy("infra", "Gateway"), lambda one: ("infra", "p") in one.security_policies),
        (
            other(
                "Gateway",
                "infra",
                "g",
                f"{GATEWAY_GROUP}/v1",
                {"gatewayClassName": CLASS, "listeners": [LISTENER]},
            ),
            lambda one: one.gateways,
        ),
        (
            other("ReferenceGrant", "apps", "g", f"{GATEWAY_GROUP}/v1beta1", GRANT),
            lambda one: one.reference_grants,
        ),
        (
            other("Namespace", "", "ns", "v1", labels={"public": "yes"}),
            lambda one: "public" in one.namespaces["", "ns"].metadata.labels,
        ),
        (
            other("GatewayClass", "", CLASS, f"{GATEWAY_GROUP}/v1", {"controllerName": "x/y"}),
            lambda one: one.gateway_classes,
        ),
        (route("light", 2), lambda one: ("ns", "light") in one.http_routes),
    ],
    ids=["policy", "changed", "infra-policy", "gateway", "grant", "namespace", "class", "route"],
)
def test_no_change_overtakes_the_routes_that_it_depends_on(
    raw: dict[str, Any] | None, seen: Callable[[Snapshot], object]
) -> None:
    """A route drops a path, then the policy that protected it leaves: never the old path without the policy."""
    told = Told()
    for name in "abr":
        told.put("HTTPRoute", attached(name))
    told.put("SecurityPolicy", security_policy("ns"))
    told.store.snapshot()
    told.store.renew()
    for name in "abr":
        told.put("HTTPRoute", attached(name, 2))
    if raw is None:
        told.store.delete(told.source, *POLICY)
        told.store.delete(told.source, *POLICY)
        assert told.store.counts["SecurityPolicy"] == 0
    else:
        told.put(raw["kind"], raw)
    told.put("SecurityPolicy", security_policy("apart"))
    # It depends on none of them; on a GatewayClass everything does.
    apart = ("apart", "p") in told.store.snapshot().security_policies
    assert apart == (raw is None or raw["kind"] != "GatewayClass")
    assert before_and_after(told, seen) == [(1, False), (2, False), (3, True), (3, True), (3, True)]
    assert not told.store.deferred and not told.store._turns


def test_a_route_that_changes_again_stays_behind_the_policy_that_it_relies_on() -> None:
    told = Told()
    told.put("HTTPRoute", attached("a"))
    told.put("HTTPRoute", attached("r"))
    told.store.snapshot()
    told.store.renew()
    told.put("HTTPRoute", attached("a", 2))
    told.put("HTTPRoute", attached("r", 2))
    told.put("SecurityPolicy", security_policy("ns"))
    told.put("HTTPRoute", attached("r", 3))
    found = []
    for _ in range(3):
        (_, last) = served(told)
        found.append((last[2], len(told.store.snapshot().security_policies)))
        told.store.renew()
    assert found == [("v1", 0), ("v2", 1), ("v3", 1)]


def test_addresses_and_what_is_read_for_an_object_in_force_wait_for_no_route() -> None:
    told = Told()
    told.store.renew()
    for name in "ab":
        told.put("HTTPRoute", attached(name))
    told.put("Service", other("Service", "ns", "web", "v1", {"ports": [{"port": 80}]}))
    told.put("ConfigMap", {**other("ConfigMap", "ns", "ca", "v1"), "data": {"a": "1"}})
    snapshot = told.store.snapshot()
    assert snapshot.services and snapshot.config_maps and len(snapshot.http_routes) == 1
    told.put("ConfigMap", {**other("ConfigMap", "ns", "ca", "v1"), "data": {"a": "2"}})
    assert told.store.snapshot().config_maps["ns", "ca"].data == {"a": "1"}
    told.store.renew()
    assert told.store.snapshot().config_maps["ns", "ca"].data == {"a": "2"}


def test_routes_that_join_do_so_after_their_policies() -> None:
    told, routes, policies = Told(), Source(), Source()
    told.store.renew()
    for name in "ab":
        told.put("HTTPRoute", attached(name), routes)
    told.put("SecurityPolicy", security_policy("ns"), policies)
    told.store.release(routes, policies)
    snapshot = told.store.snapshot()
    assert len(snapshot.http_routes) == 1 and snapshot.security_policies


def test_changes_that_wait_are_bounded_and_end_in_the_newest_state() -> None:
    told = Told()
    told.store.renew()
    told.put("HTTPRoute", attached("a"))
    for version in range(2, STAGES + 10):
        told.put("HTTPRoute", attached("r", version))
        policy = security_policy("ns")
        policy["metadata"]["labels"] = {"at": str(version)}
        told.put("SecurityPolicy", policy)
        assert told.store.deferred <= STAGES
    for _ in range(STAGES):
        told.store.snapshot()
        told.store.renew()
    snapshot = told.store.snapshot()
    assert not told.store._turns and not told.store._turns.waiting
    assert snapshot.security_policies["ns", "p"].metadata.labels["at"] == str(STAGES + 9)
    path = snapshot.http_routes["ns", "r"].spec.rules[0].matches[0].path.value
    assert path == f"/v{STAGES + 9}/.*"


def test_a_route_that_costs_more_than_a_slice_has_its_turn() -> None:
    told = Told()
    told.store.renew()
    told.put("HTTPRoute", heavy("a", "r", regexes=REGEX_SLICE + 1))
    told.put("HTTPRoute", heavy("a", "s"))
    assert [one[1] for one in served(told)] == ["r"]
    told.store.renew()
    assert [one[1] for one in served(told)] == ["r", "s"]
