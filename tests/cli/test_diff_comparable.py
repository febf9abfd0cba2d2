"""`edgefast diff` of files without what requests depend on: exit 2 and what is missing, never "no request changes"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.calling import Outcome, call

pytestmark = pytest.mark.pure

CLASS = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
"""
GATEWAY = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec: {gatewayClassName: edge, listeners: [{name: http, port: 8080, protocol: HTTP}]}
"""
ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
"""
BACKEND = """apiVersion: gateway.edge.io/v1alpha1
kind: Backend
metadata: {name: web}
spec: {endpoints: [{ip: {address: 127.0.0.1, port: 3001}}]}
"""
OTHER = ROUTE.replace("{name: web, port", "{name: other, port")
LIMITS = """apiVersion: gateway.edge.io/v1alpha1
kind: RateLimitFilter
metadata: {name: limits}
spec: {type: Global, global: {rules: [{limit: {requests: 5, unit: Second}}]}}
"""
FOREIGN = CLASS.replace("gateway.edge.io/", "gateway.envoyproxy.io/")

Diff = Callable[..., Outcome]


@pytest.fixture
def diff(tmp_path: Path) -> Diff:
    """Compares documents, each side one file."""

    def run(old: tuple[str, ...], new: tuple[str, ...], *options: str) -> Outcome:
        paths = []
        for name, documents in (("old", old), ("new", new)):
            path = tmp_path / f"{name}.yaml"
            path.write_text("---\n".join(documents))
            paths.append(str(path))
        return call("diff", *paths, *options)

    return run


@pytest.mark.parametrize("options", [(), ("--cluster",)])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ((ROUTE,), (OTHER,), "neither OLD nor NEW has a listener"),
        ((LIMITS,), (LIMITS.replace("5", "9"),), "neither OLD nor NEW has a listener"),
        (
            (CLASS, GATEWAY, ROUTE),
            (CLASS, GATEWAY, OTHER),
            "HTTPRoute default/web differs and refers to Service default/other, which neither "
            "OLD nor NEW has",
        ),
        (
            (CLASS, GATEWAY, ROUTE.replace("{name: edge}", "{name: main}")),
            (CLASS, GATEWAY, OTHER.replace("{name: edge}", "{name: main}")),
            "HTTPRoute default/web differs and refers to Gateway default/main, which neither "
            "OLD nor NEW has",
        ),
        (
            (FOREIGN, GATEWAY, ROUTE),
            (FOREIGN, GATEWAY, OTHER),
            "neither OLD nor NEW has a listener",
        ),
    ],
)
def test_what_is_missing_is_said(
    diff: Diff, old: tuple[str, ...], new: tuple[str, ...], said: str, options: tuple[str, ...]
) -> None:
    outcome = diff(old, new, *options)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err
    assert "no request changes" not in outcome.err
    assert "pass files or folders with Gateways and routes" in outcome.err


def test_what_is_the_same_needs_nothing_else(diff: Diff) -> None:
    side = (CLASS, GATEWAY, ROUTE, OTHER.replace("name: web}", "name: other}"))
    outcome = diff(side, (*side, LIMITS))
    assert (outcome.status, "no request changes" in outcome.err) == (0, True)


def test_a_change_beside_it_is_told(diff: Diff) -> None:
    lost = ROUTE.replace("name: web}", "name: lost}").replace("{name: edge}", "{name: main}")
    side = (CLASS, GATEWAY)
    moved = lost.replace("port: 80}", "port: 81}")
    outcome = diff((*side, ROUTE, lost), (*side, moved))
    assert outcome.status in (1, 3)
    assert "not compared: HTTPRoute default/lost differs" in outcome.err


def test_files_of_another_controller_are_compared(diff: Diff) -> None:
    kind = ROUTE.replace(
        "{name: web, port", "{group: gateway.edge.io, kind: Backend, name: web, port"
    )
    kind = kind.replace(", port: 80", "")
    old = (FOREIGN, GATEWAY, kind, BACKEND)
    outcome = diff(old, old[:2], "--adopt")
    assert (outcome.status, outcome.err.count("accepted")) == (3, 1)
    assert diff(old, old, "--adopt").status == 0


def test_adoption_is_for_files_alone(diff: Diff) -> None:
    assert diff((ROUTE,), (ROUTE,), "--adopt", "--cluster").status == 2
