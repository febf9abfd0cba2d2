"""Format: one word for the encoding of records and rules, so that no release reads another one's bytes.

In: the structs of the IR, the version of blobs (csrc/table.h). Out: hex digits. They change
whenever a field, its type or its default does, or that version. The encoding omits defaults, so a
new default is another meaning of the same bytes.
Must never: depend on texts that are for people, or on the order of anything.
"""

from __future__ import annotations

import functools
from hashlib import blake2b
from typing import Any

import msgspec

from edgefast import ir
from edgefast._csrc import lib

_RECORDS = (
    ir.Listener,
    ir.Cluster,
    ir.Secret,
    ir.Rule,
    ir.PolicyUnit,
    ir.StreamRoute,
    ir.RateLimitStore,
    ir.Proxies,
)


@functools.cache
def table_format() -> str:
    """Return the format's word: 16 hex digits."""
    word = f"{digest_records(_RECORDS)} {lib.EF_TABLE_VERSION}"
    return blake2b(word.encode(), digest_size=8).hexdigest()


def digest_records(records: tuple[type[msgspec.Struct], ...]) -> str:
    """Return 16 hex digits for the encodings of structs and of all that they are made of."""
    # Of the record's names only the fields', as they are written: classes may be renamed.
    _, components = msgspec.json.schema_components(records, ref_template="{name}")
    plain = msgspec.json.encode(_strip(components), order="sorted")
    return blake2b(plain, digest_size=8).hexdigest()


def _strip(value: Any) -> Any:
    """Leave out what is for people."""
    if isinstance(value, dict):
        return {k: _strip(v) for k, v in value.items() if k not in ("description", "title")}
    return [_strip(one) for one in value] if isinstance(value, list) else value
