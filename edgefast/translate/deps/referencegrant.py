"""ReferenceGrant: checks whether a ReferenceGrant allows a reference across namespaces.

In: all ReferenceGrants, and both ends of a reference. Out: yes or no, and the message for no. A
grant is in the namespace of the target; a reference inside one namespace needs none.
Source: Gateway API ReferenceGrant; the removal of a grant takes effect with the next translation.
Must never: look whether the target exists; "not permitted" must not reveal what exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgefast.api.gateway.referencegrant import ReferenceGrant
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import Problem, supported_text
from edgefast.translate.report.unsupported_fields import closing_problems

Grants = Mapping[str, tuple[ReferenceGrant, ...]]

#: Kinds of ours that refer across namespaces; all others are of the Gateway API.
_OWN_KINDS = ("SecurityPolicy", "BackendTrafficPolicy")


def index_grants(snapshot: Snapshot) -> Grants:
    """Return the grants by the namespace they are in, each tuple by name.

    One with a field that is not served grants nothing: the field may narrow what it allows.
    """
    index: dict[str, list[ReferenceGrant]] = {}
    for (namespace, _), grant in snapshot.reference_grants.items():
        if not grant.unserved:
            index.setdefault(namespace, []).append(grant)
    return {namespace: tuple(grants) for namespace, grants in index.items()}


def check_grants(snapshot: Snapshot) -> Iterator[Problem]:
    """Report the grants that grant nothing because of a field that is not served."""
    for grant in snapshot.reference_grants.values():
        if grant.unserved:
            yield from closing_problems(grant, "the grant has no effect", "NotSupported")


def is_granted(
    grants: tuple[ReferenceGrant, ...],
    *,
    kind: str,
    namespace: str,
    to_group: str,
    to_kind: str,
    to_name: str,
) -> bool:
    """Tell whether an object of a `kind` of ours or of the Gateway API in `namespace` may refer to the target.

    `grants` are those of the target's namespace.
    """
    group = EDGE_GROUP if kind in _OWN_KINDS else GATEWAY_GROUP
    return any(
        any(
            source.group == group and source.kind == kind and source.namespace == namespace
            for source in grant.spec.from_
        )
        and any(
            target.group == to_group and target.kind == to_kind and target.name in (None, to_name)
            for target in grant.spec.to
        )
        for grant in grants
    )


def refusal_text(kind: str, namespace: str, to_kind: str, to_namespace: str, to_name: str) -> str:
    """Say which grant is missing."""
    kinds = f"{kind[:-1]}ies" if kind.endswith("cy") else f"{kind}s"
    return f"no ReferenceGrant in namespace {to_namespace} allows {kinds} of namespace {namespace} to refer to {to_kind} {to_namespace}/{to_name}"


def core_hint(group: str) -> str:
    """Return what to write for the core group, which other tools call "core"."""
    return 'the core group is written ""' if group == "core" else ""


def wrong_kind_text(group: str, kind: str, *supported: str) -> str:
    """Say that a reference names a kind it cannot name; the supported ones are of the core group."""
    message = supported_text(f"{group}/{kind}" if group else kind, supported)
    return ", ".join(part for part in (message, core_hint(group)) if part)
