"""ConfigMap: CA bundles, and configuration text.

In: core `v1` documents. Out: `ConfigMap`.
Must never: be trusted with keys; those belong in Secrets.
"""

from __future__ import annotations

from msgspec import field

from edgefast.api.model.fields import Resource
from edgefast.api.model.meta import ObjectMeta


class ConfigMap(Resource, frozen=True, kw_only=True):
    """A namespaced ConfigMap."""

    metadata: ObjectMeta
    data: dict[str, str] = field(default_factory=dict)
    binary_data: dict[str, bytes] = field(default_factory=dict)
    immutable: bool | None = None
