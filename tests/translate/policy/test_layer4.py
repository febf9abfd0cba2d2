"""Routes of layer 4 as targets: a SecurityPolicy that names one closes it, whatever is wrong with the policy; other policies pass it by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast import ir
from edgefast.api.decode.decode import decode_api_object
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, translate
from tests.support.manifest import manifest
from tests.translate import world
from tests.translate.policy.hierarchy import GROUP
from tests.translate.policy.site import raw
from tests.translate.policy.site import target as named
from tests.translate.test_incremental import _same
from tests.translate.test_layer4 import _HEAD, _SLICE, route

pytestmark = pytest.mark.pure

KINDS = ("TLSRoute", "TCPRoute", "UDPRoute")
ROUTES = "".join(
    route(kind, kind.lower(), hosts="a.test" if kind == "TLSRoute" else "") for kind in KINDS
).replace("rules: [{", "rules: [{name: main, ")
DENY = {"defaultAction": "Deny"}
ALLOW = {"rules": [{"action": "Allow", "principal": {"clientCIDRs": ["10.0.0.0/8"]}}]}


def policy(*targets: dict[str, Any], kind: str = "SecurityPolicy", **spec: Any) -> dict[str, Any]:
    return manifest(f"{kind} default/p", {"targetRefs": list(targets), **spec})


def target(kind: str, **more: Any) -> dict[str, Any]:
    return {"group": GROUP, "kind": kind, "name": kind.lower(), **more}


def read(tmp_path: Path, *policies: dict[str, Any] | str) -> Snapshot:
    """A site of three routes, and these policies beside it, each in a file."""
    site = tmp_path / "site.yaml"
    site.write_text(_HEAD + _SLICE.replace("ADDRESS", "10.0.0.1") + ROUTES)
    for at, one in enumerate(policies):
        text = one if isinstance(one, str) else yaml.safe_dump(one)
        (tmp_path / f"policy{at}.yaml").write_text(text)
    return FileSource([tmp_path]).read().snapshot


def closed(made: Translation) -> set[str]:
    """Routes that refuse every connection, whatever client and backend."""
    return {one.route.partition("/")[0] for one in streams(made) if not one.backends}


def guarded(made: Translation) -> set[str]:
    """Routes whose connections meet the unit of the policy."""
    unit = "security/default/p#authorization"
    return {one.route.partition("/")[0] for one in streams(made) if one.policies == (unit,)}


def streams(made: Translation) -> tuple[ir.StreamRoute, ...]:
    (fleet,) = made.ir.fleets
    assert len(fleet.stream_routes) == len(KINDS)
    return tuple(fleet.stream_routes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, {"mergeType": "Replace"}])
def test_an_authorization_guards_what_it_names(
    tmp_path: Path, kind: str, more: dict[str, Any]
) -> None:
    spec = {"authorization": ALLOW, **more}
    made = translate(read(tmp_path, policy(target(kind), **spec)), Settings(standalone=True))
    assert (closed(made), guarded(made)) == (set(), {kind.lower()})
    (unit,) = made.ir.fleets[0].policies
    assert unit.authorization is not None and unit.authorization.rules[0].sources == ("10.0.0.0/8",)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spec",
    [
        {"nobody": "knows"},
        {"authorization": DENY, "mergeType": "Override"},
        {"authorization": DENY, "targetRef": {"group": GROUP, "kind": "Gateway", "name": "x"}},
    ],
)
def test_a_policy_with_a_mistake_closes_what_it_names(
    tmp_path: Path, kind: str, spec: dict[str, Any]
) -> None:
    made = translate(read(tmp_path, policy(target(kind), **spec)), Settings(standalone=True))
    assert closed(made) == {kind.lower()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_authorization_is_a_broken_unit(tmp_path: Path, kind: str) -> None:
    """It refuses in the engine, as it does for requests."""
    wrong = policy(target(kind), authorization={"rules": [{"action": "Allow"}]})
    snapshot = read(tmp_path).replace([decode_api_object(wrong, "SecurityPolicy")])
    made = translate(snapshot, Settings())
    assert guarded(made) == {kind.lower()}
    (unit,) = made.ir.fleets[0].policies
    assert unit.status == 500


USERS = {"users": {"name": "users"}}
KEYS = {
    "credentialRefs": [{"name": "keys"}],
    "extractFrom": [{"headers": ["x-key"]}],
}
TOKENS = {"providers": [{"name": "a", "localJWKS": {"type": "Inline", "inline": "{}"}}]}
SERVICE = {"http": {"backendRefs": [{"name": "web", "port": 80}]}}
RULE = {"action": "Deny"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.basicAuth", {"basicAuth": USERS}),
        ("spec.apiKeyAuth", {"apiKeyAuth": KEYS}),
        ("spec.jwt", {"jwt": TOKENS}),
        ("spec.extAuth", {"extAuth": SERVICE}),
        ("spec.extAuth", {"extAuth": SERVICE, "authorization": {"defaultAction": "Allow"}}),
        (
            "spec.authorization.rules[].operation",
            {"authorization": {"defaultAction": "Allow", "rules": [RULE | {"operation": {"methods": ["GET"]}}]}},
        ),
        (
            "spec.authorization.rules[].principal.headers",
            {"authorization": {"defaultAction": "Allow", "rules": [
                RULE | {"principal": {"headers": [{"name": "x-a", "values": ["1"]}], "clientCIDRs": ["10.0.0.0/8"]}}
            ]}},
        ),
    ],
)  # fmt: skip
def test_what_needs_a_request_closes_the_route_and_is_told_by_name(
    tmp_path: Path, kind: str, field: str, spec: dict[str, Any]
) -> None:
    one = decode_api_object(policy(target(kind), **spec), "SecurityPolicy")
    made = translate(read(tmp_path).replace([one]), Settings())
    assert closed(made) == {kind.lower()}
    (stream,) = (one for one in streams(made) if not one.backends)
    assert stream.reason == f"SecurityPolicy default/p {field}: not supported for {kind}s"
    told = f"{kind} default/{kind.lower()} ({field}): not supported for this kind of route"
    (entry,) = made.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].status == "False"
    assert any(told in one.message for one in made.problems if one.severity == "error")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("principal", "field", "read_by"),
    [
        ({"serverNames": ["a.test", "*.b.test"]}, "serverNames", {"TLSRoute"}),
        ({"clientCertificate": {"uris": ["spiffe://a"]}}, "clientCertificate", set()),
    ],
)
def test_what_a_listener_does_not_read_closes_the_route(
    tmp_path: Path, kind: str, principal: dict[str, Any], field: str, read_by: set[str]
) -> None:
    """The TLS listener passes TLS on: it reads server names, and no certificate."""
    rule = {"action": "Deny", "principal": principal}
    one = policy(target(kind), authorization={"defaultAction": "Allow", "rules": [rule]})
    made = translate(read(tmp_path, one), Settings(standalone=True))
    assert closed(made) == ({kind.lower()} if kind not in read_by else set())
    if kind not in read_by:
        (stream,) = (each for each in streams(made) if not each.backends)
        assert stream.reason.endswith(f"rules[].principal.{field}: not supported for {kind}s")


@pytest.mark.parametrize(
    "wrong", [{"kind": "TcpRoute"}, {"group": None}, {"group": "gateway.networking.k8s.io/v1"}]
)
def test_a_target_that_is_all_but_right_closes_what_was_meant(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    snapshot = read(tmp_path, policy(target("TCPRoute") | wrong, authorization=DENY))
    assert closed(translate(snapshot, Settings(standalone=True))) == {"tcproute"}


def test_it_comes_and_goes_and_says_so_in_a_cluster(tmp_path: Path) -> None:
    settings = Settings()
    plain = read(tmp_path)
    before = translate(plain, settings)
    assert guarded(before) == set()
    raw = policy(target("TCPRoute"), authorization=ALLOW)
    with_it = plain.replace([decode_api_object(raw, "SecurityPolicy")])
    after = translate(with_it, settings, before)
    _same(after, translate(with_it, settings))
    assert (closed(after), guarded(after)) == (set(), {"tcproute"})
    (entry,) = after.statuses.security_policies["default", "p"].ancestors
    assert [(one.type, one.status) for one in entry.conditions] == [
        ("Accepted", "True"),
        ("ResolvedRefs", "True"),
        ("Programmed", "True"),
    ]
    # An edit of the rules sends one unit, and translates no route.
    raw = policy(target("TCPRoute"), authorization=DENY)
    edited = with_it.replace([decode_api_object(raw, "SecurityPolicy")])
    later = translate(edited, settings, after)
    _same(later, translate(edited, settings))
    assert later.work.routes == 0
    gone = edited.replace([], [ObjectRef("SecurityPolicy", "default", "p", EDGE_GROUP)])
    free = translate(gone, settings, later)
    _same(free, translate(gone, settings))
    assert guarded(free) == set() and not free.ir.fleets[0].policies


@pytest.mark.parametrize(("section", "shut"), [("main", {"tcproute"}), ("other", set())])
def test_a_section_is_a_named_rule(tmp_path: Path, section: str, shut: set[str]) -> None:
    one = policy(target("TCPRoute", sectionName=section), authorization=DENY)
    plain = read(tmp_path)
    snapshot = plain.replace([decode_api_object(one, "SecurityPolicy")])
    made = translate(snapshot, Settings())
    assert guarded(made) == shut
    missing = [one.message for one in made.problems if "other" in one.message]
    assert bool(missing) == (not shut)


@pytest.mark.parametrize("spec", [{}, {"jwt": None}])
def test_one_that_says_nothing_is_told(tmp_path: Path, spec: dict[str, Any]) -> None:
    """Of an API server: in files it is a mistake of its own."""
    policy_ = decode_api_object(policy(target("TCPRoute"), **spec), "SecurityPolicy")
    made = translate(read(tmp_path).replace([policy_]), Settings())
    assert (closed(made), guarded(made)) == (set(), set())
    assert any("the policy has no settings" in one.message for one in made.problems)


@pytest.mark.parametrize("kind", ["TcpRoutes", "tcproute", "TCPRoute"])
def test_in_the_group_of_experiments_it_is_meant_too(tmp_path: Path, kind: str) -> None:
    wrong = target("TCPRoute") | {"group": "gateway.networking.x-k8s.io", "kind": kind}
    snapshot = read(tmp_path, policy(wrong, authorization=DENY))
    assert closed(translate(snapshot, Settings(standalone=True))) == {"tcproute"}


def tcp(name: str = "t", gateway: str = "l4") -> Any:
    return world.make(f"TCPRoute default/{name}", {"parentRefs": [{"name": gateway}],
                 "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}, api=f"{GROUP}/v1alpha2")  # fmt: skip


def front(*listeners: str) -> Any:
    ports = [
        {"name": one, "port": 9443 + at, "protocol": "TCP"} for at, one in enumerate(listeners)
    ]
    return world.make("Gateway default/l4", {"gatewayClassName": "edge", "listeners": ports}, api=f"{GROUP}/v1")  # fmt: skip


def test_routes_below_a_gateway_inherit_and_override() -> None:
    snapshot = world.many(1).replace([front("tcp"), tcp()])
    before = translate(snapshot, Settings())
    (stream,) = before.ir.fleets[0].stream_routes
    assert stream.backends and not stream.policies
    above = decode_api_object(
        raw(targetRefs=[named("l4", "Gateway")], authorization=ALLOW), "SecurityPolicy"
    )
    below = decode_api_object(
        raw(targetRefs=[named("t", "TCPRoute")], authorization=DENY) | {"metadata": {"name": "q", "namespace": "default"}},
        "SecurityPolicy",
    )  # fmt: skip
    after = translate(snapshot.replace([above]), Settings(), before)
    _same(after, translate(snapshot.replace([above]), Settings()))
    (stream,) = after.ir.fleets[0].stream_routes
    assert stream.backends and stream.policies == ("security/default/p#authorization",)
    (entry,) = after.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].reason == "Programmed"
    # The route's own applies in its place, and the status of the one above reports it.
    both = translate(snapshot.replace([above, below]), Settings(), after)
    _same(both, translate(snapshot.replace([above, below]), Settings()))
    (stream,) = both.ir.fleets[0].stream_routes
    assert stream.policies == ("security/default/q#authorization",)
    (entry,) = both.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].reason == "Overridden"
    # An Override is never replaced.
    strict = decode_api_object(
        raw(targetRefs=[named("l4", "Gateway")], authorization=ALLOW, mergeType="Override"),
        "SecurityPolicy",
    )
    (stream,) = translate(snapshot.replace([strict, below]), Settings()).ir.fleets[0].stream_routes
    assert stream.policies == tuple(f"security/default/{one}#authorization" for one in "pq")


def test_a_listener_passes_its_policy_to_its_routes_alone() -> None:
    both = tcp()
    one = decode_api_object(
        raw(targetRefs=[named("l4", "Gateway") | {"sectionName": "inner"}], authorization=ALLOW),
        "SecurityPolicy",
    )
    made = translate(world.many(1).replace([front("inner", "outer"), both, one]), Settings())
    found = {one.listener: bool(one.policies) for one in made.ir.fleets[0].stream_routes}
    assert found == {"default/l4/inner": True, "default/l4/outer": False}


@pytest.mark.parametrize("level", ["Gateway", "TCPRoute"])
def test_settings_of_traffic_apply_and_those_of_requests_are_told(level: str) -> None:
    snapshot = world.many(1).replace([front("tcp"), tcp()])
    before = translate(snapshot, Settings())
    spec = {
        "timeout": {"tcp": {"connectTimeout": "1s"}},
        "loadBalancer": {"type": "RoundRobin"},
        "healthCheck": {"active": {"type": "TCP"}},
    }
    target = named("l4" if level == "Gateway" else "t", level)

    def made(**more: Any) -> Any:
        limit = raw(targetRefs=[target], **spec, **more) | {"kind": "BackendTrafficPolicy"}
        return decode_api_object(limit, "BackendTrafficPolicy")

    plain = translate(snapshot.replace([made()]), Settings(), before)
    _same(plain, translate(snapshot.replace([made()]), Settings()))
    (fleet,) = (one for one in plain.ir.fleets if one.stream_routes)
    (stream,) = fleet.stream_routes
    assert stream.backends and stream.traffic == ("traffic/default/p",)
    (unit,) = fleet.policies
    assert unit.traffic is not None and unit.traffic.connect_timeout == 1000
    (cluster,) = (one for one in fleet.clusters if one.name == stream.backends[0].cluster)
    assert (0, stream.traffic) in cluster.treatments  # so that its endpoints are checked
    (entry,) = plain.statuses.backend_traffic_policies["default", "p"].ancestors
    assert entry.conditions[-1].reason == "Programmed"
    more = {"requestBuffer": {"limit": "1Mi"}, "circuitBreaker": {"maxConnections": 5}}
    after = translate(snapshot.replace([made(**more)]), Settings(), plain)
    _same(after, translate(snapshot.replace([made(**more)]), Settings()))
    (said,) = [one for one in after.problems if "spec.requestBuffer" in one.message]
    fields = "spec.circuitBreaker, spec.requestBuffer"
    assert said.severity == "warning"
    assert said.message == (
        f"TCPRoute default/t ({fields}): not supported for this kind of route; its other settings apply"
    )
    (entry,) = after.statuses.backend_traffic_policies["default", "p"].ancestors
    reason = "Programmed" if level == "Gateway" else "NotSupported"
    assert entry.conditions[-1].reason == reason
