"""Policy summary: what routes see of a policy: its identity, its units and its merge type.

In: SecurityPolicies and BackendTrafficPolicies. Out: plain values, by target. A summary excludes
the content of units. A unit is a resource of its own beside clusters (ir.PolicyUnit). An edit of a
policy of ten thousand routes therefore translates none of them.
Must never: hold the content of a unit, or a target in another namespace that is not permitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, cast

import msgspec

from edgefast import ir
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP
from edgefast.diagnostics.problem import ObjectRef

__all__ = [
    "CLOSED",
    "FAMILY_OF",
    "Family",
    "GROUP_OF",
    "KIND_OF",
    "Level",
    "Merge",
    "OWN_KINDS",
    "PolicySummary",
    "Target",
    "Unit",
    "is_foreign_unit",
    "name_foreign",
    "owner_of_unit",
    "ref_of_owner",
    "split_unit",
]


#: Nanoseconds since 1970, namespace/name (match/precedence.py).
Age = tuple[int, str]
#: What policies of one kind are called where their units are named.
Family = Literal["security", "traffic", "xtraffic"]
Merge = Literal["Inherit", "Replace", "Override"]
Unit = Literal[
    "closed", "authorization", "apiKeyAuth", "basicAuth", "oidc", "jwt", "extAuth", "traffic"
]

#: The unit of a policy with a mistake as a whole: all requests that it is for are answered 500.
CLOSED: Unit = "closed"
KIND_OF: dict[Family, str] = {
    "security": "SecurityPolicy",
    "traffic": "BackendTrafficPolicy",
    "xtraffic": "XBackendTrafficPolicy",
}
FAMILY_OF: dict[str, Family] = {kind: family for family, kind in KIND_OF.items()}
#: Groups of these kinds.
GROUP_OF = {
    kind: EXPERIMENTAL_GROUP if family == "xtraffic" else EDGE_GROUP
    for family, kind in KIND_OF.items()
}
#: (group, kind) of the policies that have shapes.
OWN_KINDS = frozenset((group, kind) for kind, group in GROUP_OF.items())

#: The separator between the name of a foreign policy and its kind and group, in the key that closes its targets.
_FOREIGN = "?"

#: Kind, namespace, name, sectionName or "".
Target = tuple[str, str, str, str]


class PolicySummary(msgspec.Struct, frozen=True, gc=False):
    """One policy on one of its targets."""

    age: Age  # the older comes first; the owner is the second part of it
    family: Family
    units: tuple[Unit, ...]
    merge: Merge = "Inherit"
    asks: tuple[str, ...] = ()  # conditions of its authorization beside addresses, as field names

    @property
    def owner(self) -> str:
        """Its name: "namespace/name"."""
        return self.age[1]

    @property
    def name(self) -> str:
        """What it is called among policies of all kinds: what a unit's name begins with."""
        return f"{self.family}/{self.age[1]}"

    def unit(self, unit: Unit) -> str:
        """Return the name of one of its units (ir.PolicyUnit.name)."""
        return self.name if unit == "traffic" else f"{self.name}#{unit}"


#: Policies on one target, the oldest first.
Level = tuple[PolicySummary, ...]


def split_unit(name: str) -> tuple[Family, str]:
    """Return the family and the owner's name in the name of a unit or policy (`PolicySummary.name`, `PolicySummary.unit`)."""
    family, _, owner = name.partition("#")[0].partition("/")
    return cast(Family, family), owner


def owner_of_unit(name: str) -> str:
    """Return the policy that a unit or policy of this name is of, in words: "SecurityPolicy namespace/name"."""
    return str(ref_of_owner(*split_unit(name)))


def name_foreign(ref: ObjectRef) -> str:
    """Return the name under which a foreign policy that decides access closes its targets."""
    return f"{ref.name}{_FOREIGN}{ref.kind}.{ref.group}"


def is_foreign_unit(name: str) -> bool:
    """Tell whether a unit of this name closes the target of a foreign policy."""
    return "." in name.partition("#")[0].partition(_FOREIGN)[2]


def ref_of_owner(family: Family, owner: str) -> ObjectRef:
    """Return the policy, possibly a foreign one, with this owner's name."""
    namespace, _, name = owner.partition("/")
    plain, _, type_ = name.partition(_FOREIGN)
    kind, dot, group = type_.partition(".")
    if dot:
        return ObjectRef(kind, namespace, plain, group)
    return ObjectRef(KIND_OF[family], namespace, name, GROUP_OF[KIND_OF[family]])


# --- policyView: a BackendTLSPolicy in force, as routes and clusters see it ---


class TlsPolicyView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One policy on one Service, or on one port of it."""

    policy: str  # "namespace/name"
    section: str  # port name, "" for all ports without a policy of their own
    broken: str = ""  # why requests must fail, "" when it works
    tls: ir.UpstreamTls | None = None
    secrets: tuple[ir.Secret, ...] = ()


def policy_for(views: Iterable[TlsPolicyView], port: str) -> TlsPolicyView | None:
    """Return the policy of a port: its own before the whole Service's."""
    whole = None
    for view in views:
        if view.section == port and port:
            return view
        if not view.section:
            whole = view
    return whole
