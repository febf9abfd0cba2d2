"""`--adopt`: objects of Envoy Gateway as edgefast reads them: objects, what was not carried over, and what is closed.

Each case has the shape of a task in Envoy Gateway's documentation. Its output has the problems, the closed routes and the objects
of `edgefast convert --adopt`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.snapshot import Snapshot
from edgefast.convert.adopted import convert_adopted
from edgefast.convert.render import render_objects
from edgefast.providers.files import FileSource, Reading
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from edgefast.translate.translation import Translation

pytestmark = pytest.mark.pure

HERE = Path(__file__).parent
CASES = HERE / "adopted_cases"
WORLD = HERE / "adopted_world.yaml"
ADOPT = Settings(adopt=True, now=1_700_000_000)


def read(path: Path, *, adopt: bool) -> Reading:
    return FileSource([WORLD, path], adopt=adopt).read()


def closed(made: Translation) -> list[str]:
    """Return the rules that answer 500."""
    fleet = made.ir.fleets[0]
    broken = {one.name for one in fleet.policies if one.status == 500}
    return [
        f"{rule.route} {rule.name or ''}".strip()
        for host in fleet.virtual_hosts
        for rule in host.rules
        if broken & set(rule.units()) or rule.status == 500
    ]


def run_case(path: Path) -> tuple[str, Translation, Snapshot]:
    plain, adopted = read(path, adopt=False), read(path, adopt=True)
    made = translate(adopted.snapshot, ADOPT)
    found = convert_adopted(plain.snapshot, adopted.snapshot, ADOPT, adopted.problems)
    problems = [
        one.line().replace(f"{path}:", "line ")
        for one in dict.fromkeys((*found.problems, *made.problems))
        if one.reason != "Adopted"
    ]
    lines = [f"# {one}\n" for one in problems]
    lines += [f"# closed: {one}\n" for one in closed(made)]
    return "".join([*lines, render_objects(found.objects)]), made, adopted.snapshot


@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*.in.yaml")), ids=lambda path: path.name.removesuffix(".in.yaml")
)
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    text, made, snapshot = run_case(path)
    expected = path.with_name(path.name.replace(".in.", ".out."))
    if request.config.getoption("--update-goldens"):
        expected.write_text(text)
    assert expected.read_text() == text
    assert translate(snapshot, ADOPT, made).ir == made.ir


GATEWAY = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "two"}
PORTS = {"http": 8001, "more": 8002}
SELECTOR = {"group": GATEWAY["group"], "kind": "HTTPRoute", "matchLabels": {"a": "b"}}
HOPS = {"clientIPDetection": {"xForwardedFor": {"numTrustedHops": 1}}}


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        (
            "ClientTrafficPolicy",
            {"targetRefs": [{**GATEWAY, "sectionName": "more"}], **HOPS},
            "error spec.targetRefs: clientIPDetection, proxyProtocol would be those of the Gateway",
        ),
        (
            "SecurityPolicy",
            {"targetRefs": [GATEWAY], "csrf": {"additionalOrigins": [{"value": "x"}]}},
            "error spec.csrf: not converted: spec.csrf",
        ),
        (
            "BackendTrafficPolicy",
            {"targetRefs": [GATEWAY], "admissionControl": {}},
            "error spec.admissionControl: not converted: spec.admissionControl",
        ),
        (
            "SecurityPolicy",
            {"targetSelectors": [SELECTOR], "basicAuth": {"users": {"name": "users"}}},
            "warning spec.targetSelectors: not converted: its selectors choose no object",
        ),
    ],
)
def test_what_is_closed_is_not_written(
    tmp_path: Path, kind: str, spec: dict[str, Any], told: str
) -> None:
    metadata = {"name": "a", "namespace": "default"}
    api = "gateway.envoyproxy.io/v1alpha1"
    raw = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
    path = tmp_path / "a.yaml"
    listeners = [{"name": one, "port": port, "protocol": "HTTP"} for one, port in PORTS.items()]
    gateway = {"gatewayClassName": "eg", "listeners": listeners}
    edge = {"kind": "Gateway", "metadata": {**metadata, "name": "two"}, "spec": gateway}
    edge["apiVersion"] = f"{GATEWAY['group']}/v1"
    path.write_text(yaml.safe_dump_all([edge, raw]))
    plain, adopted = read(path, adopt=False), read(path, adopt=True)
    found = convert_adopted(plain.snapshot, adopted.snapshot, ADOPT, adopted.problems)
    texts = [f"{one.severity} {one.path}: {one.message}" for one in found.problems]
    assert any(one.startswith(told) for one in texts), texts
    assert not any(
        isinstance(one.obj, SecurityPolicy | BackendTrafficPolicy) for one in found.objects
    )
