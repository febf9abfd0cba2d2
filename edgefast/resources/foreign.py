"""Objects that are not ours: what to say of a kind that nobody here reads.

In: apiVersion and kind. Out: reason, words and severity. Files often hold Deployments and other
objects beside those of the gateway: that is no mistake. A kind of the Gateway API or of our own
group that is not read, or a name just beside one that is, is a mistake.
Must never: guess what a foreign object means.
"""

from __future__ import annotations

import difflib
from typing import Final

import msgspec

from edgefast.problem import Severity, did_you_mean
from edgefast.reasons.word import Word
from edgefast.resources.kinds import EDGE_GROUP, KINDS
from edgefast.resources.reference import GATEWAY_GROUP

#: The reason given to objects that are well known and none of our business.
IGNORED: Final = "Ignored"

_CORE = frozenset(
    {
        "Endpoints",
        "Event",
        "LimitRange",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ReplicationController",
        "ResourceQuota",
        "ServiceAccount",
    }
)
#: Kinds of the Gateway API that are no slips of the pen, and not read.
_UNREAD = frozenset({"GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"})
#: Of the letters of an apiVersion, how many must agree for it to be taken for a slip.
_SLIP = 0.9
_GROUPS = frozenset({"apps", "autoscaling", "batch", "policy", "discovery.k8s.io"})


class Verdict(msgspec.Struct, frozen=True):
    """What to report about `field` of a foreign object."""

    field: str
    reason: Word
    message: str
    hint: str
    severity: Severity


def judge_foreign(api_version: str, kind: str) -> Verdict:
    """Judge an object that KINDS does not have under this apiVersion."""
    group = api_version.rpartition("/")[0]
    if kind == "EdgeGateway":
        return Verdict("kind", "Forbidden", "configuration is given with --config", "", "error")
    same_kind = [info for info in KINDS.values() if info.kind == kind]
    for info in same_kind:
        if info.group == group or _is_slip(api_version, info.api_versions):
            return _unsupported("apiVersion", api_version, list(info.api_versions))
    if same_kind:
        allowed = [version for info in same_kind for version in info.api_versions]
        verdict = _unsupported("apiVersion", api_version, allowed)
        return msgspec.structs.replace(verdict, hint="", severity="warning")
    in_group = [info.kind for info in KINDS.values() if info.group == group]
    if group in (GATEWAY_GROUP, EDGE_GROUP):
        verdict = _unsupported("kind", kind, in_group)
        return msgspec.structs.replace(verdict, hint="") if kind in _UNREAD else verdict
    if (not group and kind in _CORE) or group in _GROUPS or group.endswith(".k8s.io"):
        return Verdict("", IGNORED, "not read by a gateway", "", "warning")
    kinds = sorted(info.kind for info in KINDS.values())
    return Verdict(
        "kind",
        "NotSupported",
        f'"{kind}" of {api_version} is not known',
        did_you_mean(kind, kinds),
        "warning",
    )


def _is_slip(value: str, allowed: tuple[str, ...]) -> bool:
    """Tell a slip of the pen from another project's group of a similar name."""
    return any(difflib.SequenceMatcher(a=value, b=one).ratio() >= _SLIP for one in allowed)


def _unsupported(field: str, value: str, allowed: list[str]) -> Verdict:
    return Verdict(
        field,
        "NotSupported",
        f'"{value}" (supported: {", ".join(allowed)})',
        did_you_mean(value, allowed),
        "error",
    )
