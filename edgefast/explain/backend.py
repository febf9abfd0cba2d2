"""Backend: how a rule's policies treat backends, as text: outlier detection, retries, choice of endpoints.

In: a rule's traffic units in their order: overrides, the highest first, then the most specific one.
Out: the effective settings and their policies. Every report about backends uses the one table of
leaves.
Must never: show what a check sends to an endpoint, or what it expects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from edgefast import ir
from edgefast.diagnostics.redact import show_query
from edgefast.explain.duration import write_time
from edgefast.explain.load_balancer import describe_balancer

__all__ = [
    "BACKEND_FIELDS",
    "COUNTED",
    "LEAVES",
    "BackendSetting",
    "Leaf",
    "describe_units",
    "find_backend",
    "settle_backend",
    "describe_overridden",
]

#: Counts of ir.Traffic in words.
COUNTED = {
    "max_connections": "connections",
    "max_endpoint_connections": "connections of an endpoint",
    "max_connection_requests": "requests of a connection",
    "max_pending": "waiting requests",
    "max_requests": "parallel requests",
    "max_retries": "repeats",
}
#: Numbers of ir.Traffic that are about backends.
BACKEND_FIELDS = ("send_timeout", "connect_timeout", "retry_timeout", *COUNTED)


class Leaf(msgspec.Struct, frozen=True):
    """One leaf of ir.Traffic that is about backends and no number: the first unit that says it has it."""

    field: str
    label: str  # in a list
    describe: Callable[[Any], str]
    plain: object = None  # what is done where nobody says it


class BackendSetting(msgspec.Struct, frozen=True):
    """What is in force of one."""

    leaf: Leaf
    value: Any
    unit: str  # whose it is

    def text(self) -> str:
        """Return what it does."""
        return self.leaf.describe(self.value)


def find_backend(units: Sequence[ir.PolicyUnit]) -> Iterator[BackendSetting]:
    """Give what is in force."""
    for leaf in LEAVES:
        for unit in units:
            found = getattr(unit.traffic, leaf.field) if unit.traffic is not None else None
            if found is not None:
                yield BackendSetting(leaf, found, unit.name)
                break


def settle_backend(units: Sequence[ir.PolicyUnit]) -> Iterator[tuple[str, object]]:
    """Give what is in force and makes a difference, in a form that two tables can be compared by."""
    for one in find_backend(units):
        if one.value != one.leaf.plain:
            yield one.leaf.field, one.value


def describe_units(units: Sequence[ir.PolicyUnit]) -> tuple[str, ...]:
    """Return what is in force, each with whose it is."""
    return tuple(
        f"{one.unit}: {one.text()}{describe_overridden(units, one.leaf.field, one.unit)}"
        for one in find_backend(units)
    )


def describe_overridden(units: Sequence[ir.PolicyUnit], field: str, *holders: str) -> str:
    """Return whose word on a leaf of ir.Traffic does not hold, as the end of a line that says whose does."""
    lost = [
        one.name
        for one in units
        if one.name not in holders
        and one.traffic is not None
        and getattr(one.traffic, field) is not None
    ]
    return f", which overrides {' and '.join(lost)}" if lost else ""


def _describe_panic(percent: int) -> str:
    if not percent:
        return "ejected endpoints are used when all are ejected"
    return f"all endpoints are used when less than {percent} percent of them are healthy"


def _describe_constraint(one: ir.RetryConstraint) -> str:
    least = f"{one.count} in {write_time(one.count_interval)} at least"
    return f"at most {one.percent} percent of the requests to a backend in {write_time(one.interval)} may be retries, {least}; above that 503"


def _describe_budget(one: ir.RetryBudget) -> str:
    share = f"{one.numerator * 100 / one.denominator:g} percent"
    return f"at most {share} of a backend's requests may be retries, but always {one.least}"


def _describe_outlier(one: ir.OutlierDetection) -> str:
    also = " or failed connections" if one.local is None else ""
    rows = [
        f"{count} {what}"
        for count, what in (
            (one.local or 0, "failed connections"),
            (one.gateway, f"answers of 502 to 504{also}"),
            (one.server, f"answers of 5xx{also}"),
        )
        if count
    ]
    message = [f"{' or '.join(rows)} in a row"] if rows else []
    if one.failures:
        message.append(
            f"{one.failures} percent of the answers in {write_time(one.interval or 3000)}{also and f', {also[4:]} included,'} that fail"
        )
    if not message:
        return "no endpoint is ejected"
    most = f"at most {one.percent} percent of them at once"
    if one.always_one:
        most += ", or one"
    return f"{', or '.join(message)} eject an endpoint for {write_time(one.base)}, {most}"


def _describe_check(one: ir.HealthCheck) -> str:
    what = {
        "http": f"{one.method} {show_query(one.path)}",
        "tcp": "a connection",
        "grpc": f"a call of grpc.health.v1.Health/Check for {one.service or 'the whole server'}",
    }[one.kind]
    where = f" at port {one.port}" if one.port else ""
    if one.host:
        where += f" as {one.host}"
    message = [f"{', '.join(map(str, one.statuses))} is good"] if one.kind == "http" else []
    if one.counted:
        message.append(f"{', '.join(map(str, one.counted))} count as one failure")
    if one.sends:
        how = "says" if one.kind == "tcp" else "with a body of"
        message.append(f"{how} {len(one.sends)} bytes")
    message += (
        [f"the answer must contain the given {len(one.expects)} bytes"] if one.expects else []
    )
    good = f" ({', '.join(message)})" if message else ""
    first = f", the first time within {write_time(one.jitter)}" if one.jitter else ""
    return f"each endpoint is checked every {write_time(one.interval)}{first}{where}, with a timeout of {write_time(one.timeout)}: {what}{good}; unhealthy after {one.unhealthy} failures in a row, healthy again after {one.healthy} successes"


#: In the order in which they are told; the numbers are in BACKEND_FIELDS.
LEAVES = (
    Leaf("check", "health", _describe_check),
    Leaf("outlier", "failing endpoints", _describe_outlier),
    Leaf("retry_budget", "repeats", _describe_budget),
    Leaf("retry_constraint", "retries in an interval", _describe_constraint),
    Leaf("panic", "panic", _describe_panic, plain=0),
    Leaf("load_balancer", "endpoints", describe_balancer, plain=ir.LoadBalancer()),
)
