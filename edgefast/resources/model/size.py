"""Sizes in bytes: 32768, "32KiB", "10Mi", "1M".

In: a number of bytes or text with a unit. Out: whole bytes.
Units: Ki Mi Gi Ti (binary) and k K M G T (decimal), each with an optional B, as Kubernetes
quantities and people write them. Must never: round; fractions are refused.
"""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
#: The same for schemas; at most 2**63 - 1 can come of it after the check in `parse_size`.
SIZE_PATTERN = r"^[1-9][0-9]{0,14}(Ki|Mi|Gi|Ti|k|K|M|G|T)?B?\Z"
_SIZE = re.compile(r"([0-9]{1,15})(Ki|Mi|Gi|Ti|k|K|M|G|T)?B?")


def parse_size(value: int | str) -> int:
    """Return bytes; ValueError when it is not a size, or negative, or past 63 bits."""
    if isinstance(value, int):
        size = value
    else:
        found = _SIZE.fullmatch(value)
        if not found:
            raise ValueError(f"{value!r} is not a size such as 32768, 32KiB or 10Mi")
        size = int(found[1]) * _UNITS[found[2] or ""]
    if not 0 <= size < 2**63:
        raise ValueError(f"{value!r} is out of range")
    return size
