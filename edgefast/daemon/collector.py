"""The garbage collector of a process that holds a configuration: objects are made by the million at once, and stay.

In: nothing. Out: a collector that looks seldom, and at the young ones; with `keep_all`, never again at what there is. Python's own
thresholds have it go through the whole heap five times while that is being made, which is half of a start with 100,000 routes.
Must never: be switched off, since exceptions and tasks make cycles all the time.
"""

from __future__ import annotations

import gc

__all__ = ["keep_all", "look_seldom"]

#: Objects that are made until the young ones are looked at; how often these, until those that have survived a look are; and so on.
#: A thousand times more than Python's until it is the whole heap.
_THRESHOLDS = (20_000, 20, 100)


def look_seldom() -> None:
    """For a process that reads files or a cluster."""
    gc.set_threshold(*_THRESHOLDS)


def keep_all() -> None:
    """What has come so far is here to stay; garbage is collected first, since it would stay, too."""
    gc.collect()
    gc.freeze()
