"""Ack: the state of one node: the served table, refused resources, and its connection.

In: reports of sessions and other replicas.
Out: one Ack for each node of a fleet, the best one when several controllers know the node. No I/O,
no clock.
Must never: hold more nodes than limits.NODES, or prefer a closed connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from controller.xds_server.limits import GONE_NODES, NODES
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import Refused as Refusal

__all__ = ["Ack", "Acks", "merge"]


class Ack(msgspec.Struct, frozen=True):
    """`version`: of the table that the node serves now, "" for none known. `refused`: of its last answer, or by us.

    `via`: identity of the controller whose stream it is.
    """

    version: str
    refused: tuple[Refusal, ...] = ()
    connected: bool = True
    via: str = ""
    troubles: tuple[
        ProxyProblem, ...
    ] = ()  # what else the node says is wrong, while it is connected


class Acks:
    """The nodes of one fleet as one controller knows them."""

    def __init__(self) -> None:
        self._nodes: dict[str, Ack] = {}  # those that changed last are last
        self._gone = 0

    def get(self, node: str) -> Ack | None:
        """Return what is known of a node."""
        return self._nodes.get(node)

    def items(self) -> Iterable[tuple[str, Ack]]:
        """All nodes, in no order that means anything."""
        return self._nodes.items()

    def put(self, node: str, ack: Ack) -> bool:
        """Note what is known now; False when it was known or there is no room for one more node."""
        old = self._nodes.get(node)
        if old == ack or (old is None and len(self._nodes) >= NODES):
            return False
        self._gone += (not ack.connected) - (old is not None and not old.connected)
        self._nodes.pop(node, None)
        self._nodes[node] = ack
        if self._gone > GONE_NODES:
            oldest = next(node for node, one in self._nodes.items() if not one.connected)
            self._nodes.pop(oldest)
            self._gone -= 1
        return True


def merge(sources: Iterable[Acks], version: str) -> Mapping[str, Ack]:
    """Return the best Ack of every node: connected before gone, at `version` before behind, earlier source first."""
    best: dict[str, Ack] = {}
    for acks in sources:
        for node, ack in acks.items():
            known = best.get(node)
            if known is None or _rank(ack, version) > _rank(known, version):
                best[node] = ack
    return best


def _rank(ack: Ack, version: str) -> tuple[bool, bool]:
    return (ack.connected, ack.version == version)
