"""Prometheus text from the workers' counter segments and the agent's own values.

In: segments (stats.py), facts of the agent.
Out: text exposition format 0.0.4 of the families of edgefast/monitoring/proxy_metrics.py;
OpenMetrics if exemplars are available.
Labels are names of routes, rules, rate limits and policies from the configuration, never values
from clients. The segments bound the number of rows. Counts without a row are in the row `overflow`,
which always exists. Scraping has no cost for workers.
Must never: block; the agent calls it in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from edgefast.core.cells import BACKEND, BUCKET_BOUNDS_MS, GRPC_STATUSES, LIMIT, POLICY, ROW
from edgefast.monitoring.proxy_metrics import BY_LABELS, OVERFLOW, PROXY
from edgefast.proxy.metrics.openmetrics import EOF, canonical, heading_of, write_exemplar
from edgefast.proxy.metrics.stats import (
    Segment,
    sum_backends,
    sum_globals,
    sum_limits,
    sum_policies,
    sum_rows,
)
from edgefast.proxy.traces.exemplars import Exemplar, Marks
from edgefast.xds.stream_stats import StreamStats

__all__ = ["CONTENT_TYPE", "AgentFacts", "render_metrics", "render_openmetrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CELL = {name: index for index, name in enumerate(ROW)}
_LIMIT_CELL = {name: index for index, name in enumerate(LIMIT)}
_LIMIT_RESULTS = ("ok", "over", "shadow_over", "error")
_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_FIRST_BUCKET = _CELL["duration_bucket_0"]
_FIRST_GRPC = _CELL["grpc_OK"]
_BOUNDS = (*(f"{bound / 1000:g}" for bound in BUCKET_BOUNDS_MS), "+Inf")
_CANONICAL_BOUNDS = tuple(map(canonical, _BOUNDS))
#: What a heading is in OpenMetrics.
_HEADINGS = {one.heading(): heading_of(one) for one in PROXY.values()}
#: Families of one cell each, in the order of the page.
_OF_CELLS = [(name, one.cell) for name, one in PROXY.items() if one.cell]
#: Families of rows that are one cell each.
_OF_ROWS = {
    "requests_aborted_total": "requests_aborted",
    "request_bytes_total": "bytes_received",
    "response_bytes_total": "bytes_sent",
    "request_timeouts_total": "timeouts",
    "request_retries_total": "retries",
    "upstream_seconds_total": "upstream_us",
}
_OF_LIMITS = {
    "ratelimit_local_total": "over_local",
    "ratelimit_no_room_total": "no_room",
    "ratelimit_wait_seconds_total": "store_us",
}

_Rows = Sequence[tuple[str, Sequence[int]]]


class AgentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent adds; ages in seconds, expiries and the start in Unix seconds."""

    product_version: str
    tls: str
    started_at: float
    table_version: str
    table_age: float
    table_resources: int
    reloads: int
    problems: int
    refused: int
    ready: bool
    draining: bool
    workers: int
    workers_alive: int
    restarts: int
    arena_used: int
    arena_retired: int
    last_good_failures: int
    spans_exported: int = 0
    spans_lost: int = 0
    last_good_age: float | None
    expiries: Mapping[str, float]
    store_troubles: Mapping[tuple[str, str], int] = {}  # (place of counters, trouble) -> workers
    keys_failing: Mapping[tuple[str, str], bool] = {}  # (policy, provider) with fetched keys
    token_requests: Mapping[tuple[str, str, str], int] = {}  # (policy, kind, result) of OIDC logins
    stream: StreamStats | None = None  # None: tables come from files


def render_metrics(segments: Sequence[Segment], facts: AgentFacts) -> bytes:
    """Return the whole exposition."""
    return "".join(_render(segments, facts, None)).encode()


def render_openmetrics(segments: Sequence[Segment], facts: AgentFacts, marks: Marks) -> bytes:
    """Return the whole exposition as OpenMetrics, with the exemplars of rows that there are."""
    lines = _render(segments, facts, marks)
    return "".join((*(_HEADINGS.get(line, line) for line in lines), EOF)).encode()


def _render(segments: Sequence[Segment], facts: AgentFacts, marks: Marks | None) -> list[str]:
    """Return the lines of text format 0.0.4; with `marks` buckets are those of OpenMetrics."""
    lines: list[str] = []
    _render_agent(lines, facts)
    _render_room(lines, segments)
    if facts.stream is not None:
        _render_stream(lines, facts.stream)
    _render_globals(lines, sum_globals(segments))
    _render_rows(lines, sum_rows(segments), marks)
    _render_limits(lines, sum_limits(segments))
    _render_policies(lines, sum_policies(segments))
    labelled = _labelled(sum_backends(segments), "backend", "reason", len(BACKEND))
    _render_cells(lines, "upstream_tls_failures_total", labelled, 0, False)
    return lines


def _open(lines: list[str], name: str) -> str:
    """Begin a family; return its whole name."""
    family = PROXY[name]
    lines.append(family.heading())
    return family.name


def _one(lines: list[str], name: str, value: float) -> None:
    lines.append(f"{_open(lines, name)} {value:.17g}\n")


def _render_agent(lines: list[str], facts: AgentFacts) -> None:
    versions = f'version="{_escape(facts.product_version)}",table="{_escape(facts.table_version)}"'
    versions += f',tls="{_escape(facts.tls)}"'
    lines.append(f"{_open(lines, 'info')}{{{versions}}} 1\n")
    numbers: dict[str, float] = {
        "start_timestamp_seconds": facts.started_at,
        "ready": facts.ready,
        "draining": facts.draining,
        "workers": facts.workers,
        "workers_alive": facts.workers_alive,
        "worker_restarts_total": facts.restarts,
        "tables_total": facts.reloads,
        "table_age_seconds": facts.table_age,
        "table_resources": facts.table_resources,
        "table_refused": facts.refused,
        "config_problems": facts.problems,
        "arena_used_bytes": facts.arena_used,
        "arena_retired_bytes": facts.arena_retired,
        "spans_exported_total": facts.spans_exported,
        "spans_lost_total": facts.spans_lost,
        "last_good_failures_total": facts.last_good_failures,
    }
    if facts.last_good_age is not None:
        numbers["last_good_age_seconds"] = facts.last_good_age
    for name, value in numbers.items():
        _one(lines, name, value)
    if facts.expiries:
        name = _open(lines, "certificate_expiry_timestamp_seconds")
        lines += [
            f'{name}{{secret="{_escape(secret)}"}} {when:.0f}\n'
            for secret, when in sorted(facts.expiries.items())
        ]
    if facts.store_troubles:
        name = _open(lines, "ratelimit_store_troubles")
        lines += [
            f'{name}{{store="{_escape(store)}",trouble="{_escape(problem)}"}} {workers}\n'
            for (store, problem), workers in sorted(facts.store_troubles.items())
        ]
    if facts.keys_failing:
        name = _open(lines, "jwks_fetch_failing")
        lines += [
            f'{name}{{policy="{_escape(policy)}",provider="{_escape(provider)}"}} {failing:d}\n'
            for (policy, provider), failing in sorted(facts.keys_failing.items())
        ]
    if facts.token_requests:
        name = _open(lines, "oidc_token_requests_total")
        lines += [
            f'{name}{{policy="{_escape(policy)}",kind="{kind}",result="{result}"}} {count}\n'
            for (policy, kind, result), count in sorted(facts.token_requests.items())
        ]


def _render_room(lines: list[str], segments: Sequence[Segment]) -> None:
    rooms = [segment.room() for segment in segments]
    _one(lines, "metric_rows", min((rows for _, rows in rooms), default=0))
    _one(lines, "metric_rows_used", max((used for used, _ in rooms), default=0))


def _render_stream(lines: list[str], stream: StreamStats) -> None:
    numbers: dict[str, float] = {
        "connected": stream.connected,
        "last_commit_timestamp_seconds": stream.committed_at,
        "last_good_served": stream.from_disk,
        "streams_total": stream.streams,
        "failures_total": stream.failures,
        "commits_total": stream.commits,
        "nacks_total": stream.nacks,
        "mismatches_total": stream.mismatches,
        "received_bytes_total": stream.received,
    }
    for name, value in numbers.items():
        _one(lines, f"xds_{name}", value)


def _render_globals(lines: list[str], totals: Mapping[str, int]) -> None:
    for name, cell in _OF_CELLS:
        if cell in BY_LABELS:
            whole = _open(lines, name)
            lines += [
                f"{whole}{{{_labels_of(PROXY[name].labels, one.removeprefix(cell))}}} {count}\n"
                for one, count in totals.items()
                if one.startswith(cell)
            ]
        else:
            _one(lines, name, totals[cell] / 1e6 if cell.endswith("_us") else totals[cell])


def _labels_of(names: Sequence[str], cell: str) -> str:
    values = cell.split("_", len(names) - 1)
    return ",".join(f'{name}="{value}"' for name, value in zip(names, values, strict=True))


def _render_rows(
    lines: list[str], rows: Mapping[bytes, Sequence[int]], marks: Marks | None
) -> None:
    """Write one series set per route rule."""
    labelled = _labelled(rows, "route", "rule", len(ROW))
    name = _open(lines, "requests_total")
    for labels, cells in labelled:
        lines += [
            f'{name}{{{labels},code_class="{one}"}} {cells[_CELL["requests_" + one]]}\n'
            for one in _CLASSES
        ]
    name, overflow = _open(lines, "grpc_requests_total"), _pair("route", "rule", b"")
    for labels, cells in labelled:
        lines += [
            f'{name}{{{labels},grpc_status="{one}"}} {count}\n'
            for one, count in zip(GRPC_STATUSES, cells[_FIRST_GRPC:], strict=False)
            if count or (labels == overflow and one == "OK")  # the family is always there
        ]
    for short, cell in _OF_ROWS.items():
        _render_cells(lines, short, labelled, _CELL[cell], cell.endswith("_us"))
    if marks is None:
        _render_histogram(lines, labelled, _BOUNDS, {})
    else:
        of_labels = {_pair("route", "rule", label): row for label, row in marks.items()}
        _render_histogram(lines, labelled, _CANONICAL_BOUNDS, of_labels)


def _render_limits(lines: list[str], rows: Mapping[bytes, Sequence[int]]) -> None:
    """Write one series set per route and rule of a RateLimitFilter."""
    labelled = _labelled(rows, "route", "limit", len(LIMIT))
    name = _open(lines, "ratelimit_requests_total")
    for labels, cells in labelled:
        lines += [
            f'{name}{{{labels},result="{one}"}} {cells[_LIMIT_CELL[one]]}\n'
            for one in _LIMIT_RESULTS
        ]
    for short, cell in _OF_LIMITS.items():
        _render_cells(lines, short, labelled, _LIMIT_CELL[cell], cell.endswith("_us"))


def _render_policies(lines: list[str], rows: Mapping[bytes, Sequence[int]]) -> None:
    """Write one series set per unit of a policy; its kind is left out, units of two kinds are never called alike."""
    plain = {label.partition(b"/")[2] if label else label: cells for label, cells in rows.items()}
    name = _open(lines, "policy_requests_total")
    for labels, cells in _labelled(plain, "policy", "unit", len(POLICY)):
        lines += [
            f'{name}{{{labels},verdict="{one}"}} {count}\n'
            for one, count in zip(POLICY, cells, strict=True)
        ]


def _render_cells(
    lines: list[str], short: str, labelled: _Rows, index: int, microseconds: bool
) -> None:
    name = _open(lines, short)
    if microseconds:
        lines += [f"{name}{{{labels}}} {cells[index] / 1e6:.6f}\n" for labels, cells in labelled]
    else:
        lines += [f"{name}{{{labels}}} {cells[index]}\n" for labels, cells in labelled]


def _render_histogram(
    lines: list[str],
    labelled: _Rows,
    bounds: Sequence[str],
    marks: Mapping[str, Mapping[int, Exemplar]],
) -> None:
    name = _open(lines, "request_duration_seconds")
    for labels, cells in labelled:
        marked = marks.get(labels, {})
        count = 0
        for offset, bound in enumerate(bounds):
            inside = cells[_FIRST_BUCKET + offset]
            count += inside
            # A row that was forgotten and begins again does not have the request that is remembered.
            shown = write_exemplar(marked[offset]) if inside and offset in marked else ""
            lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {count}{shown}\n')
        lines.append(f"{name}_sum{{{labels}}} {cells[_CELL['duration_us']] / 1e6:.6f}\n")
        lines.append(f"{name}_count{{{labels}}} {count}\n")


def _labelled(
    rows: Mapping[bytes, Sequence[int]], first: str, second: str, cells: int
) -> list[tuple[str, Sequence[int]]]:
    """Turn each "route\\trule" into label pairs, the overflow row first; it is there even if nobody needed it."""
    found = []
    for label, numbers in sorted({b"": [0] * cells, **rows}.items()):
        found.append((_pair(first, second, label), numbers))
    return found


def _pair(first: str, second: str, label: bytes) -> str:
    one, _, two = label.decode("utf-8", "replace").partition("\t")
    if not label:
        one = two = OVERFLOW
    return f'{first}="{_escape(one)}",{second}="{_escape(two)}"'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
