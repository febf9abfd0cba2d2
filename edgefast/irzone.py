"""Zones: which endpoints of a backend are near, for whom, and when that decides.

In: written by `translate` only. Out: leaves of an ir.LoadBalancer and an ir.Cluster, and the record of a fleet's own proxies. A zone is
its name, as nodes have it in the label topology.kubernetes.io/zone; "" is none.
Must never: say which zone a reader is in; each proxy looks itself up.
"""

from __future__ import annotations

from edgefast.irtelemetry import Struct


class ZoneAware(Struct, frozen=True, gc=False):
    """How far endpoints in the proxy's own zone come first (BackendTrafficPolicy loadBalancer.zoneAware).

    Endpoints are those that are well. What does not hold leaves endpoints of all zones alike.
    """

    percent: int = 100  # of requests that this is for; 0: none, whatever the backend's Service says
    min_endpoints: int = 6  # so many of all zones at least
    # So many in the own zone at least, and every request stays there; 0: only as many stay as keeps endpoints of all zones equally busy.
    force: int = 0
    # By zone, sorted: how much each gets, whichever zone the proxy is in; one that is not here weighs 1. (): the own zone comes first.
    weights: tuple[tuple[str, int], ...] = ()


class Proxies(Struct, frozen=True, gc=False):
    """The proxies of a fleet, whose zones count somewhere: of a fleet that has no zoned backend there is none of it."""

    shares: tuple[tuple[str, int], ...] = ()  # by zone, sorted: proxies that are ready there
    zones: tuple[tuple[str, str], ...] = ()  # by a proxy's name, sorted: its zone, ready or not
