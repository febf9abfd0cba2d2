"""Dump: the state of a running proxy, from its admin server.

In: the values of GET /dump and GET /limits (docs/guides/operations.md).
Out: `ProxyDump`: the version of its table, the endpoints' health and the current counters. Its
rules are not read back, because a dump hides the credentials that they compare; a proxy explains
its requests itself (GET /explain).
Must never: trust that it is complete; a worker may not have answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgefast.explain.describe import UNCOUNTED
from edgefast.explain.explanation import EndpointPart
from edgefast.explain.served_fleet import Live


class ProxyDump(msgspec.Struct, frozen=True):
    """What a proxy says."""

    version: str  # of its table
    live: Live


def read_dump(dump: Mapping[str, Any], limits: Mapping[str, Any] | str) -> ProxyDump:
    """Return what a proxy says; `limits` is why there is no list of counters when it is text."""
    return ProxyDump(str(dump["table"]["version"]), read_live(dump, limits))


def read_live(dump: Mapping[str, Any], limits: Mapping[str, Any] | str) -> Live:
    """Return what the workers of a dump say of endpoints and limits."""
    engines = [one["engine"] for one in dump["workers"] if one.get("engine")]
    seen: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for engine in engines:
        for cluster in engine["clusters"]:
            named = seen.setdefault(cluster["name"], {})
            for one in cluster["endpoints"]:
                if not one.get("draining"):  # those get what is new
                    named.setdefault(one["address"], []).append(one)
    endpoints = {
        cluster: tuple(_sum_endpoint(address, found) for address, found in named.items())
        for cluster, named in seen.items()
    }
    zone = next((one["zone"] for one in engines if one.get("zone")), "")
    refusing = bool(engines) and all(_refuses(engine.get("rate_limits")) for engine in engines)
    problems = tuple(one["text"] for one in dump.get("problems", ()) if one["severity"] == "error")
    uncounted = tuple(one["text"] for one in dump.get("problems", ()) if one["reason"] in UNCOUNTED)
    if isinstance(limits, str):
        return Live(
            endpoints,
            zone=zone,
            why_no_rows=limits,
            refusing=refusing,
            problems=problems,
            uncounted=uncounted,
            workers=len(dump["workers"]),
            silent=len(dump["workers"]) - len(engines),
        )
    return Live(
        endpoints,
        zone=zone,
        rows=tuple(limits["counters"]),
        more_rows=not limits["complete"],
        hidden=bool(limits.get("hidden")),
        refusing=refusing,
        problems=problems,
        uncounted=uncounted,
        workers=len(dump["workers"]),
        silent=len(dump["workers"]) - len(engines),
    )


def _sum_endpoint(address: str, found: list[Mapping[str, Any]]) -> EndpointPart:
    ejected = sum(one.get("ejected", not one["healthy"]) for one in found)
    ill = any(not one["healthy"] and not one.get("ejected", True) for one in found)
    # Each worker counts its own requests: one that failed long ago stays counted where no other came since.
    failing = all(one.get("failures", 0) or one.get("ejected", not one["healthy"]) for one in found)
    return EndpointPart(
        zone=found[0].get("zone", ""),
        address=address,
        draining=all(one.get("draining", False) for one in found),
        healthy=ejected == 0,
        workers=f"{ejected} of {len(found)} workers ejected it" if ejected else "",
        ill=ill,
        active=sum(one["active"] for one in found),
        failing=failing,
        failures=sum(one.get("failures", 0) for one in found) if failing else 0,
    )


def _refuses(limits: Any) -> bool:
    store = limits["store"] if limits else None
    return isinstance(store, dict) and not store["available"] and bool(limits["fail_closed"])
