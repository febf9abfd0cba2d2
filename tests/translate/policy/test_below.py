"""Policies at Services and Backends: what is sent and translated for them, how far they reach, what they close."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.kube.reflector import Item
from controller.kube.store import Source, Store
from edgefast.api.decode.decode import decode_api_object
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, Work, translate
from tests.support.manifest import manifest
from tests.translate import world
from tests.translate.policy.hierarchy import policy_object
from tests.translate.policy.naive import At, Plain
from tests.translate.policy.test_edge_policies import PLAIN, changed, step, units

pytestmark = pytest.mark.pure

SERVICE: At = ("Service", "other", "")


def endpoints_policy(name: str, *targets: At, timeout: str = "1s", created: str = "") -> Object:
    plain = Plain("BackendTrafficPolicy", name, created, "Inherit", targets, ("endpoints",))
    return policy_object(plain, timeout)


@cache
def many() -> Snapshot:
    """Twenty routes to one Service, and two to another one."""
    others = [
        world.route(at, backendRefs=[{"name": "other", "port": 80}, {"name": "web", "port": 80}])
        for at in (3, 7)
    ]
    there = [world.service("other"), world.endpoints("other", "10.0.0.5")]
    return world.many(20).replace([*others, *there])


def treated(made: Translation) -> dict[str, tuple[str, ...]]:
    """By "route cluster": what its requests are treated by, beside what the rule says."""
    return {
        f"{rule.route} {share.cluster}": share.treatment.traffic
        for fleet in made.ir.fleets
        for host in fleet.virtual_hosts
        for rule in host.rules
        for share in rule.backends
        if share.treatment is not None
    }


def test_it_translates_those_that_send_there_and_an_edit_nobody() -> None:
    before = translate(many(), PLAIN)
    attached = step(many().replace([endpoints_policy("p", SERVICE)]), before)
    assert (attached.work.routes, attached.work.policies) == (2, 1)
    assert treated(attached) == {
        f"default/r{at} service/default/other/80": ("traffic/default/p",) for at in (3, 7)
    }
    edited = step(many().replace([endpoints_policy("p", SERVICE, timeout="2s")]), attached)
    assert edited.work == Work(routes=0, virtual_hosts=0, clusters=0, policies=1)
    assert changed(attached, edited) == {("policy", "traffic/default/p")}
    gone = step(many(), edited)
    assert gone.work.routes == 2 and not treated(gone) and not units(gone)


def test_one_that_nobody_sends_to_is_in_no_fleet_and_has_no_status() -> None:
    alone = many().replace(
        [world.service("unused"), endpoints_policy("p", ("Service", "unused", ""))]
    )
    made = step(alone, translate(many(), PLAIN))
    assert made.work.routes == 0 and not units(made)
    assert not made.statuses.backend_traffic_policies


def test_its_status_follows_the_service() -> None:
    def said(made: Translation) -> list[tuple[str, str, str]]:
        (status,) = made.statuses.backend_traffic_policies.values()
        return [
            (entry.ancestor_ref.kind, one.type, one.reason)
            for entry in status.ancestors
            for one in entry.conditions
            if one.type != "ResolvedRefs"
        ]

    cluster = Settings(standalone=False)
    snapshot = many().replace([endpoints_policy("p", ("Service", "other", "http"))])

    def follow(snapshot: Snapshot, before: Translation | None) -> Translation:
        made = translate(snapshot, cluster, before)
        assert list(made.statuses.items()) == list(translate(snapshot, cluster).statuses.items())
        return made

    made = follow(snapshot, None)
    assert said(made) == [("Service", "Accepted", "TargetNotFound")]
    named = snapshot.replace([world.service("other", name="http")])
    made = follow(named, made)
    assert said(made) == [
        ("Gateway", "Accepted", "Accepted"),
        ("Gateway", "Programmed", "Programmed"),
    ]
    assert len(treated(made)) == 2
    made = follow(named.replace(removed=[ObjectRef("Service", "default", "other")]), made)
    assert said(made) == [("Service", "Accepted", "TargetNotFound")]
    assert said(follow(named, made))[0][0] == "Gateway"


def test_it_holds_for_routes_of_other_namespaces_that_a_grant_lets_in() -> None:
    far: dict[str, Any] = manifest(
        "HTTPRoute else/far",
        {
            "parentRefs": [{"name": "all", "namespace": "default"}],
            "rules": [{"backendRefs": [{"name": "other", "namespace": "default", "port": 80}]}],
        },
    )
    front = world.make("Gateway default/all", {"gatewayClassName": "edge", "listeners": [
            {"name": "a", "port": 90, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}]})  # fmt: skip
    grant = world.make("ReferenceGrant default/g", {"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "else"}],
                 "to": [{"group": "", "kind": "Service"}]}, api="gateway.networking.k8s.io/v1beta1")  # fmt: skip
    policy = endpoints_policy("p", SERVICE)
    made = translate(many().replace([front, grant, world.make(far), policy]), PLAIN)
    assert treated(made)["else/far service/default/other/80"] == ("traffic/default/p",)


@pytest.mark.parametrize(
    ("kind", "group", "closed", "rules"),
    [
        ("BackendTrafficPolicy", "", 2, 0),
        ("BackendTrafficPolicy", "x", 2, 0),
        ("BackendTrafficPolicy", "x.example", 2, 0),
        ("SecurityPolicy", "", 0, 0),  # no SecurityPolicy applies to a Service
    ],
)
def test_one_that_cannot_be_read_closes_the_shares_of_its_service(
    kind: str, group: str, closed: int, rules: int
) -> None:
    aim = {"group": group, "kind": "Service", "name": "other"}
    raw = manifest(f"{kind} default/p", {"targetRefs": [aim], "timeout": 5, "authorization": 5})
    store = Store(lambda: None, lambda ref: None)
    text = msgspec.Raw(json.dumps(raw).encode())
    store.put(Source(released=True), kind, Item("default", "p", "1", text))
    held = store.snapshot()
    closing = [*held.security_policies.values(), *held.backend_traffic_policies.values()]
    made = step(many().replace(closing), translate(many(), PLAIN))
    found = treated(made)
    assert len(found) == closed and set(found.values()) <= {("traffic/default/p#closed",)}
    hosts = made.ir.fleets[0].virtual_hosts
    assert sum(bool(rule.policies) for host in hosts for rule in host.rules) == rules
    assert {one.status for one in units(made).values()} <= {500}


def test_a_selector_beside_targets_closes_the_services_that_it_chooses() -> None:
    raw = manifest(
        "BackendTrafficPolicy default/p",
        {
            "targetRefs": [{"group": "", "kind": "Service", "name": "none"}],
            "targetSelectors": [{"group": "", "kind": "Service", "matchLabels": {}}],
            "loadBalancer": {"type": "Random"},
        },
    )
    made = translate(many().replace([decode_api_object(raw, "BackendTrafficPolicy")]), PLAIN)
    assert set(treated(made).values()) == {("traffic/default/p#closed",)}
    assert len(treated(made)) == 22


def test_in_files_a_mistake_closes_the_shares_and_an_edit_of_a_good_one_what_only_it_names(
    tmp_path: Path,
) -> None:
    def write(*policies: dict[str, Any]) -> None:
        (tmp_path / "p.yaml").write_text("\n---\n".join(json.dumps(one) for one in policies))

    def policy(*services: str, **spec: Any) -> dict[str, Any]:
        targets = [{"group": "", "kind": "Service", "name": one} for one in services]
        return manifest("BackendTrafficPolicy default/p", {"targetRefs": targets, **spec})

    source = FileSource([tmp_path])
    random = {"loadBalancer": {"type": "Random"}}

    def read() -> dict[str, set[tuple[str, ...]]]:
        read = source.read().snapshot
        routes = many().replace(read.backend_traffic_policies.values())
        routes = msgspec.structs.replace(routes, foreign_policies=read.foreign_policies)
        found: dict[str, set[tuple[str, ...]]] = {}
        for name, traffic in treated(translate(routes, PLAIN)).items():
            found.setdefault(name.split("/")[-2], set()).add(traffic)
        return found

    closed = {("traffic/default/p#closed",)}
    write(policy("other", requestBuffer={"limit": "1Ki"}))
    assert read() == {"other": closed}
    write(policy("other", **random))
    assert read() == {"other": {("traffic/default/p",)}}
    write(policy("other", "web", loadBalancer={"type": "Rundom"}))
    assert read() == {"other": {("traffic/default/p",)}, "web": {("traffic/default/p?new#closed",)}}
    write(policy("other", **random), policy("web", **random))  # two of one name
    assert read()["web"] and all("#closed" in one[0] for one in read()["web"])


@pytest.mark.parametrize(
    ("said", "away", "reason"),
    [
        ({"circuitBreaker": {"maxConnections": 5}}, 0, "Overridden"),
        ({"circuitBreaker": {"maxConnections": 5}}, 1, "Programmed"),
        ({"requestBuffer": {"limit": "1Ki"}}, 0, "Programmed"),
    ],
    ids=["of backends", "of another backend", "of requests"],
)
def test_what_is_said_of_backends_alone_is_lost_where_all_of_them_replace_it(
    said: dict[str, Any], away: int, reason: str
) -> None:
    """The rule names it still, because an edit may make it say something of requests."""

    def traffic(name: str, target: dict[str, str], **spec: Any) -> Object:
        raw = manifest(f"BackendTrafficPolicy default/{name}", {"targetRefs": [target], **spec})
        return decode_api_object(raw, "BackendTrafficPolicy")

    front = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
    service = {"group": "", "kind": "Service", "name": "other"}
    shares = [{"name": "other", "port": 80}, {"name": "web", "port": 80, "weight": away}]
    backends = [world.service("other"), world.endpoints("other", "10.0.0.5")]
    there = world.many(1).replace([*backends, world.route(0, backendRefs=shares)])
    replacing = traffic("s", service, mergeType="Replace", circuitBreaker={"maxPendingRequests": 5})
    above = traffic("g", front, circuitBreaker={"maxConnections": 5})
    before = step(there.replace([above, replacing]), translate(there, PLAIN))
    after = step(there.replace([traffic("g", front, **said), replacing]), before)
    assert after.work.routes == 0
    (entry,) = after.statuses.backend_traffic_policies["default", "g"].ancestors
    assert [one.reason for one in entry.conditions if one.type == "Programmed"] == [reason]
    warned = {one.reason for one in after.problems if one.object.name == "g"}
    assert warned == ({reason} if reason == "Overridden" else set())
