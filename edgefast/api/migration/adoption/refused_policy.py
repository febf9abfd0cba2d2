"""Refused policy: a policy of Envoy Gateway that `--adopt` cannot read as one of edgefast.

In: its plain document. Out: a message, and the fields that decide access or a limit: they close its targets.
Must never: read a value; it may be a secret.
"""

from __future__ import annotations

from typing import Any

from edgefast.api.migration.adoption.adopted_document import ENVOY_GROUP, Note

__all__ = ["describe_refusal", "find_deciding"]

_TARGETS = Note(
    ("spec",),
    "its targets are in other namespaces or cannot be read; it is not adopted",
    "write a policy in each namespace",
)
_VERSION = Note(
    ("apiVersion",),
    "the version is not known; it is not adopted",
    f"write {ENVOY_GROUP}/v1alpha1",
)
_POLICIES = ("BackendTrafficPolicy", "ClientTrafficPolicy", "SecurityPolicy")
_DECIDING = {
    "BackendTrafficPolicy": ("rateLimit",),
    "ClientTrafficPolicy": (
        "clientIPDetection",
        "enableProxyProtocol",
        "headers",
        "path",
        "proxyProtocol",
    ),
}


def describe_refusal(raw: dict[str, Any]) -> Note:
    """Return why a document is not adopted."""
    return _TARGETS if raw.get("apiVersion") == f"{ENVOY_GROUP}/v1alpha1" else _VERSION


def find_deciding(kind: str, raw: dict[str, Any], *, repeated: bool) -> tuple[str, ...]:
    """Return the fields that decide access or a limit, beyond those that close their targets without `--adopt`.

    `repeated`: the document gives a field twice, so that any other may be missing from `raw`.
    """
    if repeated and kind in _POLICIES:
        return ("spec",)
    spec = raw.get("spec")
    given = spec if isinstance(spec, dict) else {}
    return tuple(one for one in _DECIDING.get(kind, ()) if given.get(one) is not None)
