"""StoreStatus: the state of a store's servers, which a worker reports whenever it changes.

In: nothing.
Out: plain values of bounded size.
Must never: contain more of a server's text than the reason of a refusal.
"""

from __future__ import annotations

import msgspec

__all__ = ["FORGOTTEN", "MOST", "SERVES", "StoreStatus"]

#: Places of each kind that are told: with their names and reasons far below a frame of the channel.
MOST = 25

#: What became of a place that did not serve.
SERVES = "serves again"
FORGOTTEN = "has no counters any more; other servers have them"


class StoreStatus(msgspec.Struct, frozen=True, array_like=True):
    """Places are addresses, or names in words ("the cluster")."""

    down: tuple[tuple[str, str], ...] = ()  # those that do not count, and why
    over: tuple[
        tuple[str, str], ...
    ] = ()  # those that were down last time, and what became of them
    evicting: tuple[
        tuple[str, str], ...
    ] = ()  # those that may forget counters, and their memory policy
