"""Proxy problems: errors that only proxies can see, such as a failing counter store, as Problems.

In: the reports of the fleets' nodes (xds_server/ack.py).
Out: `Problem`s, each once for a fleet, with the number of affected proxies and the fleet, because a
pod may belong to a tenant. For statuses: key sets that cannot be fetched, by policy of the fleet's
table. Reports of another release are omitted; the proxy's own status contains them. No I/O.
Must never: report for a proxy that is not connected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from controller.xds_server.ack import Ack
from controller.xds_server.fleets import Fleets
from edgefast import ir
from edgefast.diagnostics.problem import Problem
from edgefast.translate.conditions.condition import render_problems
from edgefast.xds.proxy_problems import ProxyProblem

__all__ = [
    "FLEET_LIMIT",
    "KEYS_NAMED",
    "describe_troubles",
    "find_key_troubles",
    "find_troubles",
    "list_troubles",
]

#: Maximum of reported problems of one fleet, the most frequent first: each proxy may send its own texts.
FLEET_LIMIT = 100
#: Texts about key sets of one policy in its status: each proxy may report another cause.
KEYS_NAMED = 5


def find_troubles(fleets: Fleets) -> Iterator[Problem]:
    """Yield the problems that the proxies of all fleets have."""
    for fleet in sorted(fleets.names()):
        yield from describe_troubles(fleet, fleets.acks(fleet).values())


def find_key_troubles(table: ir.Fleet, acks: Iterable[Ack]) -> Mapping[tuple[str, str], str]:
    """Return, by policy of the fleet's table, the text about key sets that connected proxies of the fleet cannot fetch."""
    reported = {
        one
        for ack in acks
        if ack.connected and ack.troubles
        for one in list_troubles(ack)
        if one.reason == "KeysNotFetched"
    }
    if not reported:
        return {}
    units = {unit.name.partition("#")[0] for unit in table.policies}
    found: dict[tuple[str, str], list[Problem]] = {}
    for one in sorted(reported):
        if f"security/{one.namespace}/{one.name}" in units:
            found.setdefault((one.namespace, one.name), []).append(one.problem())
    return {policy: _join(problems) for policy, problems in found.items()}


def _join(problems: list[Problem]) -> str:
    more = len(problems) - KEYS_NAMED
    return render_problems(problems[:KEYS_NAMED]) + (f"; and {more} more" if more > 0 else "")


def describe_troubles(fleet: str, acks: Collection[Ack]) -> Iterator[Problem]:
    """Yield the problems of one fleet ("namespace/name") by what is known of its nodes."""
    connected = [ack for ack in acks if ack.connected]
    found = Counter(one for ack in connected for one in list_troubles(ack))
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    for problem, proxies in ordered[:FLEET_LIMIT]:
        yield problem.problem(f" (reported by {proxies} of {len(connected)} proxies of {fleet})")


def list_troubles(ack: Ack) -> tuple[ProxyProblem, ...]:
    """Return what one node says that this release can tell."""
    return tuple(one for one in ack.troubles if one.known)
