"""Foreign kinds: the problem of an object of a kind that edgefast does not read.

In: apiVersion and kind, and of an Ingress its annotations. Out: reason, message and severity. Files
often hold Deployments and other objects beside those of the gateway: that is no mistake. A mistake
is a kind of the Gateway API or of edgefast's group that is not read, and a name close to one that
is. The same applies to a kind by which another project serves requests (Ingress, VirtualService,
...): its author expects edgefast to serve requests.
Must never: guess what a foreign object means.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from edgefast.api.ingress.ingress import NETWORKING_GROUP
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS, KindInfo
from edgefast.api.migration.annotations import Unapplied, name_annotations
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.route_name import ROUTE_KINDS
from edgefast.diagnostics.problem import Severity, did_you_mean
from edgefast.diagnostics.reasons.word import Word

#: The reason given to objects that are well known and none of our business.
IGNORED: Final = "Ignored"

CORE_KINDS = frozenset(
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
#: Other kinds of the Gateway API, past and experimental: no slips of the pen.
UNREAD_KINDS = frozenset({"BackendLBPolicy", "MeshTLSPolicy", "XMesh"})
#: Groups with kinds of the Gateway API and of edgefast.
OUR_GROUPS = (EDGE_GROUP, GATEWAY_GROUP, EXPERIMENTAL_GROUP)
#: Groups that the Gateway API had before, or has for experiments; kinds of ours in them are meant for us.
_OLD_GROUPS = frozenset({"networking.x-k8s.io", "gateway.networking.x-k8s.io"})
#: Kinds by which other APIs route requests: group -> kinds.
_SERVING = {
    "apisix.apache.org": {"ApisixRoute"},
    "configuration.konghq.com": {"TCPIngress", "UDPIngress"},
    "extensions": {"Ingress"},
    "gateway.solo.io": {"RouteTable", "VirtualService"},
    "getambassador.io": {"Mapping", "TCPMapping"},
    "k8s.nginx.org": {"TransportServer", "VirtualServer", "VirtualServerRoute"},
    "networking.istio.io": {"Gateway", "VirtualService"},
    "projectcontour.io": {"HTTPProxy"},
    "route.openshift.io": {"Route"},
    "traefik.containo.us": {"IngressRoute", "IngressRouteTCP", "IngressRouteUDP"},
    "traefik.io": {"IngressRoute", "IngressRouteTCP", "IngressRouteUDP"},
}
#: Kinds that are written for requests to be served, whosever group is before them.
_ROUTED = frozenset({*ROUTE_KINDS, "ListenerSet"})
#: Of the letters of an apiVersion, how many must agree for it to be taken for a slip.
_SLIP = 0.9
_GROUPS = frozenset({"apps", "autoscaling", "batch", "policy", "discovery.k8s.io"})
#: Groups of Kubernetes whose objects no policy of ours names.
OTHER_GROUPS = _GROUPS | {"multicluster.x-k8s.io"}


class Classification(msgspec.Struct, frozen=True):
    """What to report about `field` of a foreign object."""

    field: str
    reason: Word
    message: str
    hint: str
    severity: Severity
    parts: tuple[Unapplied, ...] = ()  # what its annotations ask for


def is_foreign_server(group: str, kind: str) -> bool:
    """Tell whether another project routes requests with this kind; no listener of edgefast accepts it."""
    return kind in _SERVING.get(group, ())


def classify_foreign(api_version: str, kind: str, raw: Mapping[str, Any]) -> Classification:
    """Judge an object that KINDS does not have under this apiVersion; `raw` is its document."""
    group = api_version.rpartition("/")[0]
    if kind == "EdgeGateway":
        return Classification(
            "kind", "Forbidden", "pass the configuration with --config", "", "error"
        )
    if is_foreign_server(group, kind):
        message, hint = (
            f"edgefast does not serve {kind} of {api_version}",
            "write an HTTPRoute that names a Gateway in parentRefs",
        )
        if kind == "Ingress":
            hint = f"write apiVersion: {NETWORKING_GROUP}/v1"
        if kind == "Gateway":
            hint = f"write a Gateway of {GATEWAY_GROUP}/v1"
        parts = tuple(name_annotations(raw)) if kind == "Ingress" else ()
        return Classification("kind", "NotSupported", message, hint, "error", parts)
    same_kind = [info for info in KINDS.values() if info.kind == kind.removeprefix("X")]
    # An XBackend has nothing but the name in common with a Backend of ours.
    grown = [info for info in same_kind if info.group == GATEWAY_GROUP]
    if grown and group in _OLD_GROUPS:
        guess = _versions_of(grown)
        decision = _unsupported("apiVersion", api_version, guess)
        return msgspec.structs.replace(decision, hint=f"did you mean {guess[0]}?")
    same_kind = [info for info in same_kind if info.kind == kind]
    for info in same_kind:
        if info.group == group or is_slip(api_version, info.api_versions):
            return _unsupported("apiVersion", api_version, list(info.api_versions))
    if same_kind:
        decision = _unsupported("apiVersion", api_version, _versions_of(same_kind))
        written = group.partition("/")[0].lower()
        ours = kind in _ROUTED or "." not in written or written in OUR_GROUPS
        severity: Severity = "error" if ours else "warning"
        # The group that has no name is called core where there is room for prose.
        core = [info.api_versions[0] for info in same_kind if group == "core" and not info.group]
        hint = f"did you mean {core[0]}?" if core else ""
        return msgspec.structs.replace(decision, hint=hint, severity=severity)
    in_group = [info.kind for info in KINDS.values() if info.group == group]
    if group in (GATEWAY_GROUP, *_OLD_GROUPS, EDGE_GROUP):
        if not in_group or group in _OLD_GROUPS:
            message = f'"{kind}" of {api_version} is not served'
            return Classification("kind", "NotSupported", message, "", "error")
        decision = _unsupported("kind", kind, in_group)
        return msgspec.structs.replace(decision, hint="") if kind in UNREAD_KINDS else decision
    if (not group and kind in CORE_KINDS) or group in _GROUPS or group.endswith(".k8s.io"):
        return Classification("", IGNORED, "a gateway does not read this kind", "", "warning")
    message = f'"{kind}" of {api_version} is not known'
    return Classification(
        "kind", "NotSupported", message, _guess_kind(api_version, kind), "warning"
    )


def api_version_of(kind: object) -> str:
    """Return the apiVersion to write for a kind that has none, "" for one that is not known."""
    return next((info.api_versions[0] for info in KINDS.values() if info.kind == kind), "")


def _versions_of(kinds: list[KindInfo]) -> list[str]:
    return [version for info in kinds for version in info.api_versions]


def _guess_kind(api_version: str, kind: str) -> str:
    """Return the hint at the kind of ours that is meant; of another project's group none is."""
    near = [info.kind for info in KINDS.values() if api_version in info.api_versions]
    near = near or [info.kind for info in KINDS.values() if is_slip(api_version, info.api_versions)]
    return did_you_mean(kind, near)


def is_slip(value: str, allowed: tuple[str, ...]) -> bool:
    """Tell a slip of the pen from another project's group of a similar name."""
    return any(difflib.SequenceMatcher(a=value, b=one).ratio() >= _SLIP for one in allowed)


def _unsupported(field: str, value: str, allowed: list[str]) -> Classification:
    return Classification(
        field,
        "NotSupported",
        f'"{value}" (supported: {", ".join(allowed)})',
        did_you_mean(value, allowed),
        "error",
    )
