"""SecurityPolicies in files: `check` fails on what leads nowhere; one with a mistake closes its targets, until its last good version is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call
from cli.test_check_policy import BESIDE
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, translate

pytestmark = pytest.mark.pure

POLICY = """apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {name: guard}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  authorization: {rules: [{action: Allow, principal: {clientCIDRs: [10.0.0.0/8]}}]}
"""
TRAFFIC = """apiVersion: gateway.edge.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: sizes}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  requestBuffer: {limit: 1Mi}
"""


def _write(folder: Path, *texts: str) -> Path:
    path = folder / "shop.yaml"
    path.write_text("---\n".join((BESIDE, *texts)))
    return path


def _check(folder: Path, *texts: str) -> tuple[int, str]:
    outcome = call("check", "-f", str(_write(folder, *texts)))
    return outcome.status, outcome.out


def _units(made: Translation) -> dict[str, int]:
    return {one.name: one.status for one in made.ir.fleets[0].policies}


def test_what_is_sound_is_nothing_to_tell(tmp_path: Path) -> None:
    status, out = _check(tmp_path, POLICY, TRAFFIC)
    assert status == 0, out


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (POLICY.replace("name: edge}", "name: egde}"), 'spec.targetRefs[0].name: TargetNotFound Gateway default/egde not found; this target has no effect: requests pass without the policy'),
        (
            POLICY.replace("name: edge}", "name: edge, sectionName: htp}"),
            'spec.targetRefs[0].sectionName: TargetNotFound "htp" (Gateway default/edge has http); requests pass without it, did you mean http?',
        ),
        (
            TRAFFIC.replace("name: web}", "name: web, sectionName: first}"),
            'spec.targetRefs[0].sectionName: TargetNotFound "first" (HTTPRoute default/web has no named rule)',
        ),
        (
            POLICY.replace("authorization:", "extAuth: {http: {backendRef: {name: auth, namespace: far, port: 80}}}\n  authorization:"),
            "spec.extAuth.http.backendRef: RefNotPermitted no ReferenceGrant in namespace far allows SecurityPolicies of namespace default",
        ),
        (POLICY.replace("kind: Gateway,", "kind: GatewayClass,"), "NotSupported"),
    ],
)  # fmt: skip
def test_what_leads_nowhere_fails_the_check(tmp_path: Path, wrong: str, told: str) -> None:
    status, out = _check(tmp_path, wrong)
    assert status == 1
    assert told in out
    assert "WITHOUT" not in out


@pytest.mark.parametrize(
    ("broken", "closed"),
    [
        (POLICY.replace("clientCIDRs:", "clientCIDR:"), "security/default/guard#closed"),
        (TRAFFIC.replace("1Mi", "much"), "traffic/default/sizes#closed"),
    ],
)  # fmt: skip
def test_one_with_a_mistake_closes_its_targets(tmp_path: Path, broken: str, closed: str) -> None:
    path = _write(tmp_path, broken)
    made = translate(FileSource([path]).read().snapshot, Settings())
    assert _units(made) == {closed: 500}
    (rule,) = (rule for host in made.ir.fleets[0].virtual_hosts for rule in host.rules)
    assert rule.policies == (closed,)
    (status,) = (one for key, one in made.statuses.items() if key.kind.endswith("Policy"))
    assert status.ancestors[0].conditions[0].status == "False"
    (told,) = made.problems
    assert told.severity == "warning" and "requests get 500 for" in told.text()
    code, out = _check(tmp_path, broken)
    assert code == 1 and "WITHOUT" not in out


def test_what_is_not_available_yet_closes_the_targets(tmp_path: Path) -> None:
    wanted = POLICY.replace("authorization:", "csrf: {}\n  authorization:")
    made = translate(FileSource([_write(tmp_path, wanted)]).read().snapshot, Settings())
    assert _units(made) == {"security/default/guard#closed": 500}
    (told,) = made.problems
    assert told.severity == "error" and "spec.csrf: NotSupported no equivalent" in told.text()


def test_the_last_good_version_holds_meanwhile(tmp_path: Path) -> None:
    source = FileSource([_write(tmp_path, POLICY)])
    before = translate(source.read().snapshot, Settings())
    _write(tmp_path, POLICY.replace("clientCIDRs:", "clientCIDR:"))
    after = translate(source.read().snapshot, Settings(), before)
    assert _units(after) == _units(before) == {"security/default/guard#authorization": 0}


def test_a_route_cannot_drop_what_nobody_can_read(tmp_path: Path) -> None:
    opened = POLICY.replace("guard", "open").replace("Gateway, name: edge", "HTTPRoute, name: web")
    opened = opened.replace("spec:", "spec:\n  mergeType: Replace")
    broken = POLICY.replace("clientCIDRs:", "clientCIDR:")
    made = translate(FileSource([_write(tmp_path, broken, opened)]).read().snapshot, Settings())
    (rule,) = (rule for host in made.ir.fleets[0].virtual_hosts for rule in host.rules)
    assert rule.policies == ("security/default/guard#closed", "security/default/open#authorization")


def test_a_second_one_of_a_name_closes_its_targets(tmp_path: Path) -> None:
    second = POLICY.replace("Gateway, name: edge", "HTTPRoute, name: web")
    made = translate(FileSource([_write(tmp_path, POLICY, second)]).read().snapshot, Settings())
    assert _units(made) == {
        "security/default/guard#authorization": 0,
        "security/default/guard?2#closed": 500,
    }


def test_mistakes_come_and_go(tmp_path: Path) -> None:
    broken = POLICY.replace("clientCIDRs:", "clientCIDR:")
    made: Translation | None = None
    for text, names in (
        (broken, ["security/default/guard#closed"]),
        (TRAFFIC, ["traffic/default/sizes"]),
        (broken.replace("Gateway, name: edge", "HTTPRoute, name: gone"), []),
        (broken, ["security/default/guard#closed"]),
        (POLICY, ["security/default/guard#authorization"]),
    ):
        snapshot = FileSource([_write(tmp_path, text)]).read().snapshot
        made = translate(snapshot, Settings(), made)
        assert list(_units(made)) == names
        assert made.ir == translate(snapshot, Settings()).ir
