"""ConfigMap of a fleet: the authorities by which its proxies know the controller.

In: a fleet and the placement. Out: the manifest. Source: spec section 5 (only the CA certificate is mounted in Gateway
namespaces). Must never: hold a key.
"""

from __future__ import annotations

from controller.infra.metadata import render_metadata
from controller.infra.placement import CA_KEY, Manifest, Placement
from edgefast import ir


def render_config_map(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the ConfigMap; a changed bundle reaches running pods through the mounted folder."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": render_metadata(infra, place),
        "data": {CA_KEY: place.ca},
    }
