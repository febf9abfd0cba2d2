"""Watching fleets follow one another: the pods of the one before end when its successors' are ready, and not before."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from cluster.world.workloads import is_ready


def go_after(
    events: Iterable[tuple[str, Any]], here: Collection[str], gone: Collection[str]
) -> None:
    """Follow pods until those of all fleets `gone` ("namespace/name") end; by then, all of `here` have a ready one."""
    left, ready = set(gone), set()
    for kind, one in events:
        meta = one["metadata"]
        # Of a Deployment: its name, the ReplicaSet's digest, the pod's own.
        fleet = f"{meta['namespace']}/{meta['name'].rsplit('-', 2)[0]}"
        ending = kind == "DELETED" or "deletionTimestamp" in meta
        if fleet in left and ending:
            assert ready >= set(here), f"{fleet} ends, and ready are {ready}"
            left.discard(fleet)
            if not left:
                return
        elif not ending and is_ready(one):
            ready.add(fleet)
    raise AssertionError(f"still there: {left}")
