"""Misspelled policy: an object that is a policy except for its group or kind closes its targets.

In: the plain value of a document with an unsupported kind or apiVersion.
Out: the kind of policy that it counts as, "" if none; its targets; whether a target cannot be read.
A kind counts by its exact name. An unknown kind counts if the object names targets, and its group
is not another project's.
Must never: raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from edgefast.api.decode.fail_closed.fuzzy import names_of
from edgefast.api.decode.fail_closed.policy import read_policy_targets
from edgefast.api.edge.backend import BackendSpec
from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicy,
    BackendTrafficPolicySpec,
)
from edgefast.api.edge.httproutefilter import HTTPRouteFilterSpec
from edgefast.api.edge.policy_target import BACKEND_TARGETS, PolicyTarget, group_of_target
from edgefast.api.edge.ratelimitfilter import RateLimitFilterSpec
from edgefast.api.edge.securitypolicy import SecurityPolicy, SecurityPolicySpec
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
from edgefast.api.gateway.xbackendtrafficpolicy import XBackendTrafficPolicy
from edgefast.api.ingress.ingress import NETWORKING_GROUP
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS
from edgefast.api.limits import MAX_SHOWN_NAME
from edgefast.api.loaded import Path
from edgefast.api.migration.foreign_kinds import OTHER_GROUPS, UNREAD_KINDS, is_slip
from edgefast.api.migration.foreign_policy import read_targets
from edgefast.api.migration.target import Target
from edgefast.api.model.reference import GATEWAY_GROUP

__all__ = ["CLOSING_KINDS", "is_lost", "guess_policy", "guess_targets"]

#: Kinds whose objects close what they are for when they cannot be read, and their groups.
CLOSING_KINDS: dict[str, str] = {
    SecurityPolicy.__name__: EDGE_GROUP,
    BackendTrafficPolicy.__name__: EDGE_GROUP,
    XBackendTrafficPolicy.__name__: EXPERIMENTAL_GROUP,
    BackendTLSPolicy.__name__: GATEWAY_GROUP,
}
_GROUPS = (EDGE_GROUP, GATEWAY_GROUP, EXPERIMENTAL_GROUP)
_VERSIONS = tuple(
    sorted(
        {
            one
            for info in KINDS.values()
            if "." in info.group and info.group != NETWORKING_GROUP  # it has no policies of ours
            for one in info.api_versions
        }
    )
)
_OTHERS = frozenset(one.kind for one in KINDS.values()) | UNREAD_KINDS
_AIMS = ("targetRef", "targetRefs", "targetSelectors")


def guess_policy(raw: dict[str, Any], api_version: object, kind: object) -> str:
    """Return the kind of policy that an object counts as."""
    text = api_version[:MAX_SHOWN_NAME].lower() if isinstance(api_version, str) else ""
    group = text.partition("/")[0] if "/" in text or text in _GROUPS else ""
    if "." in group and group not in _GROUPS and not is_slip(text, _VERSIONS):
        return ""
    if isinstance(kind, str) and kind in CLOSING_KINDS:
        return kind
    if group in OTHER_GROUPS or (isinstance(kind, str) and kind in _OTHERS):
        return ""
    return _by_targets(raw, group) if _is_aimed(raw, group) else ""


def _is_aimed(raw: dict[str, Any], group: str) -> bool:
    """Tell whether an object names targets; of our own group, whether it has a field of a policy."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return group == EDGE_GROUP and spec is not None
    return any(spec.get(one) is not None for one in _AIMS) or (
        group == EDGE_GROUP and not _policy_fields().isdisjoint(spec)
    )


def _policy_fields() -> frozenset[str]:
    """Return the fields that only policies have."""
    policies = (SecurityPolicySpec, BackendTrafficPolicySpec)
    others = (BackendSpec, HTTPRouteFilterSpec, RateLimitFilterSpec)
    found = frozenset(name for one in policies for name in names_of(one))
    return found.difference(*(names_of(one) for one in others))


def _by_targets(raw: dict[str, Any], group: str) -> str:
    """Return the kind of policy of ours that names such targets: a SecurityPolicy has no backends."""
    spec = raw.get("spec")
    aims = read_policy_targets(spec, unread=_nothing) if isinstance(spec, dict) else ()
    others = {one.path for one in aims if one.kind not in BACKEND_TARGETS}
    if all(one.path in others for one in aims):
        return SecurityPolicy.__name__
    named = XBackendTrafficPolicy if group == EXPERIMENTAL_GROUP else BackendTrafficPolicy
    return named.__name__


def _nothing(_: Path) -> tuple[PolicyTarget, ...]:
    return ()


def guess_targets(raw: dict[str, Any], policy: str, namespace: str) -> tuple[Target, ...]:
    """Return the targets that a policy with a mistake may name."""
    spec = raw.get("spec")
    if policy == BackendTLSPolicy.__name__ or not isinstance(spec, dict):
        return read_targets(raw, namespace)
    return tuple(
        Target(
            path=one.path,
            group=group_of_target(one.kind),
            kind=one.kind,
            namespace=namespace,
            name=one.name,
            selector=one.selector,
            section=one.section,
        )
        for one in read_policy_targets(spec, unread=_nothing, policy=policy)
    )


def is_lost(raw: dict[str, Any], policy: str, repeated: Collection[Path]) -> bool:
    """Tell whether a target of a policy cannot be read, or none: it may be anything of the namespace. Of a field that is given twice the first is lost."""
    spec = raw.get("spec")
    if not isinstance(spec, dict) or not any(True for _ in read_targets(raw, "")):
        return True
    if any(one == ("spec",) or (one[:1] == ("spec",) and one[1:2] in _TOLD) for one in repeated):
        return True
    missed: list[Path] = []

    def miss(path: Path) -> tuple[()]:
        missed.append(path)
        return ()

    if policy != BackendTLSPolicy.__name__:
        read_policy_targets(spec, unread=miss, policy=policy)
    return bool(missed)


_TOLD = tuple((one,) for one in _AIMS)
