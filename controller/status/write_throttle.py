"""WriteThrottle: the time until an object may be written again.

In: the times of writes.
Out: seconds to wait. A few writes in a row are free. After that, each write increases the wait,
until the object was not written for a while.
Must never: delay an object for longer than SPACE_MAX.
"""

from __future__ import annotations

from collections import OrderedDict

FREE = 3  # writes in a row that wait for nothing
SPACE = 1.0  # seconds after those; they double
SPACE_MAX = 4.0
QUIET = 8.0  # seconds without a write after which all is forgotten
_KEPT = 4096  # objects remembered at most

Ref = tuple[str, str, str]


class WriteThrottle:
    """Remembers the last write of objects that were written of late."""

    def __init__(self) -> None:
        self._last: OrderedDict[Ref, tuple[float, int]] = OrderedDict()

    def wait(self, ref: Ref, now: float) -> float:
        """Return the seconds before the next write, 0 for at once."""
        last, count = self._last.get(ref, (0.0, 0))
        if count < FREE or now - last >= QUIET:
            return 0.0
        space = min(SPACE * 2.0 ** min(count - FREE, 8), SPACE_MAX)
        return max(0.0, last + space - now)

    def note(self, ref: Ref, now: float) -> None:
        """Remember a write."""
        last, count = self._last.pop(ref, (0.0, 0))
        self._last[ref] = (now, 1 if now - last >= QUIET else count + 1)
        while len(self._last) > _KEPT or now - next(iter(self._last.values()))[0] >= QUIET:
            self._last.popitem(last=False)
