"""Tests under load: traffic, route changes, backend failover, rollouts.

In: a site, a scale. Out: a `Result`. A load of these tests has a rate that each gateway can serve, so that a wrong answer is an error and
not a queue. Must never: leave out an answer: each request is right, wrong or failed.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.cluster.spent import PROXY
from bench.gateway.result import Result, round_figures
from bench.gateway.site import STEADY, Site, memory_of
from cluster.installed import conditions_of, route
from cluster.tools.missing import MissingTool
from cluster.world import netns
from cluster.world.api import Manifest
from cluster.world.load import Answers

CHANGES = 500
RATE = 100.0
FAILOVER_SECONDS = 30.0
_ROUNDS, _SECONDS, _CONNECTIONS = 3, 4, 32
_LUA = Path(__file__).parents[1] / "wrk" / "get.lua"
#: Envoy keeps the old cluster until the new one is warm, up to 15 s.
_SETTLE_SECONDS, _ROW = 40.0, 50
#: A port of the backend's pods at which nothing listens: connections are refused.
_CLOSED_PORT = 3999


def traffic(site: Site, _: float) -> Result:
    """GET on kept connections through wrk: rate, latency, and CPU of the proxy for a request."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise MissingTool("wrk (Debian package wrk)", "run the test traffic")
    command = [
        *netns.prefix(site.world.network.client),
        *(wrk, "-t1", f"-c{_CONNECTIONS}", f"-d{_SECONDS}s", "-s", str(_LUA)),
        *(f"http://{site.address}/", "--", f"host={STEADY}"),
    ]
    meter = site.meter()
    found: dict[str, list[float]] = {}
    for _round in range(_ROUNDS):
        before = meter.read()[PROXY]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        cpu = meter.read()[PROXY] - before
        (line,) = re.findall(r"^figures: test=get (.*)$", done.stdout, re.M)
        values = {name: float(value) for name, value in (one.split("=") for one in line.split())}
        for name, value in (
            ("requests/s", values["rate"]),
            ("p50 ms", values["p50_ms"]),
            ("p99 ms", values["p99_ms"]),
            ("CPU of the proxy for a request, us", cpu / values["requests"] * 1e6),
            ("wrong answers", values["errors"] + values["failed"]),
        ):
            found.setdefault(name, []).append(value)
    figures = {name: statistics.median(values) for name, values in found.items()}
    figures["memory of the proxy, MiB"] = memory_of(meter.pids[PROXY])
    return Result("traffic", round_figures(figures))


def route_changes(site: Site, scale: float) -> Result:
    """A route changes its backend again and again under load: no request may notice."""
    count = max(20, round(CHANGES * scale))
    path = site.path("httproutes", "steady")
    taken: list[float] = []
    with site.load(RATE) as answers:
        answers.wait_more(50)
        for number in range(count):
            service = ("two", "one")[number % 2]
            rules = site.admin.get(path)["spec"]["rules"]
            rules[0]["backendRefs"][0]["name"] = service
            began = time.monotonic()
            site.admin.patch(path, {"spec": {"rules": rules}})
            taken.append((time.monotonic() - began) * 1000)
        answers.wait_more(100)
    figures = {"changes": float(count), **_answers(answers)}
    return Result("route-changes", round_figures(figures))


def failover(site: Site, scale: float) -> Result:
    """One of three endpoints refuses connections: with the defaults, with retries, with health checks."""
    seconds = max(5.0, FAILOVER_SECONDS * scale)
    figures: dict[str, float] = {}
    for name, more, checked in (
        ("defaults", {}, False),
        ("retries", {"retry": {"attempts": 2, "codes": [503]}}, False),
        ("checks", {}, True),
    ):
        with _half_broken(site, name, more, checked=checked) as host:
            with site.load(RATE, [host]) as answers:
                answers.wait_total(round(RATE * seconds), seconds * 10)
            wrong = _wrong(answers)
            figures[f"wrong answers with {name}, %"] = 100 * wrong / answers.total
            figures[f"slowest answer with {name}, ms"] = answers.slowest_ms
    return Result("failover", round_figures(figures))


def rollouts(site: Site, _: float) -> Result:
    """The backend's pods, then the gateway's proxies, are replaced under load."""
    figures: dict[str, float] = {}
    for what in ("backend", "proxies"):
        with site.load(RATE) as answers:
            answers.wait_more(50)
            began = time.monotonic()
            if what == "backend":
                site.world.workloads.restart(site.app, "one")
                site.world.workloads.wait_rollout(site.app, "one", 180)
            else:
                site.restart_proxies()
            taken = time.monotonic() - began
            answers.wait_more(200)
        figures[f"rollout of the {what}, s"] = taken
        for name, value in _answers(answers).items():
            figures[f"{name}, rollout of the {what}"] = value
    return Result("rollouts", round_figures(figures))


def _wrong(answers: Answers) -> int:
    return answers.total - answers.by_status[200]


def _answers(answers: Answers) -> dict[str, float]:
    return {
        "requests": float(answers.total),
        "wrong answers": float(_wrong(answers)),
        "slowest answer, ms": answers.slowest_ms,
    }


def _settle(site: Site, host: str) -> None:
    """Wait until checks apply: so many right answers in a row, or as long as a gateway may take to load a cluster again."""
    deadline, row = time.monotonic() + _SETTLE_SECONDS, 0
    while row < _ROW and time.monotonic() < deadline:
        row = row + 1 if site.ask(host) == 200 else 0
        time.sleep(0.05)


def _is_accepted(found: Manifest | None) -> bool:
    return any(
        one["type"] == "Accepted" and one["status"] == "True" for one in conditions_of(found)
    )


@contextmanager
def _half_broken(site: Site, name: str, rule: Manifest, *, checked: bool) -> Iterator[str]:
    """A Service with three endpoints: two pods, and a port that refuses connections; its route's host."""
    service, host = f"half-{name}", f"half-{name}.example"
    pods = site.world.workloads.pods(site.app, "app=one")
    addresses = [pod["status"]["podIP"] for pod in pods]
    made: Sequence[Manifest] = (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"namespace": site.app, "name": service},
            "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 3000}]},
        },
        _slice(site.app, service, "good", addresses, 3000),
        _slice(site.app, service, "bad", addresses[:1], _CLOSED_PORT),
        route(site.app, service, "eg", [host], service=service, **rule),
    )
    site.admin.apply(*made)
    checks = site.installed.checks(site.app, service) if checked else ()
    try:
        site.wait_served(host)
        site.admin.apply(*checks)
        for one in checks:
            site.admin.wait(site.admin.path_of(one), _is_accepted)
        if checks:
            _settle(site, host)
        yield host
    finally:
        site.admin.remove(*checks, *made)


def _slice(
    namespace: str, service: str, name: str, addresses: Sequence[str], port: int
) -> Manifest:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": namespace,
            "name": f"{service}-{name}",
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [one], "conditions": {"ready": True}} for one in addresses],
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }
