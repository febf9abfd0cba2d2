"""Installations for tests: values as settings in, manifests out."""

from __future__ import annotations

from typing import Any

import yaml

from controller.manifests.load import load_install
from controller.manifests.naming import Release
from controller.manifests.objects import Manifest
from controller.manifests.render import render_install

DEFAULT = Release()
OTHER = Release("marketing", "team-a")

GATEWAY_NAMESPACE = {"deploy": {"type": "GatewayNamespace"}}
LISTED = {"watch": {"type": "Namespaces", "namespaces": ["team-b", "team-a"]}}
LABELLED = {
    "watch": {"type": "NamespaceSelector", "namespaceSelector": {"matchLabels": {"edge": "yes"}}}
}


def provider(*parts: dict[str, Any], name: str = "orchestrator") -> dict[str, Any]:
    """Values with settings of the cluster provider."""
    merged = {key: value for part in parts for key, value in part.items()}
    return {"config": {"edgeGateway": {"provider": {name: merged}}}}


def render(
    values: dict[str, Any] | None = None, *settings: str, release: Release = DEFAULT
) -> tuple[Manifest, ...]:
    """All manifests but the CRDs; the values must be sound."""
    files = [("values.yaml", yaml.safe_dump(values).encode())] if values else []
    made, problems = load_install(release, files, settings)
    assert made is not None, problems
    return render_install(made, crds=False)


def refused(values: dict[str, Any] | None = None, *settings: str) -> list[str]:
    """What is said about values that are not sound."""
    files = [("values.yaml", yaml.safe_dump(values).encode())] if values else []
    made, problems = load_install(DEFAULT, files, settings)
    assert made is None
    return [f"{one.source or ''} {one.text()}".strip() for one in problems]


def of(manifests: tuple[Manifest, ...], *kinds: str) -> dict[str, Manifest]:
    """The manifests of some kinds as namespace/name (name for cluster-wide ones)."""
    found = {}
    for one in manifests:
        if one["kind"] in kinds:
            meta = one["metadata"]
            found["/".join(filter(None, (meta.get("namespace"), meta["name"])))] = one
    return found


def one(manifests: tuple[Manifest, ...], kind: str, name: str = "edge-gateway") -> Manifest:
    """The one manifest of a kind and name."""
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found
