"""Untargeted policy: policies of other projects that apply without a reference to a target.

In: the group and kind of a document, its `spec`. Out: targets, by the rules of the project that
reads the kind.
Source: Istio AuthorizationPolicy, RequestAuthentication, WasmPlugin and EnvoyFilter; Traefik
TLSOption; Kong KongClusterPlugin. Istio kinds apply to the pods of the namespace that a selector
chooses, and to all without one. Those of the root namespace apply to all namespaces. Pods of a
Gateway have the Gateway's labels. The TLSOption with the name default applies to all that name
none. A KongClusterPlugin with the label global applies to everything.
Must never: read what a policy does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgefast.api.loaded import Path
from edgefast.api.migration.target import Target
from edgefast.api.model.meta import LabelSelector
from edgefast.api.model.reference import GATEWAY_GROUP

__all__ = ["find_untargeted"]

#: (group, kind) -> the field with the selector, and the field in that with the labels.
_ISTIO = {
    ("security.istio.io", "AuthorizationPolicy"): ("selector", "matchLabels"),
    ("security.istio.io", "RequestAuthentication"): ("selector", "matchLabels"),
    ("extensions.istio.io", "WasmPlugin"): ("selector", "matchLabels"),
    ("networking.istio.io", "EnvoyFilter"): ("workloadSelector", "labels"),
}
#: Where meshConfig.rootNamespace is by default; nothing in files says otherwise.
_ISTIO_ROOT = "istio-system"
_KONG = ("configuration.konghq.com", "KongClusterPlugin")
_TRAEFIK = frozenset({"traefik.io", "traefik.containo.us"})


def find_untargeted(
    group: str,
    kind: str,
    name: str,
    namespace: str,
    spec: dict[str, Any],
    labels: Mapping[str, Any],
) -> Iterator[Target]:
    """Give the Gateways that a policy is for, in what all of them are called: a selector."""
    if group in _TRAEFIK and (kind, name) == ("TLSOption", "default"):
        yield _gateways(("metadata", "name"), "", LabelSelector())
    if (group, kind) == _KONG and labels.get("global") in ("true", True):
        yield _gateways(("metadata", "labels"), "", LabelSelector())
    fields = _ISTIO.get((group, kind))
    if fields is None or spec.get("targetRef") or spec.get("targetRefs"):
        return
    where = "" if namespace == _ISTIO_ROOT else namespace
    given = spec.get(fields[0])
    chosen_by = given.get(fields[1]) if isinstance(given, dict) else None
    if not chosen_by:
        yield _gateways(("spec",), where, LabelSelector())
        return
    try:
        chosen = msgspec.convert({"matchLabels": chosen_by}, LabelSelector)
    except msgspec.ValidationError:
        return
    yield _gateways(("spec", *fields), where, chosen)


def _gateways(path: Path, namespace: str, selector: LabelSelector) -> Target:
    return Target(path, GATEWAY_GROUP, "Gateway", namespace, "", selector, of_pods=True)
