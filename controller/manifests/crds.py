"""CustomResourceDefinitions of edgefast's own kinds, made from the models.

In: nothing.
Out: manifests (apiextensions.k8s.io/v1) with structural schemas, CEL rules, defaults, print
columns, short names and category `edge`. The Gateway API project publishes the CRDs of its kinds.
Must never: be edited in `chart/crds`; `generate.py` writes those files.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from controller.manifests.objects import Manifest
from controller.manifests.policy_status import POLICY_STATUS
from edgefast.api.kinds import EDGE_GROUP, KINDS
from edgefast.api.schema.schema import json_schema


class Looks(Struct, frozen=True):
    """How `kubectl get` names and shows a kind: short names, and columns as (title, type, path); `status` is its schema."""

    singular: str
    short: tuple[str, ...]
    columns: tuple[tuple[str, str, str], ...]
    status: Manifest | None = None


_POLICY_COLUMNS: Final = (
    ("Target", "string", ".spec.targetRefs[0].kind"),
    ("Name", "string", ".spec.targetRefs[0].name"),
    ("Merge", "string", ".spec.mergeType"),
)


LOOKS: Final = {
    "EdgeProxy": Looks(
        "edgeproxy",
        ("epx",),
        (
            ("Merged", "boolean", ".spec.mergeGateways"),
            ("Replicas", "integer", ".spec.deployment.replicas"),
            ("Service", "string", ".spec.service.type"),
        ),
    ),
    "RateLimitFilter": Looks(
        "ratelimitfilter",
        ("rlf",),
        (
            ("Type", "string", ".spec.type"),
            ("Requests", "integer", ".spec.global.rules[0].limit.requests"),
            ("Unit", "string", ".spec.global.rules[0].limit.unit"),
        ),
    ),
    "Backend": Looks(
        "backend",
        ("be",),
        (
            ("Host", "string", ".spec.endpoints[0].fqdn.hostname"),
            ("Address", "string", ".spec.endpoints[0].ip.address"),
            ("Socket", "string", ".spec.endpoints[0].unix.path"),
        ),
    ),
    "SecurityPolicy": Looks("securitypolicy", ("esp",), _POLICY_COLUMNS, POLICY_STATUS),
    "BackendTrafficPolicy": Looks(
        "backendtrafficpolicy", ("ebtp",), _POLICY_COLUMNS, POLICY_STATUS
    ),
    "HTTPRouteFilter": Looks(
        "httproutefilter", ("ehrf",), (("Status", "integer", ".spec.directResponse.statusCode"),)
    ),
}
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def render_crds() -> tuple[Manifest, ...]:
    """Return the CRDs, sorted by name."""
    found = [_render(kind) for kind in LOOKS]
    return tuple(sorted(found, key=lambda one: str(one["metadata"]["name"])))


def _render(kind: str) -> Manifest:
    info, looks = KINDS[EDGE_GROUP, kind], LOOKS[kind]
    schema = json_schema(kind)
    if looks.status is not None:
        schema["properties"]["status"] = looks.status
    versions: list[dict[str, Any]] = [
        {
            "name": version,
            "served": True,
            "storage": version == info.versions[0],
            "schema": {"openAPIV3Schema": schema},
            **({"subresources": {"status": {}}} if looks.status is not None else {}),
            "additionalPrinterColumns": [
                *(
                    {"name": title, "type": of, "jsonPath": path}
                    for title, of, path in looks.columns
                ),
                _AGE,
            ],
        }
        for version in info.versions
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{info.plural}.{EDGE_GROUP}",
            "labels": {"app.kubernetes.io/name": "edge-gateway"},
        },
        "spec": {
            "group": EDGE_GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": info.plural,
                "singular": looks.singular,
                "shortNames": list(looks.short),
                "categories": ["edge"],
            },
            "scope": "Namespaced",
            "versions": versions,
        },
    }
