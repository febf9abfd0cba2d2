"""Routes of layer 4 as targets: a SecurityPolicy that names one closes it, whatever is wrong with the policy; other policies pass it by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

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
    (fleet,) = made.ir.fleets
    assert len(fleet.stream_routes) == len(KINDS)
    return {one.route.partition("/")[0] for one in fleet.stream_routes if not one.backends}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spec",
    [
        {"authorization": DENY},
        {"authorization": DENY, "mergeType": "Replace"},
        {"mergeType": "Replace"},
        {"authorization": {"defaultAction": "Perhaps"}},
        {"nobody": "knows"},
        {"authorization": DENY, "targetRef": {"group": GROUP, "kind": "Gateway", "name": "x"}},
    ],
)
def test_a_security_policy_closes_what_it_names(
    tmp_path: Path, kind: str, spec: dict[str, Any]
) -> None:
    made = translate(read(tmp_path, policy(target(kind), **spec)), Settings(standalone=True))
    assert closed(made) == {kind.lower()}


@pytest.mark.parametrize(
    "wrong", [{"kind": "TcpRoute"}, {"group": None}, {"group": "gateway.networking.k8s.io/v1"}]
)
def test_a_target_that_is_all_but_right_closes_what_was_meant(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    snapshot = read(tmp_path, policy(target("TCPRoute") | wrong, authorization=DENY))
    assert closed(translate(snapshot, Settings(standalone=True))) == {"tcproute"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_of_traffic_passes_them_by(tmp_path: Path, kind: str) -> None:
    limit = policy(target(kind), kind="BackendTrafficPolicy", requestBuffer={"limit": "1Mi"})
    snapshot = read(tmp_path, limit)
    made = translate(snapshot, Settings(standalone=True))
    assert closed(made) == set()


def test_it_comes_and_goes_and_says_so_in_a_cluster(tmp_path: Path) -> None:
    """Of an API server whose CRDs let it pass."""
    settings = Settings()
    plain = read(tmp_path)
    before = translate(plain, settings)
    assert closed(before) == set()
    raw = policy(target("TCPRoute"), authorization=DENY)
    with_it = plain.replace([decode_api_object(raw, "SecurityPolicy")])
    after = translate(with_it, settings, before)
    _same(after, translate(with_it, settings))
    assert closed(after) == {"tcproute"}
    (stream,) = (one for one in after.ir.fleets[0].stream_routes if not one.backends)
    assert stream.reason == (
        "SecurityPolicy default/p targets this route or its parent, and does not support TCPRoutes"
    )
    (entry,) = after.statuses.security_policies["default", "p"].ancestors
    accepted, _, programmed = entry.conditions
    assert (accepted.status, accepted.reason) == ("False", "TargetNotFound")
    assert (programmed.status, programmed.reason) == ("False", "NotSupported")
    assert "TCPRoute default/tcproute: policies do not support" in programmed.message
    (told,) = (one for one in after.problems if one.severity == "error")
    assert told.path == "spec.targetRefs[0].kind"
    assert "policies of TCPRoutes are not supported" in told.message
    assert told.message.endswith("; the route is closed")
    gone = with_it.replace([], [ObjectRef("SecurityPolicy", "default", "p", EDGE_GROUP)])
    free = translate(gone, settings, after)
    _same(free, translate(gone, settings))
    assert closed(free) == set()


@pytest.mark.parametrize(("section", "shut"), [("main", {"tcproute"}), ("other", set())])
def test_a_section_is_a_named_rule(tmp_path: Path, section: str, shut: set[str]) -> None:
    one = policy(target("TCPRoute", sectionName=section), authorization=DENY)
    plain = read(tmp_path)
    snapshot = plain.replace([decode_api_object(one, "SecurityPolicy")])
    made = translate(snapshot, Settings())
    assert closed(made) == shut
    missing = [one.message for one in made.problems if "other" in one.message]
    assert bool(missing) == (not shut)


@pytest.mark.parametrize("spec", [{}, {"jwt": None}])
def test_one_that_says_nothing_closes_it_too(tmp_path: Path, spec: dict[str, Any]) -> None:
    """Of an API server: in files it is a mistake of its own."""
    policy_ = decode_api_object(policy(target("TCPRoute"), **spec), "SecurityPolicy")
    made = translate(read(tmp_path).replace([policy_]), Settings())
    assert closed(made) == {"tcproute"}
    (entry,) = made.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].status == "False"


@pytest.mark.parametrize("kind", ["TcpRoutes", "tcproute", "TCPRoute"])
def test_in_the_group_of_experiments_it_is_meant_too(tmp_path: Path, kind: str) -> None:
    wrong = target("TCPRoute") | {"group": "gateway.networking.x-k8s.io", "kind": kind}
    snapshot = read(tmp_path, policy(wrong, authorization=DENY))
    assert closed(translate(snapshot, Settings(standalone=True))) == {"tcproute"}


def tcp(name: str = "t", gateway: str = "l4") -> Any:
    return world.make(f"TCPRoute default/{name}", {"parentRefs": [{"name": gateway}],
                 "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}, api=f"{GROUP}/v1alpha2")  # fmt: skip


def test_routes_of_layer_4_below_a_policy_are_closed() -> None:
    front = world.make("Gateway default/l4", {"gatewayClassName": "edge",
                 "listeners": [{"name": "tcp", "port": 9443, "protocol": "TCP"}]}, api=f"{GROUP}/v1")  # fmt: skip
    snapshot = world.many(1).replace([front, tcp()])
    before = translate(snapshot, Settings())
    (stream,) = before.ir.fleets[0].stream_routes
    assert stream.backends
    policy = decode_api_object(
        raw(targetRefs=[named("l4", "Gateway")], authorization=DENY), "SecurityPolicy"
    )
    after = translate(snapshot.replace([policy]), Settings(), before)
    _same(after, translate(snapshot.replace([policy]), Settings()))
    (stream,) = after.ir.fleets[0].stream_routes
    assert not stream.backends and "SecurityPolicy default/p" in stream.reason
    (entry,) = after.statuses.security_policies["default", "p"].ancestors
    programmed = entry.conditions[-1]
    assert (programmed.status, programmed.reason) == ("False", "NotSupported")
    assert "TCPRoute default/t" in programmed.message
    assert any(
        one.severity == "error" and "TCPRoute default/t" in one.message for one in after.problems
    )
    # The status follows the routes, and settings of traffic close nothing.
    gone = snapshot.replace([policy], [ObjectRef("TCPRoute", "default", "t")])
    free = translate(gone, Settings(), after)
    _same(free, translate(gone, Settings()))
    (entry,) = free.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].reason == "Programmed"
    limit = raw(targetRefs=[named("l4", "Gateway")], requestBuffer={"limit": "1Mi"})
    traffic = decode_api_object(limit | {"kind": "BackendTrafficPolicy"}, "BackendTrafficPolicy")
    quiet = translate(snapshot.replace([traffic]), Settings(), before)
    _same(quiet, translate(snapshot.replace([traffic]), Settings()))
    assert quiet.ir.fleets[0].stream_routes[0].backends
    (said,) = [one for one in quiet.problems if "UDPRoute" in one.message]
    assert said.severity == "warning"
