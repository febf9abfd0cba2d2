"""References: objects of Envoy Gateway that other objects name, by the names of edgefast's kinds.

In: any plain document. Out: the same document, changed in place: a reference to a Backend, HTTPRouteFilter or policy of
gateway.envoyproxy.io names the kind of gateway.edge.io that it is read as. edgefast/translate/adoption replaces references to an
EnvoyProxy, because one that is in no file is ignored.
Must never: change a reference to another kind.
"""

from __future__ import annotations

from typing import Any

from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.migration.adoption.adopted_document import ENVOY_GROUP

__all__ = ["ADOPTED_KINDS", "is_adoptable", "rename_references"]

#: Kinds of Envoy Gateway, and the kinds of edgefast as which they are read.
ADOPTED_KINDS = {
    "Backend": "Backend",
    "BackendTrafficPolicy": "BackendTrafficPolicy",
    "ClientTrafficPolicy": "EdgeProxy",
    "EnvoyProxy": "EdgeProxy",
    "HTTPRouteFilter": "HTTPRouteFilter",
    "SecurityPolicy": "SecurityPolicy",
}
#: The policies are those of ReferenceGrants.
_RENAMED = ("Backend", "BackendTrafficPolicy", "HTTPRouteFilter", "SecurityPolicy")
#: Levels of a document that are looked into; the decoder reads no more.
_DEEPEST = 64


def is_adoptable(group: str, kind: str) -> bool:
    """Tell whether `--adopt` serves a kind."""
    return group == ENVOY_GROUP and kind in ADOPTED_KINDS


def rename_references(value: Any, depth: int = 0) -> None:
    """Rename the references below a plain value, in place."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for one in value:
            rename_references(one, depth + 1)
    elif isinstance(value, dict):
        if value.get("group") == ENVOY_GROUP and value.get("kind") in _RENAMED:
            value["group"] = EDGE_GROUP
        for one in value.values():
            if isinstance(one, dict | list):
                rename_references(one, depth + 1)
