"""Counters: the values of a proxy's metrics page, and the rates between two pages.

In: pages of `GET /metrics`, each with the time of its reading.
Out: `Page`; `Rate` by route: requests per second, error ratio, p50 and p99. Counters that decreased
belong to a new process and count from zero. A proxy without a first reading is omitted.
Must never: use a client's value as a label; route names come from the operator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import msgspec

_ROW = re.compile(
    r"edgefast_(requests_total|requests_aborted_total|request_duration_seconds_bucket)"
    r'\{route="([^"\\]*)",rule="(?:[^"\\]|\\.)*"(?:,(?:code_class|le)="([^"]*)")?\} (\d+)',
)
_INFO = re.compile(r'edgefast_info\{version="([^"]*)",table="([^"]*)"(?:,tls="[^"]*")?\}')
_STORE = re.compile(
    r'edgefast_ratelimit_store_troubles\{store="([^"\\]{1,300})",trouble="([a-z-]{1,40})"\} (\d+)$'
)
#: Places of counters of one page that are looked at.
_STORES = 100
_PLAIN = re.compile(r"edgefast_([a-z_]+) ([-+.0-9e]+)$")
#: What no counter of a proxy gets to.
_MOST = float(2**64)
#: Numbers without labels that a screen shows.
_WANTED = frozenset(
    {
        "config_problems",
        "connections_active",
        "draining",
        "ready",
        "table_age_seconds",
        "worker_restarts_total",
        "workers",
        "workers_alive",
    }
)


class Row(msgspec.Struct):
    """Counters of one route: all its rules together."""

    requests: int = 0  # those without an answer too
    errors: int = 0  # 5xx, and those without an answer
    buckets: dict[float, int] = {}  # upper bound in seconds -> requests up to it


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of one proxy."""

    at: float  # seconds of a clock that never goes back
    version: str = ""  # of edgefast
    table: str = ""
    routes: Mapping[str, Row] = {}
    numbers: Mapping[str, float] = {}
    stores: Mapping[tuple[str, str], int] = {}  # (place of counters, trouble) -> workers

    @property
    def ready(self) -> bool:
        """Whether all live workers serve the present table and nothing drains."""
        return self.numbers.get("ready") == 1

    def number(self, name: str) -> int:
        """Return a number of the page, 0 when it has none."""
        return int(self.numbers.get(name, 0))


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """One route over some seconds; latencies are milliseconds, None without a request."""

    route: str
    requests_per_second: float
    error_share: float  # 0 to 1
    p50_ms: float | None
    p99_ms: float | None


def _finite(value: float) -> float:
    """Return a number that a counter of ours can be; a page is what some pod says."""
    if not abs(value) < _MOST:  # NaN too
        raise ValueError(f"{value} is not a valid metric value")
    return value


def read_page(text: str, at: float) -> Page:
    """Read a page. ValueError when it is none of a proxy of ours."""
    version = table = None
    numbers: dict[str, float] = {}
    rows: dict[str, Row] = {}
    stores: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if found := _ROW.match(line):
            count = int(_finite(float(found[4])))
            _add(rows.setdefault(found[2], Row()), found[1], found[3] or "", count)
        elif (plain := _PLAIN.match(line)) and plain[1] in _WANTED:
            numbers[plain[1]] = _finite(float(plain[2]))
        elif info := _INFO.match(line):
            version, table = info[1], info[2]
        elif (store := _STORE.match(line)) and len(stores) < _STORES:
            stores[store[1], store[2]] = int(_finite(float(store[3])))
    if version is None or table is None:
        raise ValueError("not the metrics of an edgefast proxy")
    # A row that has counted nothing is one that a proxy always shows, for what finds no row of its own.
    counted = {name: row for name, row in rows.items() if row.requests}
    return Page(at=at, version=version, table=table, routes=counted, numbers=numbers, stores=stores)


def _add(row: Row, family: str, label: str, count: int) -> None:
    if family == "request_duration_seconds_bucket":
        bound = float(label)
        row.buckets[bound] = row.buckets.get(bound, 0) + count
        return
    row.requests += count
    if family == "requests_aborted_total" or label == "5xx":
        row.errors += count


def measure(before: Mapping[str, Page], after: Mapping[str, Page]) -> tuple[Rate, ...]:
    """Return the rates of all routes, by name, over the time between two readings of the same proxies."""
    per_second: dict[str, float] = {}
    sums: dict[str, Row] = {}
    for name, page in after.items():
        old = before.get(name)
        if old is None or page.at <= old.at:
            continue
        for route, row in page.routes.items():
            more = _subtract(row, old.routes.get(route, Row()))
            rate = more.requests / (page.at - old.at)
            per_second[route] = per_second.get(route, 0.0) + rate
            total = sums.setdefault(route, Row())
            total.requests += more.requests
            total.errors += more.errors
            for bound, count in more.buckets.items():
                total.buckets[bound] = total.buckets.get(bound, 0) + count
    return tuple(_rate(route, per_second[route], sums[route]) for route in sorted(sums))


def sum_rates(rates: Iterable[Rate]) -> float:
    """Return the requests per second of all routes."""
    return sum(one.requests_per_second for one in rates)


def _subtract(row: Row, old: Row) -> Row:
    if old.requests > row.requests:
        return row
    return Row(
        requests=row.requests - old.requests,
        errors=max(row.errors - old.errors, 0),
        buckets={
            bound: max(count - old.buckets.get(bound, 0), 0) for bound, count in row.buckets.items()
        },
    )


def _rate(route: str, per_second: float, row: Row) -> Rate:
    return Rate(
        route=route,
        requests_per_second=round(per_second, 3),
        error_share=round(row.errors / row.requests, 6) if row.requests else 0.0,
        p50_ms=find_quantile(row.buckets, 0.5),
        p99_ms=find_quantile(row.buckets, 0.99),
    )


def find_quantile(buckets: Mapping[float, int], share: float) -> float | None:
    """Return a quantile in milliseconds, as Prometheus' histogram_quantile: straight lines within buckets.

    Beyond the last bound it is that bound; None when nothing was counted.
    """
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0
    if not total:
        return None
    wanted, below, start = share * total, 0, 0.0
    for bound in bounds:
        here = buckets[bound]
        if here >= wanted:
            if math.isinf(bound):
                break
            part = (wanted - below) / (here - below) if here > below else 1.0
            return round(1000 * (start + (bound - start) * part), 3)
        below = here
        start = bound if not math.isinf(bound) else start
    return round(1000 * start, 3)
