"""Durations of the Gateway API (GEP-2257): "500ms", "1h2m3s".

In: the text of a duration. Out: whole milliseconds.
A subset of Go's durations: up to four pairs of a number (at most five digits) and h, m, s or ms;
no fractions, no signs. Must never: accept what the CRD pattern refuses.
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
