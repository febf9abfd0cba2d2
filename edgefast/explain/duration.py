"""Duration: durations as text. In: milliseconds. Out: text. Must never: round."""

from __future__ import annotations

__all__ = ["write_time"]

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))


def write_time(milliseconds: int) -> str:
    """Return a time in the largest unit that has it whole; "none" for 0."""
    if milliseconds == 0:
        return "none"
    size, name = next(one for one in _UNITS if milliseconds % one[0] == 0)
    return f"{milliseconds // size} {name}"
