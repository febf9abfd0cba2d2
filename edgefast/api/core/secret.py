"""Secret: certificates and keys.

In: core `v1` documents (`data` is base64, `stringData` is text and wins). Out: `Secret`.
Must never: show its content; `repr` names the keys only.
"""

from __future__ import annotations

from msgspec import field

from edgefast.api.model.fields import Resource
from edgefast.api.model.meta import ObjectMeta


class Secret(Resource, frozen=True, kw_only=True):
    """A namespaced Secret; read values with `value()`."""

    metadata: ObjectMeta
    type: str = "Opaque"
    data: dict[str, bytes] = field(default_factory=dict)
    string_data: dict[str, str] = field(default_factory=dict)
    immutable: bool | None = None

    def value(self, key: str) -> bytes | None:
        """Return a key's bytes, or None when the key is absent."""
        if key in self.string_data:
            return self.string_data[key].encode()
        return self.data.get(key)

    def __repr__(self) -> str:
        keys = sorted({*self.data, *self.string_data})
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, keys={keys}, redacted)"
