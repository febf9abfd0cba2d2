"""Policies in a translation: a content costs one resource, a shape its readers; fleets have what their rules name and no more."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgefast import ir
from edgefast.api.decode.decode import decode_api_object
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.table.compile import compile_fleet
from edgefast.table.shards import diff
from edgefast.translate import Settings, Translation, Work, translate
from tests.support.manifest import manifest
from tests.translate import world
from tests.translate.policy.hierarchy import GROUP, base, policy_object
from tests.translate.policy.naive import At, Plain
from tests.translate.test_incremental import _same

pytestmark = pytest.mark.pure

PLAIN = Settings()


def security(name: str, *targets: At, timeout: str = "1s", features: tuple[str, ...] = ("authorization", "extAuth"),
             merge: str = "Inherit", created: str = "") -> Object:  # fmt: skip
    plain = Plain("SecurityPolicy", name, created, merge, targets, features)
    return policy_object(plain, timeout)


def traffic(name: str, *targets: At, timeout: str = "1s") -> Object:
    plain = Plain("BackendTrafficPolicy", name, "", "Inherit", targets, ("traffic",))
    return policy_object(plain, timeout)


def step(snapshot: Snapshot, before: Translation) -> Translation:
    made = translate(snapshot, PLAIN, before)
    _same(made, translate(snapshot, PLAIN))
    return made


def units(made: Translation, fleet: int = 0) -> dict[str, ir.PolicyUnit]:
    return {one.name: one for one in made.ir.fleets[fleet].policies}


def changed(before: Translation, after: Translation) -> set[tuple[str, str]]:
    """Return the resources of the data plane that are sent; none may be taken away."""
    old = compile_fleet(before.ir.fleets[0])
    delta = diff(old, compile_fleet(after.ir.fleets[0], old))
    assert not delta.remove
    return {(one.type, one.name) for one in delta.put}


@pytest.mark.parametrize("target", [("Gateway", "gw", ""), ("Gateway", "gw", "http")])
def test_a_content_translates_no_route_and_sends_one_resource(target: At) -> None:
    many = world.many(300).replace([world.service("auth"), world.endpoints("auth", "10.0.0.9")])
    snapshot = many.replace([security("p", target), traffic("t", target)])
    before = translate(snapshot, PLAIN)
    after = step(snapshot.replace([security("p", target, timeout="2s")]), before)
    assert after.work == Work(routes=0, virtual_hosts=0, clusters=0, policies=1)
    assert changed(before, after) == {("policy", "security/default/p#extAuth")}
    again = step(snapshot.replace([traffic("t", target, timeout="2s")]), before)
    assert again.work == Work(routes=0, virtual_hosts=0, clusters=0, policies=1)
    assert changed(before, again) == {("policy", "traffic/default/t")}
    # A mistake in a unit is content, too.
    broken = step(snapshot.replace([security("p", target, timeout="2h")]), before)
    assert broken.work.routes == 0
    assert units(broken)["security/default/p#extAuth"].status == 500


def test_a_shape_translates_its_readers() -> None:
    snapshot = world.many(20).replace([world.service("auth")])
    before = translate(snapshot, PLAIN)
    one = step(snapshot.replace([security("p", ("HTTPRoute", "r3", ""))]), before)
    assert (one.work.routes, one.work.virtual_hosts) == (1, 1)
    assert [rule.policies for host in one.ir.fleets[0].virtual_hosts for rule in host.rules
            if rule.policies] == [("security/default/p#authorization", "security/default/p#extAuth")]  # fmt: skip
    gone = step(snapshot, one)
    assert gone.work.routes == 1
    _same(gone, before)
    above = snapshot.replace([security("p", ("Gateway", "gw", ""))])
    every = step(above, before)
    assert every.work.routes == 20
    # A policy on something else is nobody's affair.
    other = step(above.replace([security("q", ("HTTPRoute", "none", ""))]), every)
    assert (other.work.routes, other.work.policies) == (0, 1)


def test_where_there_are_no_policies_nothing_is_done() -> None:
    snapshot = world.many(5)
    before = translate(snapshot, PLAIN)
    after = translate(snapshot.replace([world.route(1, path="/new")]), PLAIN, before)
    assert after.memo.own is before.memo.own
    assert after.memo.judged is before.memo.judged
    assert after.memo.world.gateways is before.memo.front.views
    assert not any(
        fact[0] == "Attached" for one in after.memo.routes.values() for fact in one.reads
    )


def test_routes_share_what_is_made_of_equal_chains() -> None:
    made = translate(Snapshot.of([*base(), security("p", ("Gateway", "gw", "http"))]), PLAIN)
    outcome = made.memo.routes["default", "web"]
    parts = {listener: part for listener, _, part in outcome.hosts}
    assert parts["default/gw/more"] is parts["default/gw/default/set/http"]
    assert parts["default/gw/http"] is not parts["default/gw/more"]


def test_clusters_that_units_ask_are_in_the_fleet_that_names_them_and_only_there() -> None:
    cluster = Settings(standalone=False)
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    second = world.make(
        "Gateway default/second", {"gatewayClassName": "edge", "listeners": listeners}
    )
    far = world.route(7, parents=[{"name": "second"}])
    snapshot = world.many(2).replace([second, world.service("auth"), far])
    snapshot = snapshot.replace([security("p", ("Gateway", "second", ""))])
    made = translate(snapshot, cluster)
    held = {
        one.name: ({c.name for c in one.clusters}, [p.name for p in one.policies])
        for one in made.ir.fleets
    }
    (first, of_first), (other, of_second) = sorted(held.items())
    assert "gw" in first and "second" in other
    assert of_first == ({"service/default/web/80"}, [])
    assert of_second == (
        {"service/default/web/80", "service/default/auth/80"},
        ["security/default/p#authorization", "security/default/p#extAuth"],
    )
    # Who names nothing any more has nothing any more.
    gone = translate(
        snapshot.replace(removed=[ObjectRef("HTTPRoute", "default", "r7")]), cluster, made
    )
    assert [
        (len(one.clusters), len(one.policies))
        for one in sorted(gone.ir.fleets, key=lambda f: f.name)
    ] == [(1, 0), (0, 0)]


def test_a_service_without_endpoints_breaks_nothing_and_one_that_is_gone_everything() -> None:
    snapshot = Snapshot.of([*base(), security("p", ("Gateway", "gw", ""))])
    before = translate(snapshot, PLAIN)
    name = "security/default/p#extAuth"
    assert units(before)[name].ext_auth is not None
    empty = step(snapshot.replace([world.endpoints("auth")]), before)
    assert empty.work.routes == 0 and units(empty)[name] == units(before)[name]
    gone = step(snapshot.replace(removed=[ObjectRef("Service", "default", "auth")]), empty)
    assert gone.work.routes == 0
    assert units(gone)[name].status == 500 and "not found" in units(gone)[name].reason
    assert not any(one.name == "service/default/auth/80" for one in gone.ir.fleets[0].clusters)
    _same(step(snapshot, gone), before)


def test_rules_that_answer_500_anyway_name_nothing() -> None:
    bad = world.route(1, backendRefs=[])
    snapshot = world.many(1).replace(
        [bad, security("p", ("Gateway", "gw", ""), features=("authorization",))]
    )
    made = translate(snapshot, PLAIN)
    found = {rule.route: rule for host in made.ir.fleets[0].virtual_hosts for rule in host.rules}
    assert found["default/r1"].status == 500 and not found["default/r1"].policies
    assert found["default/r0"].policies


def test_rules_of_one_name_all_have_what_is_attached_to_it() -> None:
    backends = [{"name": "web", "port": 80}]
    route = world.make(
        "HTTPRoute default/twice",
        {
            "parentRefs": [{"name": "gw"}],
            "rules": [
                {"name": "a", "matches": [{"path": {"value": f"/{at}"}}], "backendRefs": backends}
                for at in range(2)
            ],
        },
    )
    policy = security("p", ("HTTPRoute", "twice", "a"), features=("authorization",))
    made = translate(world.many(0).replace([route, policy]), PLAIN)
    (host,) = made.ir.fleets[0].virtual_hosts
    assert [one.policies for one in host.rules] == [("security/default/p#authorization",)] * 2


def test_what_is_asked_for_and_not_known_closes_the_targets() -> None:
    raw: dict[str, Any] = manifest(
        "SecurityPolicy default/p",
        {
            "targetRefs": [{"group": GROUP, "kind": "Gateway", "name": "gw"}],
            "authorization": {"defaultAction": "Allow"},
            "csrf": {"additionalOrigins": []},
        },
    )
    policy = decode_api_object(raw, "SecurityPolicy")
    made = translate(Snapshot.of([*base(), policy]), PLAIN)
    assert list(units(made)) == ["security/default/p#closed"]
    assert units(made)["security/default/p#closed"].status == 500
    rules = [rule for host in made.ir.fleets[0].virtual_hosts for rule in host.rules]
    assert rules and all(rule.policies == ("security/default/p#closed",) for rule in rules)
    (entry,) = made.statuses.security_policies["default", "p"].ancestors
    assert [(one.type, one.status, one.reason) for one in entry.conditions] == [
        ("Accepted", "False", "Invalid"),
        ("ResolvedRefs", "True", "ResolvedRefs"),
        ("Programmed", "False", "Invalid"),
    ]


def test_past_sixteen_gateways_a_policy_holds_and_it_is_said() -> None:
    names = [f"gw{at:02}" for at in range(18)]
    route = world.route(0, parents=[{"name": one} for one in names])
    policy = security("p", ("HTTPRoute", "r0", ""), features=("authorization",))
    gateways = [world.gateway(one, 80 + at) for at, one in enumerate(names)]
    made = translate(
        Snapshot.of([world.gateway_class(), *gateways, world.service("web"), route, policy]), PLAIN
    )
    hosts = made.ir.fleets[0].virtual_hosts
    assert len(hosts) == 18 and all(host.rules[0].policies for host in hosts)
    ancestors = made.statuses.security_policies["default", "p"].ancestors
    assert [one.ancestor_ref.name for one in ancestors] == names[:16]
    assert "all of its 18 Gateways, and a status lists 16" in ancestors[0].conditions[0].message


def test_policies_of_namespaces_that_are_not_watched_are_not_judged() -> None:
    policy = security("p", ("Gateway", "gone", ""))
    snapshot = Snapshot.of([*base(), policy])
    elsewhere = msgspec.structs.replace(PLAIN, watch_namespaces=("other",))
    assert not translate(snapshot, elsewhere).statuses.security_policies
    assert translate(snapshot, PLAIN).statuses.security_policies


def test_a_policy_of_a_service_is_told_of_who_asks_it() -> None:
    tls = world.policy("tls", "auth")
    snapshot = Snapshot.of([*base(), world.authority(True), tls])
    before = translate(snapshot, PLAIN)
    assert not before.statuses.backend_tls_policies
    asked = step(snapshot.replace([security("p", ("Gateway", "gw", ""))]), before)
    (entry,) = asked.statuses.backend_tls_policies["default", "tls"].ancestors
    assert entry.ancestor_ref.name == "gw"
    service = next(one for one in asked.ir.fleets[0].clusters if "auth" in one.name)
    assert service.tls is not None
    # What is wrong with TLS towards it breaks the unit.
    broken = step(asked.memo.world.snapshot.replace([world.authority(False)]), asked)
    assert broken.work.routes == 0
    assert units(broken)["security/default/p#extAuth"].status == 500
    assert broken.statuses.backend_tls_policies
    assert not step(snapshot, broken).statuses.backend_tls_policies


def test_a_policy_of_a_service_is_not_told_of_gateways_that_are_not_ours() -> None:
    """What targets a Gateway has it for an ancestor even where it is not there, and asks nothing for it."""
    tls = world.policy("tls", "auth")
    asking = security("p", ("Gateway", "soon", ""))
    made = translate(Snapshot.of([*base(), world.authority(True), tls, asking]), PLAIN)
    assert made.statuses.security_policies["default", "p"]
    assert not made.statuses.backend_tls_policies
    there = step(made.memo.world.snapshot.replace([world.gateway("soon", 81)]), made)
    (entry,) = there.statuses.backend_tls_policies["default", "tls"].ancestors
    assert entry.ancestor_ref.name == "soon"


def test_affected_is_there_while_a_policy_is() -> None:
    def types(made: Translation) -> dict[str, str]:
        status = made.statuses.gateways["default", "gw"]
        both = [*status.conditions, *(one for at in status.listeners for one in at.conditions)]
        return {one.type: one.message for one in both if one.type.endswith("Affected")}

    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
    policy = world.make(
        "SecurityPolicy default/p",
        {"targetRefs": [target], "authorization": {"defaultAction": "Deny"}},
    )
    snapshot = world.many(1)
    before = translate(snapshot, Settings())
    assert not types(before)
    with_it = translate(snapshot.replace([policy]), Settings(), before)
    said = {"gateway.edge.io/SecurityPolicyAffected": "Affected by SecurityPolicy default/p"}
    assert types(with_it) == said
    assert not types(translate(snapshot, Settings(), with_it))


def test_nothing_is_looked_at_where_there_are_no_policies() -> None:
    made = translate(world.many(2), Settings())
    again = translate(world.many(3), Settings(), made)
    assert again.memo.uses is made.memo.uses
