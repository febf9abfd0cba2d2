"""Dump: what the admin server of a running proxy tells, as a `Served` again.

In: the values of GET /dump and GET /limits (docs/operations.md). Out: `Served`: the table's rules, compiled anew to
the same blobs, with the endpoints' health and the counters of that moment. Must never: trust that it is whole; a
worker may not have answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgefast import ir
from edgefast.table.blob import order_entries
from edgefast.why.explanation import EndpointPart
from edgefast.why.served import Live, Served


def read_dump(dump: Mapping[str, Any], limits: Mapping[str, Any] | str) -> Served:
    """Return what a proxy serves; `limits` is why there is no list of counters when it is text.

    Raises msgspec.ValidationError (a ValueError) for a dump of another release.
    """
    fleet = ir.Fleet(
        name="",
        listeners=_convert(dump["listeners"], tuple[ir.Listener, ...]),
        virtual_hosts=_read_hosts(dump["virtual_hosts"]),
        clusters=_convert(dump["clusters"], tuple[ir.Cluster, ...]),
    )
    return Served(fleet, live=read_live(dump, limits), version=dump["table"]["version"])


def _convert(value: Any, type_: Any) -> Any:
    return msgspec.convert(value, type_)


def _read_hosts(told: list[Mapping[str, Any]]) -> tuple[ir.VirtualHost, ...]:
    """Put roots and their fragments together."""
    rules: dict[str, dict[ir.Rule, int]] = {}
    entries: dict[str, list[ir.Entry]] = {}
    for one in sorted(told, key=lambda one: one["type"] != "virtual_host"):
        name = one["name"] if one["type"] == "virtual_host" else one["name"].rpartition("#")[0]
        numbers = rules.setdefault(name, {})
        own = _convert(one.get("rules", ()), tuple[ir.Rule, ...])
        for entry in _convert(one.get("entries", ()), tuple[ir.Entry, ...]):
            number = numbers.setdefault(own[entry.rule], len(numbers))
            entries.setdefault(name, []).append(ir.Entry(match=entry.match, rule=number))
    hosts = []
    for name, numbers in rules.items():
        listener, _, hostname = name.rpartition("/")
        found = order_entries(entries.get(name, []))
        hosts.append(
            ir.VirtualHost(
                listener=listener, hostname=hostname, rules=tuple(numbers), entries=found
            )
        )
    return tuple(hosts)


def read_live(dump: Mapping[str, Any], limits: Mapping[str, Any] | str) -> Live:
    """Return what the workers of a dump say of endpoints and limits."""
    engines = [one["engine"] for one in dump["workers"] if one.get("engine")]
    seen: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for engine in engines:
        for cluster in engine["clusters"]:
            named = seen.setdefault(cluster["name"], {})
            for one in cluster["endpoints"]:
                named.setdefault(one["address"], []).append(one)
    endpoints = {
        cluster: tuple(_sum_endpoint(address, found) for address, found in named.items())
        for cluster, named in seen.items()
    }
    refusing = bool(engines) and all(_refuses(engine.get("rate_limits")) for engine in engines)
    problems = tuple(one["text"] for one in dump.get("problems", ()) if one["severity"] == "error")
    if isinstance(limits, str):
        return Live(endpoints, why_no_rows=limits, refusing=refusing, problems=problems)
    return Live(
        endpoints,
        rows=tuple(limits["counters"]),
        more_rows=not limits["complete"],
        refusing=refusing,
        problems=problems,
    )


def _sum_endpoint(address: str, found: list[Mapping[str, Any]]) -> EndpointPart:
    ejected = sum(not one["healthy"] for one in found)
    # Each worker counts its own requests: one that failed long ago stays counted where no other came since.
    failing = all(one.get("failures", 0) or not one["healthy"] for one in found)
    return EndpointPart(
        address=address,
        healthy=ejected == 0,
        workers=f"{ejected} of {len(found)} workers ejected it" if ejected else "",
        active=sum(one["active"] for one in found),
        failing=failing,
        failures=sum(one.get("failures", 0) for one in found) if failing else 0,
    )


def _refuses(limits: Any) -> bool:
    store = limits["store"] if limits else None
    return isinstance(store, dict) and not store["available"] and bool(limits["fail_closed"])
