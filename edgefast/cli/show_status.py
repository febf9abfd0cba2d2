"""The status screen as text: tables for Gateways, listeners, routes with their traffic, proxies, problems.

In: a `StatusReport`.
Out: lines. Routes with problems come first, then the busiest. `most` bounds the rows of each table,
and a count covers the omitted rows.
Must never: add a fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefast.api.model.origin import ingress_of, is_made
from edgefast.api.model.route_name import route_of
from edgefast.cli.counters import Rate, sum_rates
from edgefast.cli.output import escape_control, render_table, wrap_line, wrap_rows
from edgefast.cli.status_model import ProxyRow, RouteRow, StatusReport
from edgefast.diagnostics.problem import ask_about

_Row = Sequence[object]
_Table = tuple[Sequence[str], Sequence[_Row]]


def render_screen(
    screen: StatusReport, *, most: int = 0, width: int = 0, wrap: bool = False
) -> Iterator[str]:
    """Give the lines; `most` rows of each table (0: all), lines cut at `width` columns (0: not) or, with `wrap`, continued."""

    def fit(line: str) -> list[str]:
        return wrap_line(line, width) if wrap else [line[:width] if width else line]

    yield from fit(escape_control(_head(screen)))
    for header, rows in _tables(screen):
        if not rows:
            continue
        yield ""
        shown = rows[:most] if most else rows
        if wrap:
            yield from render_table(header, wrap_rows(header, shown, width))
        else:
            yield from render_table(header, shown, width)
        if len(shown) < len(rows):
            yield f"... and {len(rows) - len(shown)} more (--most)"
    more = ask_about(one.reason for one in screen.problems)
    if more:
        yield from fit(f"more about it: {more}")
    if screen.notes:
        yield ""
    for note in screen.notes:
        yield from fit(escape_control(f"note: {note}"))


def _head(screen: StatusReport) -> str:
    parts = [screen.source]
    if screen.seconds:
        rate, seconds = sum_rates(screen.traffic), screen.seconds
        parts.append(f"{rate:.4g} requests/s in the last {seconds:.3g} s")
    for number, word in (
        (len(screen.gateways), "Gateway"),
        (len({one.name for one in screen.routes}), "route"),
        *(((len(screen.ingresses), "Ingress"),) if screen.ingresses else ()),
        (len(screen.proxies), "proxy"),
        (len(screen.problems), "problem"),
    ):
        words = {"proxy": "proxies", "Ingress": "Ingresses"}.get(word, f"{word}s")
        parts.append(f"{number} {word if number == 1 else words}")
    return ", ".join(parts)


def _tables(screen: StatusReport) -> Iterator[_Table]:
    yield (
        ("CLASS", "CONTROLLER", "ACCEPTED"),
        [(one.name, one.controller, one.accepted or "-") for one in screen.classes],
    )
    yield (
        ("GATEWAY", "CLASS", "ADDRESSES", "ACCEPTED", "PROGRAMMED"),
        [
            (
                one.name,
                one.gateway_class or "-",
                ",".join(one.addresses) or "-",
                one.accepted or "-",
                one.programmed or "-",
            )
            for one in screen.gateways
        ],
    )
    yield (
        ("GATEWAY", "LISTENER", "PORT", "PROTOCOL", "HOSTNAME", "ROUTES", "PROGRAMMED"),
        [
            (
                one.gateway,
                one.name,
                one.port,
                one.protocol,
                one.hostname,
                "-" if one.routes is None else one.routes,
                one.programmed or "-",
            )
            for one in screen.listeners
        ],
    )
    yield (
        ("LISTENERSET", "GATEWAY", "ACCEPTED", "PROGRAMMED"),
        [
            (one.name, one.gateway, one.accepted or "-", one.programmed or "-")
            for one in screen.listener_sets
        ],
    )
    yield _routes(screen)
    yield _ingresses(screen)
    yield (
        ("FLEET", "PROXY", "READY", "WORKERS", "CONNECTIONS", "TABLE", "STATE"),
        [_proxy(one) for one in screen.proxies],
    )
    yield (
        ("WORKER", "PID", "TABLE", "RESTARTS", "STATE"),
        [
            (one.number, one.pid, one.table[:8] or "none", one.restarts, one.state or "-")
            for one in screen.workers
        ],
    )
    yield (
        ("PROBLEM", "CONDITION", "REASON", "MESSAGE"),
        [
            (one.object or "-", one.condition or one.severity, one.reason, one.message)
            for one in screen.problems
        ],
    )


def _routes(screen: StatusReport) -> _Table:
    rates = {one.route: one for one in screen.traffic}
    wrong = {name for one in screen.problems if (name := route_of(one.object))}

    def order(one: RouteRow) -> tuple[bool, float, str]:
        rate = rates.get(one.name)
        return one.name not in wrong, -(rate.requests_per_second if rate else 0.0), one.name

    known = {one.name for one in screen.routes}
    others = [
        RouteRow(name=one.route)
        for one in screen.traffic
        if one.route not in known and one.requests_per_second and not is_made(one.route)
    ]
    header = ["ROUTE", "HOSTNAMES", "PARENT", "ACCEPTED", "REFERENCES"]
    if screen.seconds:
        header += ["REQ/S", "ERRORS", "P50", "P99"]
    rows = []
    for one in sorted([*screen.routes, *others], key=order):
        row: list[object] = [
            one.name,
            ",".join(one.hostnames) or "*",
            one.parent or "-",
            one.accepted or "-",
            one.resolved or "-",
        ]
        rows.append([*row, *_traffic(rates.get(one.name))] if screen.seconds else row)
    return header, rows


def _ingresses(screen: StatusReport) -> _Table:
    rates: dict[str, float] = {}
    for rate in screen.traffic:
        if is_made(rate.route):
            name = ingress_of(rate.route)
            rates[name] = rates.get(name, 0.0) + rate.requests_per_second
    header = ["INGRESS", "CLASS", "HOSTNAMES", "ADDRESSES"]
    if screen.seconds:
        header.append("REQ/S")
    rows: list[list[object]] = []
    for one in sorted(screen.ingresses, key=lambda one: (-rates.get(one.name, 0.0), one.name)):
        row: list[object] = [
            one.name,
            one.ingress_class or "-",
            ",".join(one.hostnames) or "-",
            ",".join(one.addresses) or "-",
        ]
        rows.append([*row, f"{rates.get(one.name, 0.0):.4g}"] if screen.seconds else row)
    return header, rows


def _traffic(rate: Rate | None) -> Sequence[str]:
    if rate is None or not rate.requests_per_second:
        return "0", "-", "-", "-"
    return (
        f"{rate.requests_per_second:.4g}",
        f"{100 * rate.error_share:.3g}%",
        _milliseconds(rate.p50_ms),
        _milliseconds(rate.p99_ms),
    )


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}ms" if value < 1000 else f"{value / 1000:.3g}s"


def _proxy(one: ProxyRow) -> _Row:
    ready = {None: "-", True: "yes", False: "no"}[one.ready]
    connections = "-" if one.connections is None else one.connections
    return (
        one.fleet or "-",
        one.name,
        ready,
        one.workers or "-",
        connections,
        one.table[:8] or "-",
        one.state or "-",
    )
