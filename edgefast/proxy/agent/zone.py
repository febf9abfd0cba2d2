"""ProxyZone: the zone of this proxy, for output to operators.

In: the zone given at start, the proxy's name, the record of the fleet's proxies in the table.
Out: the zone; a warning if the table has zone-aware backends and this proxy's zone is unknown.
Workers find the same zone (worker/zone.py).
Must never: prevent traffic; without a zone, endpoints of all zones are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from edgefast import ir
from edgefast.diagnostics.problem import Problem
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import Key, Placed
from edgefast.table.compile import PROXIES

__all__ = ["ProxyZone"]

_KEY = ("proxies", PROXIES)
_PROXIES: msgspec.msgpack.Decoder[ir.Proxies] = msgspec.msgpack.Decoder(ir.Proxies)


class ProxyZone:
    """Finds the zone of this proxy, and warns if it is unknown and needed."""

    def __init__(self, arena: Arena, zone: str, node: str) -> None:
        self.zone = zone  # "": it is not known
        self.shares: Mapping[str, int] = {}  # by zone: proxies of the fleet that are ready
        self.asked = False  # the table has backends whose zones count
        self._arena = arena
        self.given = zone
        self.node = node

    def follow(self, touched: Collection[Key], placed: Mapping[Key, Placed]) -> None:
        """Take in what a table has other than the one before."""
        if _KEY not in touched:
            return
        one = placed.get(_KEY)
        self.asked, self.shares = one is not None, {}
        if one is None:
            return
        try:
            record = _PROXIES.decode(self._arena.read(one.block))
        except ValueError:
            return  # workers refuse it, and say so
        self.shares = dict(record.shares)
        self.zone = self.given or dict(record.zones).get(self.node, "") or self.zone

    @property
    def problems(self) -> tuple[Problem, ...]:
        """That nobody knows it, where that matters."""
        if self.zone or not self.asked:
            return ()
        message = "the zone of this proxy is unknown; it sends requests to endpoints of all zones"
        hint = (
            "label its node with topology.kubernetes.io/zone"
            if self.node
            else "set --zone or the environment variable EDGEFAST_ZONE"
        )
        return (Problem(None, "", "ZoneNotKnown", message, hint=hint, severity="warning"),)
