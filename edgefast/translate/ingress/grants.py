"""Grants: the ReferenceGrants of made objects to objects of other namespaces.

In: a kind and its namespace, the objects that it names. Out: ReferenceGrants with at most 16 objects each.
Must never: permit more than the made objects name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.api.gateway.referencegrant import (
    ReferenceGrant,
    ReferenceGrantFrom,
    ReferenceGrantSpec,
    ReferenceGrantTo,
)
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK
from edgefast.api.model.reference import GATEWAY_GROUP

__all__ = ["emit_grants"]

_GRANTS = 16


def emit_grants(
    kind: str, namespace: str, to_kind: str, to: str, names: Iterable[str]
) -> list[ReferenceGrant]:
    """Return the ReferenceGrants from a kind and namespace to objects (sorted) of another one."""
    group = EDGE_GROUP if to_kind == "Backend" else ""
    source_group = EDGE_GROUP if kind == "SecurityPolicy" else GATEWAY_GROUP
    made = []
    for number, part in enumerate(_chunks(list(names))):
        spec = ReferenceGrantSpec(
            from_=(ReferenceGrantFrom(group=source_group, kind=kind, namespace=namespace),),
            to=tuple(ReferenceGrantTo(group=group, kind=to_kind, name=one) for one in part),
        )
        name = f"{kind.lower()}.{namespace}{MARK}-{to_kind}-{number}"
        made.append(ReferenceGrant(metadata=ObjectMeta(name=name, namespace=to), spec=spec))
    return made


def _chunks(names: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(names), _GRANTS):
        yield names[at : at + _GRANTS]
