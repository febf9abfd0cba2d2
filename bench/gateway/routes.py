"""Tests about the number of routes: attached routes, propagation, route scale, ListenerSet scale.

In: a site, a scale (1 is the size of gateway-api-bench). Out: a `Result`. Objects that a test makes are gone after it, so that tests of
one site do not add up. Must never: count a wrong answer as propagation.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bench.cluster.propagation import measure_propagation
from bench.cluster.spent import CONTROLLER, PROXY
from bench.gateway.result import Point, Result, round_figures
from bench.gateway.site import Site, attached_of, memory_of, numbered
from cluster.installed import GATEWAY, route
from cluster.world.api import Manifest
from cluster.world.waiting import wait_until

ATTACHED = 1000
PROBED = 3000
ROUTES = 5000
SETS, ROUTES_OF_SET = 2500, 16
_PATIENCE = 300.0
_MOST_POINTS = 400


def attached_routes(site: Site, scale: float) -> Result:
    """Time until the Gateway reports all routes, and none again; writes of its status."""
    count = max(10, round(ATTACHED * scale))
    names = list(numbered("a", count))
    meter = site.meter()
    before = meter.read()
    there = site.attached()
    with _watched(site) as seen:
        began = time.monotonic()
        site.each(lambda at: site.admin.create(_route(site, *names[at])), range(count))
        created = time.monotonic()
        _wait(lambda: seen.last == there + count)
        attached = time.monotonic()
        site.each(lambda at: _delete(site, "httproutes", names[at][0]), range(count))
        deleted = time.monotonic()
        _wait(lambda: seen.last == there)
        detached = time.monotonic()
    spent = meter.read()
    return Result(
        "attached-routes",
        round_figures(
            {
                "routes": count,
                "all created after s": created - began,
                "all attached, s after the last create": attached - created,
                "none attached, s after the last delete": detached - deleted,
                "writes of the Gateway's status": seen.writes,
                "CPU of the controller, s": spent[CONTROLLER] - before[CONTROLLER],
            }
        ),
        {"attached routes": [(at - began, value) for at, value in seen.points]},
    )


def propagation(site: Site, scale: float) -> Result:
    """Milliseconds from the end of each create call to the first 200."""
    count = max(20, round(PROBED * scale))
    spread = measure_propagation(site, site.meter(), count)
    taken = sorted(spread.taken)
    last = spread.parts()[-1]
    result = Result(
        "propagation",
        round_figures(
            {
                "routes": count,
                "mean ms": statistics.mean(taken),
                "p50 ms": statistics.median(taken),
                "p99 ms": taken[len(taken) * 99 // 100],
                "max ms": taken[-1],
                "mean of the last sixth, ms": statistics.mean(last.taken),
                "wrong answers": len(spread.wrong),
                "CPU of the controller for a route, ms": spread.whole().cpu[CONTROLLER],
                "CPU of the proxy for a route, ms": spread.whole().cpu[PROXY],
            }
        ),
        {"ms": _thinned([(float(at), one) for at, one in enumerate(spread.taken)])},
    )
    _delete_routes(site, "p-", count)
    return result


def route_scale(site: Site, scale: float) -> Result:
    """Time until the last of many routes is served, what they cost, and propagation on top of them."""
    count = max(50, round(ROUTES * scale))
    names = list(numbered("s", count))
    meter = site.meter()
    before, memory = meter.read(), _memory(meter.pids)
    there = site.attached()
    began = time.monotonic()
    with _watched(site) as seen:
        site.each(lambda at: site.admin.create(_route(site, *names[at])), range(count))
        created = time.monotonic()
        site.wait_served(names[-1][1], _PATIENCE)
        site.wait_served(names[count // 2][1], _PATIENCE)
        served = time.monotonic()
        _wait(lambda: seen.last == there + count)
        attached = time.monotonic()
    spent, after = meter.read(), _memory(meter.pids)
    probes = measure_propagation(site, site.meter(), 20)
    _delete_routes(site, "p-", 20)
    _delete_routes(site, "s-", count)
    return Result(
        "route-scale",
        round_figures(
            {
                "routes": count,
                "all created after s": created - began,
                "last one served, s after its create": served - created,
                "all attached, s after the last create": attached - created,
                **_costs(before, spent, after),
                "memory of the proxy for a route, KiB": max(0.0, after[PROXY] - memory[PROXY])
                * 1024
                / count,
                "propagation on top, mean ms": statistics.mean(probes.taken),
                "wrong answers": len(probes.wrong),
            }
        ),
        {"attached routes": [(at - began, value) for at, value in seen.points]},
    )


def listener_sets(site: Site, scale: float) -> Result:
    """Time until the last route of many ListenerSets is served: 16 routes each."""
    sets = max(5, round(SETS * scale))
    meter = site.meter()
    before = meter.read()
    began = time.monotonic()

    def add(at: int) -> None:
        site.admin.create(_listener_set(site, at))
        for number in range(ROUTES_OF_SET):
            site.admin.create(_set_route(site, at, number))

    site.each(add, range(sets))
    created = time.monotonic()
    for at in (sets - 1, sets // 2, 0):
        site.wait_served(_set_host(at, ROUTES_OF_SET - 1), _PATIENCE)
    served = time.monotonic()
    spent, after = meter.read(), _memory(meter.pids)
    result = Result(
        "listener-sets",
        round_figures(
            {
                "ListenerSets": sets,
                "routes": sets * ROUTES_OF_SET,
                "all created after s": created - began,
                "last ones served, s after the last create": served - created,
                **_costs(before, spent, after),
            }
        ),
    )
    site.admin.delete(site.path("listenersets"))
    _delete_routes(site, "l-", sets * ROUTES_OF_SET)
    return result


def _route(site: Site, name: str, host: str) -> Manifest:
    return route(site.app, name, "eg", [host], service="one")


def _listener_set(site: Site, at: int) -> Manifest:
    listener = {
        "name": "http",
        "port": 80,
        "protocol": "HTTP",
        "hostname": f"*.set{at}.example",
        "allowedRoutes": {"namespaces": {"from": "Same"}},
    }
    return {
        "apiVersion": GATEWAY,
        "kind": "ListenerSet",
        "metadata": {"namespace": site.app, "name": f"set-{at}"},
        "spec": {"parentRef": {"name": "eg"}, "listeners": [listener]},
    }


def _set_host(at: int, number: int) -> str:
    return f"r{number}.set{at}.example"


def _set_route(site: Site, at: int, number: int) -> Manifest:
    made = route(site.app, f"l-{at}-{number}", "eg", [_set_host(at, number)], service="one")
    parent = {"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": f"set-{at}"}
    made["spec"]["parentRefs"] = [parent]
    return made


def _delete(site: Site, plural: str, name: str) -> None:
    site.admin.delete(site.path(plural, name))


def _delete_routes(site: Site, prefix: str, count: int) -> None:
    """Delete the routes of a test and wait until the gateway has followed."""
    found = [one["metadata"]["name"] for one in site.admin.items(site.path("httproutes"))]
    gone = [name for name in found if name.startswith(prefix)]
    assert len(gone) == count, f"{len(gone)} routes of {count}"
    site.each(lambda at: _delete(site, "httproutes", gone[at]), range(count))
    left = len(found) - count
    _wait(lambda: site.attached() <= left)


def _costs(
    before: Mapping[str, float], after: Mapping[str, float], memory: Mapping[str, float]
) -> dict[str, float]:
    """Return the CPU seconds between two readings and the memory of controller and proxy."""
    programs = (CONTROLLER, PROXY)
    cpu = {f"CPU of the {name}, s": after[name] - before[name] for name in programs}
    return cpu | {f"memory of the {name}, MiB": memory[name] for name in programs}


def _memory(pids: dict[str, list[int]]) -> dict[str, float]:
    return {name: memory_of(pids[name]) for name in (CONTROLLER, PROXY)}


def _wait(true: Callable[[], bool]) -> None:
    wait_until(true, _PATIENCE, every=0.02)


class _Watched:
    """The attached routes of a Gateway, from each write of its status."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.writes = 0
        self.last = -1

    def follow(self, site: Site, over: threading.Event) -> None:
        """Read the watch until it is over."""
        path, only = site.path("gateways"), "metadata.name=eg"
        while not over.is_set():
            # Without a version, an API server over an etcd of 3.4 refuses the watch.
            listed = site.admin.get(path, fieldSelector=only)
            self._take(listed["items"][0])
            version = listed["metadata"]["resourceVersion"]
            events = site.admin.watch(path, 5, fieldSelector=only, resourceVersion=version)
            for kind, found in events:
                if over.is_set() or kind == "ERROR":
                    break
                self.writes += 1
                self._take(found)

    def _take(self, found: Manifest) -> None:
        self.last = attached_of(found)
        self.points.append((time.monotonic(), float(self.last)))


@contextmanager
def _watched(site: Site) -> Iterator[_Watched]:
    seen, over = _Watched(), threading.Event()
    thread = threading.Thread(target=seen.follow, args=(site, over), daemon=True)
    thread.start()
    try:
        _wait(lambda: seen.last >= 0)
        seen.writes = 0
        yield seen
    finally:
        over.set()
        thread.join(20)
        seen.points = _thinned(seen.points)


def _thinned(points: list[Point]) -> list[Point]:
    step = max(1, len(points) // _MOST_POINTS)
    return points[::step] + ([points[-1]] if points and (len(points) - 1) % step else [])
