"""A configuration's digest, the same in helm and here, so that its change rolls the controller.

In: plain values. Out: text. helm's `toJson` is Go's encoding/json: sorted keys, no spaces, and five characters escaped.
Must never: depend on the order of keys.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ESCAPED = {one: f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def canonical_json(value: Any) -> str:
    """Return the JSON that helm's toJson writes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for one, escaped in _ESCAPED.items():
        text = text.replace(one, escaped)
    return text


def digest(value: Any) -> str:
    """Return the SHA-256 of it, as helm's sha256sum."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
