"""What the tests of the newest suite's cases share: a Gateway with many listeners, routes one of which is surely younger."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from cluster.controller_bench import Bench, wait_for
from wire.harness.ports import free_port


def bring_up(bench: Bench, name: str, hostnames: dict[str, str]) -> dict[str, int]:
    """A Gateway with a listener for each hostname ("" is any), by name, a port each; returns the ports."""
    ports = {listener: free_port() for listener in hostnames}
    listeners = [
        {
            "name": listener,
            "protocol": "HTTP",
            "port": ports[listener],
            **({"hostname": hostname} if hostname else {}),
        }
        for listener, hostname in hostnames.items()
    ]
    spec = {"gatewayClassName": bench.gateway_class, "listeners": listeners}
    bench.apply("Gateway", name, spec)
    fleet = bench.fleet(name)
    bench.give_address(fleet)
    bench.start_proxy(fleet)
    bench.set_pods(fleet, f"{fleet}-0")
    return ports


def attach(gateway: str, listener: str, *rules: Any, hostname: str = "") -> dict[str, Any]:
    """Return the spec of a route at one listener."""
    spec: dict[str, Any] = {
        "parentRefs": [{"name": gateway, "sectionName": listener}],
        "rules": [*rules],
    }
    return {**spec, "hostnames": [hostname]} if hostname else spec


def grow_older(*objects: Any) -> None:
    """Return when whatever is made now is younger than these: times of creation are whole seconds."""
    made = (one["metadata"]["creationTimestamp"] for one in objects)
    youngest = max(datetime.fromisoformat(one).timestamp() for one in made)
    wait_for("a later second", lambda: time.time() >= youngest + 1)
