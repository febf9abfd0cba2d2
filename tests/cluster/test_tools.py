"""What the cluster tests build: versions said once, and what a machine without the tools is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.tools import build as building
from cluster.tools.build import MODULES, PROGRAMS, build
from cluster.tools.missing import MissingTool, built, debian
from cluster.tools.versions import (
    CERT_MANAGER,
    ENVOY_GATEWAY,
    GATEWAY_API,
    GHZ,
    GRPC,
    GRPCURL,
    H2SPEC,
    HELM,
    HYDRA,
    KUBERNETES,
    NEWEST_GATEWAY_API,
    PEBBLE,
)


@pytest.mark.parametrize(
    ("folder", "module", "version"),
    [
        ("kubernetes", "k8s.io/kubernetes", KUBERNETES),
        ("conformance", "sigs.k8s.io/gateway-api", GATEWAY_API),
        ("conformance", "sigs.k8s.io/gateway-api/conformance", GATEWAY_API),
        ("conformance_newest", "sigs.k8s.io/gateway-api", NEWEST_GATEWAY_API),
        ("conformance_newest", "sigs.k8s.io/gateway-api/conformance", NEWEST_GATEWAY_API),
        ("envoygateway", "github.com/envoyproxy/gateway", ENVOY_GATEWAY),
        ("helm", "helm.sh/helm/v4", HELM),
        ("h2spec", "github.com/summerwind/h2spec", H2SPEC),
        ("grpc", "google.golang.org/grpc", GRPC),
        ("grpc", "github.com/fullstorydev/grpcurl", GRPCURL),
        ("grpc", "github.com/bojand/ghz", GHZ),
        ("certmanager", "github.com/cert-manager/cert-manager", CERT_MANAGER),
        ("pebble", "github.com/letsencrypt/pebble/v2", PEBBLE),
        ("hydra", "github.com/ory/hydra/v2", HYDRA),
    ],
)
def test_modules_are_of_the_versions_named(folder: str, module: str, version: str) -> None:
    lines = [line.split() for line in (MODULES / folder / "go.mod").read_text().splitlines()]
    required = [line for line in lines if line[:1] == [module] or line[:2] == ["require", module]]
    assert [line[line.index(module) + 1] for line in required] == [version]


def test_what_is_built_is_not_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    said: list[str] = []
    build([name for name in PROGRAMS if PROGRAMS[name].target.exists()], said.append)
    assert said == []


def test_a_machine_without_go_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building.shutil, "which", lambda _: None)
    with pytest.raises(MissingTool, match=r"go \(1\.26 or newer.*build helm.*make test-cluster"):
        building.find_go("build helm")
    with pytest.raises(MissingTool, match=str(tmp_path)):
        built(tmp_path / "helm")
    monkeypatch.undo()
    with pytest.raises(MissingTool, match="no-such-program"):
        debian("no-such-program")
