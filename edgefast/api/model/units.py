"""Units: durations of the Gateway API (GEP-2257): "500ms", "1h2m3s".

In: the text of a duration. Out: whole milliseconds. A subset of Go's durations: up to four pairs of
a number (at most five digits) and h, m, s or ms; no fractions, no signs.
Must never: accept what the CRD pattern refuses.
"""

from __future__ import annotations

import re

_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_WHOLE = re.compile(r"(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}")
_PAIR = re.compile(r"([0-9]{1,5})(h|ms|m|s)")


def parse_duration(text: str) -> int:
    """Return milliseconds; ValueError when the text is not a Gateway API duration."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 10s, 500ms or 1h30m")
    return sum(int(number) * _UNITS[unit] for number, unit in _PAIR.findall(text))


# --- sizes in bytes: 32768, "32KiB", "10Mi", "1M" ---


_SIZE_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
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
        size = int(found[1]) * _SIZE_UNITS[found[2] or ""]
    if not 0 <= size < 2**63:
        raise ValueError(f"{value!r} is out of range")
    return size


# --- timestamps of objects: RFC 3339 text into a number that can be compared ---


_DATE = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]{1,9})?"
_ZONE = r"(?:[Zz]|[-+](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#: RFC 3339 section 5.6, or nothing: objects in files have no creation time.
TIMESTAMP_PATTERN = rf"^(?:{_DATE}[Tt]{_TIME}{_ZONE})?\Z"
_PARTS = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([-+])([0-9]{2}):([0-9]{2}))"
)
_SECOND = 10**9


def parse_timestamp(text: str) -> int | None:
    """Return nanoseconds since 1970-01-01T00:00:00Z, None when the text is no timestamp."""
    found = _PARTS.fullmatch(text)
    if not found:
        return None
    year, month, day, hours, minutes, seconds = (int(found[at]) for at in range(1, 7))
    if not 1 <= month <= 12:
        return None
    offset = int(found[9] or 0) * 60 + int(found[10] or 0)
    minutes += hours * 60 - (-offset if found[8] == "-" else offset)
    total = (_days_since_1970(year, month, day) * 24 * 60 + minutes) * 60 + seconds
    return total * _SECOND + int((found[7] or "0").ljust(9, "0"))


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Count days of the Gregorian calendar, with years that begin in March (leap days come last)."""
    year -= month < 3
    shifted = (month + 9) % 12
    days_of_months = (153 * shifted + 2) // 5
    return 365 * year + year // 4 - year // 100 + year // 400 + days_of_months + day - 1 - 719468
