"""ServiceAccount of a fleet: the identity behind its tokens; it has no rights and is mounted nowhere by itself.

In: a fleet and the placement. Out: the manifest. Source: spec section 5. Must never: be bound to a role.
"""

from __future__ import annotations

from controller.infra.metadata import render_metadata
from controller.infra.placement import Manifest, Placement
from edgefast import ir


def render_service_account(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the ServiceAccount that the fleet's pods run as."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": render_metadata(infra, place),
        "automountServiceAccountToken": False,
    }
