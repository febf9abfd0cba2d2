"""Owner: the Gateway or class of a fleet, as its own objects record it.

In: labels and owner references of a fleet's object.
Out: the Gateway or class for which it was created. After a restart, this is the only record; the
memory of a process never removes a fleet from its owner.
Source: spec section 2 (labels of generated resources).
Must never: guess from names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from edgefast.api.kinds import EDGE_GROUP

__all__ = ["NO_OWNER", "Owner", "class_of", "owner_of"]


class Owner(msgspec.Struct, frozen=True):
    """Whose a fleet is, as its labels say; "" for what they leave open. All of it "": nobody's."""

    namespace: str = ""
    gateway: str = ""
    gateway_class: str = ""


NO_OWNER = Owner()


def owner_of(labels: Mapping[str, str]) -> Owner:
    """Read the owner from the labels of a fleet's object."""
    return Owner(
        labels.get(f"{EDGE_GROUP}/owning-gateway-namespace", ""),
        labels.get(f"{EDGE_GROUP}/owning-gateway-name", ""),
        labels.get(f"{EDGE_GROUP}/owning-gatewayclass", ""),
    )


def class_of(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return the GatewayClass that a fleet's objects are owned by, "" where their owner is the Gateway itself.

    Not each of them says so: a client certificate's Secret is owned by the fleet's ServiceAccount.
    """
    for live in objects:
        for one in live["metadata"].get("ownerReferences") or ():
            if one.get("kind") == "GatewayClass":
                return str(one.get("name", ""))
    return ""
