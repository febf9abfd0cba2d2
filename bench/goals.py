"""The figures that edgefast is held to, each read from the medians of a table.

In: tables of one run. Out: a line for every goal of a row that was measured: "met", "MISSED by", or
why it is not judged. A goal with `must` is required; the others are aims. Must never stop the bench,
and must never be a test: on a shared machine a miss is a reason to look, not a failure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench.table import Table

Values = dict[str, dict[str, float]]

#: Rows whose figure is CPU per request and what of the floor it must be at most; the floor has no log, and of TLS
#: there are goals against others alone.
WITH_FLOOR = {"get": 1.2, "connect": 1.2, "post": 1.3, "download": 1.3}
WITHOUT_FLOOR = ("get-logs", "tls", "handshake", "handshake-resumed")
#: Of nginx; a handshake with AWS-LC has a goal of its own.
OF_NGINX = {"tls": 0.85}
OF_NGINX_WITH_AWS_LC = 0.65
SLOPES = ("hosts", "paths")
#: Rows of HTTP/2: of the floor's CPU per request in HTTP/1.1, what it must be at most, and what is reached for.
HTTP2 = {"h2-8x16": (1.2, 1.0), "h2-64x1": (1.6, 1.4), "h2-both": (0.8, 0.5), "grpc": (1.3, 0.9)}

#: Rows of layer 4, by whom they are held to: CPU per connection, bytes or datagram at most that of the best of them.
_STREAMS = ("nginx", "haproxy", "envoy")
LAYER4 = {
    **dict.fromkeys(("tcp-connect", "tcp-bulk", "tls-passthrough"), _STREAMS),
    "udp": ("nginx", "envoy"),  # haproxy passes no datagrams on
}


@dataclass(frozen=True)
class Goal:
    """`read` gives the figure, or raises KeyError where the run lacks a part of it."""

    row: str
    what: str
    limit: float
    read: Callable[[Values], float]
    at_most: bool = True
    must: bool = True  # else it is reached for
    bound: Callable[[Values], float] | None = None  # the figure of a proxy that does nothing


def _cpu_ratio(other: str) -> Callable[[Values], float]:
    return lambda values: values["edgefast"][other]


def _metric(name: str) -> Callable[[Values], float]:
    return lambda values: values["edgefast"][name]


def _handshake(aws_lc: bool) -> Callable[[Values], float]:
    """CPU / nginx in a run of an engine that is linked with this library."""

    def read(values: Values) -> float:
        if values["edgefast"]["aws_lc"] != aws_lc:
            raise KeyError("engine with AWS-LC" if aws_lc else "engine with the system's OpenSSL")
        return values["edgefast"]["nginx"]

    return read


def _share(routes: int) -> Callable[[Values], float]:
    return lambda values: values[f"edgefast {routes}"]["share"]


def _added(quantile: str, other: str) -> Callable[[Values], float]:
    """What edgefast adds to going direct, as a multiple of what another proxy adds."""

    def read(values: Values) -> float:
        direct = values["direct"][quantile]
        theirs = values[other][quantile] - direct
        if theirs <= 0:
            raise KeyError(f"{quantile} of {other} above direct")
        return (values["edgefast"][quantile] - direct) / theirs

    return read


def list_goals() -> Iterator[Goal]:
    """All goals, by row."""
    for row in (*WITH_FLOOR, *WITHOUT_FLOOR):
        if row in WITH_FLOOR:
            yield Goal(row, "CPU per request / floor", WITH_FLOOR[row], _cpu_ratio("floor"))
            yield Goal(row, "CPU per request / floor", 1.1, _cpu_ratio("floor"), must=False)
        if row == "handshake":
            for aws_lc, name, limit in (
                (False, "the system's OpenSSL", 1.0),
                (True, "AWS-LC", OF_NGINX_WITH_AWS_LC),
            ):
                what = f"CPU per request / nginx, with {name}"
                yield Goal(row, what, limit, _handshake(aws_lc))
        else:
            limit = OF_NGINX.get(row, 1.0)
            yield Goal(row, "CPU per request / nginx", limit, _cpu_ratio("nginx"))
        floor = (lambda values: values["floor"]["envoy"]) if row in WITH_FLOOR else None
        yield Goal(row, "CPU per request / Envoy", 0.4, _cpu_ratio("envoy"), bound=floor)
        for other in ("haproxy", "pingora", "sozu"):
            yield Goal(row, f"CPU per request / {other}", 1.0, _cpu_ratio(other), must=False)
    for row, (must, reach) in HTTP2.items():
        what = "CPU per request / floor in HTTP/1.1"
        yield Goal(row, what, must, _cpu_ratio("floor"))
        yield Goal(row, what, reach, _cpu_ratio("floor"), must=False)
        for other in ("nginx", "envoy"):
            yield Goal(row, f"CPU per request / {other}", 1.0, _cpu_ratio(other))
        for other in ("haproxy", "nghttpx", "pingora"):
            yield Goal(row, f"CPU per request / {other}", 1.0, _cpu_ratio(other), must=False)
    for row, others in LAYER4.items():
        for other in others:
            yield Goal(row, f"CPU / {other}", 1.0, _cpu_ratio(other))
    yield Goal("h2-beside", "p99 with the two / without", 2.0, _metric("p99_share"))
    yield Goal("h2-attacks", "p99 of others, attacked / alone", 2.0, _metric("p99_share"))
    yield Goal("h2-attacks", "bytes of memory that an attack takes", 64 << 20, _metric("grown"))
    yield Goal("floods", "p99 of others, flooded / alone", 2.0, _metric("p99_share"))
    what = "p99 of others, passwords and tokens / as many 404s"
    yield Goal("floods", what, 1.25, _metric("of_plain"), must=False)
    yield from list_policy_goals()
    for quantile in ("p50", "p99", "p999"):
        what = f"{quantile} added to direct / nginx's"
        yield Goal("latency", what, 1.0, _added(quantile, "nginx"), must=False)
    for row in SLOPES:
        for routes in (10_000, 100_000):
            what = f"CPU per request with 1 route / with {routes:,}"
            yield Goal(row, what, 0.85, _share(routes), at_most=False)
            yield Goal(row, what, 0.95, _share(routes), at_most=False, must=False)
    yield Goal("syscalls", "system calls per keep-alive request", 4.5, _metric("calls"))
    yield Goal("memory", "bytes per route and backend, workers", 8_000, _metric("bytes"))
    yield Goal("idle", "bytes per idle connection", 1.5 * 1024, _metric("bytes"))
    yield Goal("idle-tls", "bytes per idle TLS connection", 12 * 1024, _metric("bytes"))
    yield Goal("start", "ms from exec to the last of 1,000 routes", 1_000, _metric("start_ms"))
    yield Goal("start", "ms from a changed file to the added route", 100, _metric("reload_ms"))
    yield from list_limit_goals()


def list_policy_goals() -> Iterator[Goal]:
    """What policies may add to a request: microseconds, or parts of what others add or of a second request."""
    for row, limit in (
        ("policy-cidr", 0.3),
        ("policy-jwt", 3.0),
        ("policy-hash", 1.0),
        ("policy-session", 1.0),
        ("policy-oidc", 3.0),
    ):
        yield Goal(row, "us of CPU added", limit, _metric("added"))
    yield Goal("policy-jwt", "us added / Envoy's with its cache", 1.0, _cpu_ratio("envoy"))
    yield Goal("policy-extauth", "us added / a second request", 1.3, _metric("of_request"))
    for row in ("policy-gzip", "policy-br", "policy-zstd"):
        yield Goal(row, "us added / Envoy's at its level", 1.0, _cpu_ratio("envoy"))
    yield Goal("policy-gzip", "us added / nginx's at its level", 1.0, _cpu_ratio("nginx"))
    for row in ("policy-cidr", "policy-extauth", "policy-hash", "policy-session", "policy-oidc"):
        yield Goal(row, "us added / Envoy's", 1.0, _cpu_ratio("envoy"), must=False)
    yield Goal("policy-cidr", "us added to requests without it", 0.3, _metric("unused"), must=False)


def list_limit_goals() -> Iterator[Goal]:
    """Goals of the limits row: requests/s as they were, and as a proxy has them to whom only its own CPU is the limit."""
    for store in ("redis", "memory"):
        for how in ("rps", "cpu"):
            words = "requests/s" if how == "rps" else "requests per CPU second"

            def read(values: Values, path: str, key: str, store: str = store) -> float:
                return values[f"{store} {path}"][key]

            share, of_hot = partial(read, key=f"{how}_share"), partial(read, key=f"{how}_of_hot")
            for limit, must in ((0.75, True), (0.9, False)):
                what = f"{store}: limited {words} / unlimited"
                yield Goal("limits", what, limit, partial(share, path="hot"), False, must)
            for limit, must in ((1.5, True), (2.0, False)):
                what = f"{store}: 429 {words} / unlimited"
                yield Goal("limits", what, limit, partial(share, path="spent"), False, must)
            what = f"{store}: {words} of 100,000 counters / of one"
            yield Goal("limits", what, 0.9, partial(of_hot, path="users"), False)
        for limit, must in ((150, True), (60, False)):
            what = f"{store}: us added to p50 at 30 % load"
            yield Goal("limits", what, limit, partial(read, path="hot", key="p50_added"), must=must)
    what = "redis: script calls per 429"
    yield Goal("limits", what, 0.0001, lambda values: values["redis spent"]["calls"])


def judge_goals(tables: Sequence[Table]) -> list[str]:
    """One line per goal whose row was measured, and per machine that it was measured on: quiet, noisy."""
    return [
        judge(goal, table.values, table.noisy)
        for goal in list_goals()
        for table in tables
        if table.name == goal.row
    ]


def judge(goal: Goal, values: Values, noisy: bool = False) -> str:
    """Return the line of one goal."""
    row = f"{goal.row} (noisy)" if noisy else goal.row
    what = f"{row}: {goal.what}" + ("" if goal.must else " (reach for)")
    try:
        value = goal.read(values)
    except KeyError as missing:
        return f"{what}: not judged, this run has no {missing.args[0]}"
    met = value <= goal.limit if goal.at_most else value >= goal.limit
    away = f"{abs(value / goal.limit - 1):.0%}" if goal.limit else f"{value:g}"
    verdict = "met" if met else f"MISSED by {away}" if goal.must else f"{away} away"
    if not met and goal.bound is not None:
        try:
            verdict += f", the floor itself is at {goal.bound(values):.3g}"
        except KeyError:
            pass  # it took no part
    return f"{what}: {value:.3g} ({'<=' if goal.at_most else '>='} {goal.limit:g}): {verdict}"
