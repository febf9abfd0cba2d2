"""Timestamps of objects: RFC 3339 text into a number that can be compared.

In: `metadata.creationTimestamp`, in any zone. Out: nanoseconds since 1970 in UTC.
API servers write UTC with whole seconds; files may hold whatever a person or a tool wrote.
Must never: ask what time it is, or compare texts: "+02:00" is not later than "Z".
"""

from __future__ import annotations

import re

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
