"""Unresolved: hostnames of backends that do not resolve, as problems of the objects that contain them.

In: the workers' resolver reports, and the clusters of the table.
Out: a warning for each object and name, until a worker has an address. Without an address, requests
get a 503, and no other message names the cause.
Must never: resolve a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from edgefast import ir
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.proxy.agent.worker_slot import WorkerSlot
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import WorkerTables

__all__ = ["Unresolved", "describe_unresolved"]

_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)
_KINDS = {"service": "Service", "backend": "Backend", "xbackend": "XBackend"}


class Unresolved:
    """Reports names of backends that do not resolve as problems of their objects."""

    def __init__(self, ledger: WorkerTables, arena: Arena, slots: Sequence[WorkerSlot]) -> None:
        self.problems: tuple[Problem, ...] = ()
        self._ledger = ledger
        self._arena = arena
        self._slots = slots
        self._seen: tuple[frozenset[str], int] = (frozenset(), 0)  # names, epoch

    def look(self) -> bool:
        """Take in what workers say; returns whether the problems are others now."""
        table = self._ledger.current
        names = frozenset(name for slot in self._slots for name in slot.unresolved)
        seen = (names, table.epoch if names else 0)
        if seen == self._seen:
            return False
        self._seen = seen
        clusters = (
            (name, self._arena.read(one.block))
            for (type_, name), one in (table.placed.items() if names else ())
            if type_ == "cluster"
        )
        before, self.problems = self.problems, describe_unresolved(names, clusters)
        return before != self.problems


def describe_unresolved(
    names: Iterable[str], clusters: Iterable[tuple[str, bytes]]
) -> tuple[Problem, ...]:
    """Name the objects behind `names`; `clusters` are the table's, by name, as they are in it."""
    wanted = {name: name.encode() for name in names}
    found = {
        (owner, hostname)
        for name, data in clusters
        if any(one in data for one in wanted.values())
        for owner, hostname in _owners(name, data)
        if hostname in wanted
    }
    return tuple(_problem(owner, hostname) for owner, hostname in sorted(found))


def _owners(name: str, data: bytes) -> Iterator[tuple[ObjectRef, str]]:
    kind, _, rest = name.partition("/")
    namespace, _, rest = rest.partition("/")
    owner = ObjectRef(_KINDS.get(kind, kind), namespace, rest.partition("/")[0].partition("@")[0])
    try:
        cluster = _CLUSTER.decode(data)
    except ValueError:
        return  # workers refuse it, and say so
    for endpoint in (*cluster.endpoints, *cluster.fallback):
        if endpoint.hostname:
            yield owner, endpoint.hostname


def _problem(owner: ObjectRef, hostname: str) -> Problem:
    return Problem(
        owner,
        "",
        "EndpointsNotFound",
        f"the name {hostname} does not resolve; it gets no requests",
        hint="correct the name, or check the DNS resolver of the proxy's machine; edgefast retries",
        severity="warning",
    )
