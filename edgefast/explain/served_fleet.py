"""Served fleet: one fleet with everything that an explanation reads.

In: a fleet of the IR and its compiled table; the places of its objects, if known; endpoints and
counters of a running proxy, if queried.
Out: look-ups. Must never: change; one serves any number of explanations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from edgefast import ir
from edgefast.diagnostics.problem import Problem
from edgefast.explain.explanation import EndpointPart
from edgefast.explain.source_location import Origin
from edgefast.table import Matcher, Shards, compile_fleet
from edgefast.translate.translation import Translation

_MISSING = "it is missing in the table"


class Live(msgspec.Struct, frozen=True):
    """What a running proxy says."""

    endpoints: Mapping[str, tuple[EndpointPart, ...]]  # by cluster
    rows: tuple[Mapping[str, Any], ...] | None = None  # counters; None: it could not list them
    why_no_rows: str = ""
    more_rows: bool = False  # there are more than it told
    hidden: bool = (
        False  # values of credentials are not shown in them: nobody's row can be found by those
    )
    refusing: bool = False  # its store of counters does not answer, and requests get 500 then
    problems: tuple[str, ...] = ()  # errors that it knows of its files, one line each
    uncounted: tuple[str, ...] = ()  # what keeps limits from counting: texts of such problems
    zone: str = ""  # that it is in; "": it does not know
    workers: int = 0  # that were asked
    silent: int = 0  # of these, that did not answer


def first_of(listener: ir.Listener) -> str:
    """Return an address that a listener is served at; "": all."""
    return next(iter(listener.addresses), "")


class Served:
    """One fleet with its compiled table and the live state that an explanation reads."""

    def __init__(
        self,
        fleet: ir.Fleet,
        shards: Shards | None = None,
        origin: Origin | None = None,
        live: Live | None = None,
        version: str = "",
    ) -> None:
        self.fleet = fleet
        self.shards = shards or compile_fleet(fleet)
        self.origin = origin or Origin()
        self.live = live
        self.version = version
        self.matcher = Matcher(self.shards.resources)
        self.clusters = {one.name: one for one in fleet.clusters}
        self.policies = {one.name: one for one in fleet.policies}
        self.hosts: dict[str, dict[str, ir.VirtualHost]] = {}  # by listener, by hostname
        for host in fleet.virtual_hosts:
            self.hosts.setdefault(host.listener, {})[host.hostname] = host
        self.streams: dict[str, dict[str, ir.StreamRoute]] = {}  # by listener, by hostname
        for route in fleet.stream_routes:
            self.streams.setdefault(route.listener, {})[route.hostname] = route

    def listeners(self, port: int, address: str = "") -> list[ir.Listener]:
        """Return the listeners of a port that read requests."""
        found = self.all_listeners(port, address=address)
        return [one for one in found if one.protocol in ("HTTP", "HTTPS")]

    def all_listeners(
        self, port: int, transport: ir.Transport = "TCP", address: str = ""
    ) -> list[ir.Listener]:
        """Return the listeners of a port, whatever they read.

        `address` counts where Gateways have the port at different addresses; "" is the first of these.
        """
        found = [
            one
            for one in self.fleet.listeners
            if one.port == port and ir.transport_of(one) == transport
        ]
        if all(one.addresses == found[0].addresses for one in found):
            return found
        address = address or min(one.addresses for one in found)[0]
        return [one for one in found if address in one.addresses]

    def addresses(self, port: int) -> set[str]:
        """Return the first address of each group of listeners, where a port has several groups; else nothing."""
        groups = {one.addresses for one in self.fleet.listeners if one.port == port}
        return {one[0] for one in groups if one} if len(groups) > 1 else set()

    def units(self, names: Iterable[str]) -> tuple[ir.PolicyUnit, ...]:
        """Return units of policies; one that is not there is closed, as in a worker."""
        return tuple(
            self.policies.get(name) or ir.PolicyUnit(name=name, status=500, reason=_MISSING)
            for name in names
        )

    def endpoints(self, cluster: str) -> tuple[tuple[EndpointPart, ...], bool]:
        """Return the endpoints that get requests, and whether they are the terminating ones."""
        found = self.clusters.get(cluster)
        fallback = found is not None and not found.endpoints and bool(found.fallback)
        if self.live is not None and cluster in self.live.endpoints:
            return self.live.endpoints[cluster], fallback
        known = (found.endpoints or found.fallback) if found is not None else ()
        going = found.fallback if found is not None and found.endpoints else ()
        return (
            *(EndpointPart(address=render_endpoint(one), zone=one.zone) for one in known),
            *(
                EndpointPart(address=render_endpoint(one), zone=one.zone, draining=True)
                for one in going
                if one.address
            ),
        ), fallback


def serve_translation(
    translation: Translation,
    fleet: str = "",
    shards: Shards | None = None,
    problems: Iterable[Problem] = (),
) -> Served:
    """Return what a translation serves; `fleet` "" is its only one, or an empty one when there is none.

    `shards` are of that fleet, if they are made already; `problems` are those of decoding.
    """
    fleets = translation.ir.fleets
    found = [one for one in fleets if one.name == fleet or not fleet]
    one = found[0] if found else ir.Fleet(name=fleet)
    return Served(one, shards, Origin(translation, problems))


def render_endpoint(one: ir.Endpoint) -> str:
    """Return an endpoint's address as the proxy writes it."""
    host = one.hostname or one.address
    if one.port == 0:
        return f"unix:{host}"
    return f"[{host}]:{one.port}" if ":" in host else f"{host}:{one.port}"
