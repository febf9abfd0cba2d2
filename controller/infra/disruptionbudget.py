"""PodDisruptionBudget of a fleet.

In: a fleet with `pdb`, and the placement. Out: the manifest. Source: EdgeProxy spec.pdb.
Must never: set both bounds; the API refuses it.
"""

from __future__ import annotations

from typing import Literal

from controller.infra.metadata import render_metadata
from controller.infra.placement import Manifest, Placement
from edgefast import ir


def render_pdb(
    infra: ir.Infra,
    place: Placement,
    bound: tuple[Literal["minAvailable", "maxUnavailable"], int | str],
) -> Manifest:
    """Return the budget of the fleet's pods."""
    name, pods = bound
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": render_metadata(infra, place),
        "spec": {"selector": {"matchLabels": dict(infra.selector)}, name: pods},
    }
