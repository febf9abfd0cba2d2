"""ObjectRef: one object by kind, namespace and name, and its fleet.

In: manifests and live objects as plain values.
Out: keys that are equal when the objects are. The order of kinds is the order in which a fleet's
objects are created.
Must never: read anything but kind and metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from controller.fleets.placement import client_secret_name

#: (apiVersion, kind) of all that is made for fleets, in the order of their making: what pods need comes first.
APPLIED = (
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
)
WORKLOADS = ("Deployment", "DaemonSet")
API_VERSION = {kind: version for version, kind in APPLIED}
_ORDER = {kind: at for at, (_, kind) in enumerate(APPLIED)}
_SECRET_END = client_secret_name("")


class ObjectRef(msgspec.Struct, frozen=True):
    """One object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def fleet(self) -> str:
        """Key of the fleet, "namespace/name": names of objects are the fleet's, but for the client's Secret."""
        name = self.name.removesuffix(_SECRET_END) if self.kind == "Secret" else self.name
        return f"{self.namespace}/{name}"

    @property
    def order(self) -> int:
        """Place in the order of making."""
        return _ORDER[self.kind]


def ref_of_manifest(manifest: Mapping[str, Any]) -> ObjectRef:
    """Return the reference of a manifest; KeyError for a kind that is not APPLIED."""
    meta = manifest["metadata"]
    ref = ObjectRef(manifest["kind"], meta["namespace"], meta["name"])
    _ = ref.order
    return ref
