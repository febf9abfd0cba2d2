"""Managed objects: the objects in the cluster that this controller created.

In: live objects as plain values.
Out: the result as text. A managed object has edgefast's label and was applied by its field manager.
An object of the same name from another creator, or a copy of a managed object, is not managed.
Source: Kubernetes API, server-side apply (managedFields).
Must never: treat an object as managed because of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controller.fleets.placement import CONTROLLER_LABEL, MANAGER


def is_ours(live: Mapping[str, Any], identity: str) -> bool:
    """Tell whether an object may be changed and deleted without asking anybody."""
    labels = live["metadata"].get("labels") or {}
    return labels.get(CONTROLLER_LABEL) == identity and _was_applied(live)


def explain_foreign(live: Mapping[str, Any], identity: str) -> str:
    """Return why an object must not be touched, "" when it is ours and at most lost its label."""
    labels = live["metadata"].get("labels") or {}
    other = labels.get(CONTROLLER_LABEL, identity)
    if other != identity:
        return f"it belongs to the controller {other}"
    if not _was_applied(live):
        return "it exists and was not created by this controller"
    return ""


def owns_replicas(live: Mapping[str, Any]) -> bool:
    """Tell whether `spec.replicas` is a field that we have applied."""
    return any("f:replicas" in (one.get("f:spec") or {}) for one in _fields(live))


def _was_applied(live: Mapping[str, Any]) -> bool:
    return next(_fields(live), None) is not None


def _fields(live: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == MANAGER and entry.get("operation") == "Apply":
            yield entry.get("fieldsV1") or {}
