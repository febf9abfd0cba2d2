"""Metrics of the copies that a proxy sends to mirrors.

In: nothing. Out: `MIRRORS`, families of one cell each; MIRROR_DROPS begins the cells of one of them. Must never: tell anything
else than edgefast/core/cells.py has.
"""

from __future__ import annotations

from edgefast.monitoring.family import PREFIX, Family, count

__all__ = ["MIRRORS", "MIRROR_DROPS"]

#: What the cells of a reason begin with.
MIRROR_DROPS = "mirror_drops_"

MIRRORS = (
    count("mirrored", "Copies of requests sent to mirrors.", "mirrored"),
    count(
        "mirrors_dropped", "Mirror copies dropped; the request itself continues.", "mirrors_dropped"
    ),
    Family(
        f"{PREFIX}mirror_drops_total",
        "counter",
        "Mirror copies dropped, by reason.",
        ("reason",),
        cell=MIRROR_DROPS,
    ),
)
