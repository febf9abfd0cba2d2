"""WorkerZone: the zone of a worker's proxy, and of the fleet's other proxies, for its engine.

In: the zone given at start (`--zone`), the proxy's name, the record of the fleet's proxies in its
table.
Out: the engine orders endpoints by zone. A known zone stays: a machine does not move, and a
draining proxy is not in the record.
Must never: send a request for the zone.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.core import Engine

__all__ = ["WorkerZone"]


class WorkerZone:
    """Gives the engine the zone of this proxy and the zones of the fleet's other proxies."""

    def __init__(self, engine: Engine, zone: str, node: str) -> None:
        """zone: "" if it is to be found in the record by `node`."""
        self._engine = engine
        self._given = zone
        self._zone = zone
        self._node = node
        self.adopt(None)

    def adopt(self, proxies: ir.Proxies | None) -> None:
        """Take the record of a table; None: it has none."""
        found = dict(proxies.zones).get(self._node, "") if proxies is not None else ""
        self._zone = self._given or found or self._zone
        self._engine.zones.settle(self._zone, dict(proxies.shares) if proxies is not None else {})
