"""Prometheus text from the workers' counter segments and the agent's own facts.

In: segments (stats.py), facts of the agent. Out: text exposition format 0.0.4.
Labels are names of routes, rules and rate limits from the configuration, never anything a client
sends; rows are bounded by the segments. Scraping costs workers nothing. Must never block: the agent calls it in a
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from edgefast.core.cells import BUCKET_BOUNDS_MS, GLOBALS, LIMIT, ROW
from edgefast.proxy.stats import GAUGES, Segment, sum_globals, sum_limits, sum_rows
from edgefast.xds.facts import StreamFacts

__all__ = ["CONTENT_TYPE", "AgentFacts", "render_metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HEAD_REFUSED = "head_refused_"
_CELL = {name: index for index, name in enumerate(ROW)}
_LIMIT_CELL = {name: index for index, name in enumerate(LIMIT)}
_LIMIT_RESULTS = ("ok", "over", "shadow_over", "error")
#: Global cells of the store of rate limits; microseconds become seconds.
_STORE = {
    "limit_batches": ("batches", "Batches of counters that were sent to the store."),
    "limit_store_us": ("store_seconds", "Time from a batch to its answer."),
    "limit_store_errors": ("store_errors", "Batches that the store could not answer."),
    "limit_timeouts": ("store_timeouts", "Batches that were given up for want of an answer."),
    "limit_store_full": ("store_full", "Requests whose counter found no room in shared memory."),
}
_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_FIRST_BUCKET = _CELL["duration_bucket_0"]
_BOUNDS = (*(f"{bound / 1000:g}" for bound in BUCKET_BOUNDS_MS), "+Inf")


class AgentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent adds; ages in seconds, expiries in Unix seconds."""

    product_version: str
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
    last_good_age: float | None
    expiries: Mapping[str, float]
    stream: StreamFacts | None = None  # None: tables come from files


def render_metrics(segments: Sequence[Segment], facts: AgentFacts) -> bytes:
    """Return the whole exposition."""
    lines: list[str] = []
    _render_agent(lines, facts)
    if facts.stream is not None:
        _render_stream(lines, facts.stream)
    _render_globals(lines, sum_globals(segments))
    _render_rows(lines, sum_rows(segments))
    _render_limits(lines, sum_limits(segments))
    return "".join(lines).encode()


def _family(lines: list[str], name: str, kind: str, text: str) -> None:
    lines.append(f"# HELP edgefast_{name} {text}\n# TYPE edgefast_{name} {kind}\n")


def _one(lines: list[str], name: str, kind: str, text: str, value: float) -> None:
    _family(lines, name, kind, text)
    lines.append(f"edgefast_{name} {value:.17g}\n")


def _render_agent(lines: list[str], facts: AgentFacts) -> None:
    _family(lines, "info", "gauge", "Version of the product and of the table.")
    lines.append(
        f'edgefast_info{{version="{_escape(facts.product_version)}",'
        f'table="{_escape(facts.table_version)}"}} 1\n'
    )
    gauges: Iterable[tuple[str, str, float]] = (
        ("ready", "1 when all live workers serve a table and none drains.", facts.ready),
        ("draining", "1 from the order to stop on.", facts.draining),
        ("workers", "Worker processes wanted.", facts.workers),
        ("workers_alive", "Worker processes that serve.", facts.workers_alive),
        ("table_age_seconds", "Time since the table was accepted.", facts.table_age),
        ("table_resources", "Resources in the table.", facts.table_resources),
        ("table_refused", "Resources that a worker refused; an older one serves.", facts.refused),
        (
            "config_problems",
            "Problems now known in the configuration and its ports.",
            facts.problems,
        ),
        ("arena_used_bytes", "Bytes of the shared table memory in use.", facts.arena_used),
        ("arena_retired_bytes", "Of these, waiting for workers to leave.", facts.arena_retired),
    )
    for name, text, value in gauges:
        _one(lines, name, "gauge", text, value)
    _one(lines, "worker_restarts_total", "counter", "Workers replaced.", facts.restarts)
    _one(lines, "tables_total", "counter", "Tables accepted.", facts.reloads)
    _one(
        lines,
        "last_good_failures_total",
        "counter",
        "Tables that could not be kept on disk.",
        facts.last_good_failures,
    )
    if facts.last_good_age is not None:
        text = "Time since the table on disk was written."
        _one(lines, "last_good_age_seconds", "gauge", text, facts.last_good_age)
    if facts.expiries:
        name = "certificate_expiry_seconds"
        _family(lines, name, "gauge", "When a served certificate expires, Unix time.")
        lines += [
            f'edgefast_{name}{{secret="{_escape(secret)}"}} {when:.0f}\n'
            for secret, when in sorted(facts.expiries.items())
        ]


def _render_stream(lines: list[str], stream: StreamFacts) -> None:
    one: Iterable[tuple[str, str, str, float]] = (
        ("connected", "gauge", "1 while the controller is heard.", stream.connected),
        (
            "last_commit_timestamp_seconds",
            "gauge",
            "When the last table from the controller was taken in, Unix time; 0 never.",
            stream.committed_at,
        ),
        (
            "last_good_served",
            "gauge",
            "1 while the table is the one from disk, and no controller has confirmed it.",
            stream.from_disk,
        ),
        ("streams_total", "counter", "Streams opened.", stream.streams),
        (
            "failures_total",
            "counter",
            "Streams that ended or could not be opened.",
            stream.failures,
        ),
        ("commits_total", "counter", "Tables taken in.", stream.commits),
        ("nacks_total", "counter", "Answers that refused something.", stream.nacks),
        ("mismatches_total", "counter", "Tables with another digest.", stream.mismatches),
        ("received_bytes_total", "counter", "Bytes of resources.", stream.received),
    )
    for name, kind, text, value in one:
        _one(lines, f"xds_{name}", kind, text, value)


def _render_globals(lines: list[str], totals: Mapping[str, int]) -> None:
    refused: list[str] = []
    for name in GLOBALS:
        words = name.replace("_", " ")
        if name.startswith(_HEAD_REFUSED):
            refused.append(name)
        elif name in _STORE:
            total, text = _STORE[name]
            value = totals[name] / 1e6 if name.endswith("_us") else totals[name]
            _one(lines, f"ratelimit_{total}_total", "counter", text, value)
        elif name in GAUGES:
            _one(lines, name, "gauge", f"Now: {words.removesuffix(' active')}.", totals[name])
        else:
            total = name.removesuffix("_total") + "_total"
            text = f"Since start: {words.removesuffix(' total')}."
            _one(lines, total, "counter", text, totals[name])
    _family(lines, "heads_refused_total", "counter", "Request heads refused, by reason.")
    lines += [
        f'edgefast_heads_refused_total{{reason="{name.removeprefix(_HEAD_REFUSED)}"}} '
        f"{totals[name]}\n"
        for name in refused
    ]


def _render_rows(lines: list[str], rows: Mapping[bytes, Sequence[int]]) -> None:
    """Write one series set per route rule; the overflow row (empty label) only when used."""
    labelled = [
        (_labels(label), cells) for label, cells in sorted(rows.items()) if label or any(cells)
    ]
    _family(lines, "requests_total", "counter", "Requests by route, rule and status class.")
    for labels, cells in labelled:
        lines += [
            f'edgefast_requests_total{{{labels},code_class="{name}"}} '
            f"{cells[_CELL['requests_' + name]]}\n"
            for name in _CLASSES
        ]
    for cell, name, text in (
        ("requests_aborted", "requests_aborted_total", "Requests that ended without an answer."),
        ("bytes_received", "request_bytes_total", "Bytes received of requests."),
        ("bytes_sent", "response_bytes_total", "Bytes sent of answers."),
        ("timeouts", "request_timeouts_total", "Requests that ran into a timeout."),
        ("retries", "request_retries_total", "Tries after the first."),
    ):
        _family(lines, name, "counter", text)
        index = _CELL[cell]
        lines += [f"edgefast_{name}{{{labels}}} {cells[index]}\n" for labels, cells in labelled]
    name = "upstream_seconds_total"
    _family(lines, name, "counter", "Time spent waiting for backends.")
    index = _CELL["upstream_us"]
    lines += [
        f"edgefast_{name}{{{labels}}} {cells[index] / 1e6:.6f}\n" for labels, cells in labelled
    ]
    _render_histogram(lines, labelled)


def _render_limits(lines: list[str], rows: Mapping[bytes, Sequence[int]]) -> None:
    """Write one series set per route and rule of a RateLimitFilter."""
    labelled = []
    for label, cells in sorted(rows.items()):
        route, _, limit = (label or b"other\tother").decode("utf-8", "replace").partition("\t")
        labelled.append((f'route="{_escape(route)}",limit="{_escape(limit)}"', cells))
    text = "Requests that a limit counted, by what came of it; error: the store failed."
    _family(lines, "ratelimit_requests_total", "counter", text)
    for labels, cells in labelled:
        lines += [
            f'edgefast_ratelimit_requests_total{{{labels},result="{name}"}} '
            f"{cells[_LIMIT_CELL[name]]}\n"
            for name in _LIMIT_RESULTS
        ]
    name, text = "ratelimit_local_total", "Of those that were over: told without asking the store."
    _family(lines, name, "counter", text)
    index = _LIMIT_CELL["over_local"]
    lines += [f"edgefast_{name}{{{labels}}} {cells[index]}\n" for labels, cells in labelled]
    name, text = "ratelimit_wait_seconds_total", "Time that requests waited for the store."
    _family(lines, name, "counter", text)
    index = _LIMIT_CELL["store_us"]
    lines += [
        f"edgefast_{name}{{{labels}}} {cells[index] / 1e6:.6f}\n" for labels, cells in labelled
    ]


def _render_histogram(lines: list[str], labelled: list[tuple[str, Sequence[int]]]) -> None:
    name = "request_duration_seconds"
    _family(lines, name, "histogram", "Time from the first byte of a request to its end.")
    for labels, cells in labelled:
        count = 0
        for offset, bound in enumerate(_BOUNDS):
            count += cells[_FIRST_BUCKET + offset]
            lines.append(f'edgefast_{name}_bucket{{{labels},le="{bound}"}} {count}\n')
        lines.append(f"edgefast_{name}_sum{{{labels}}} {cells[_CELL['duration_us']] / 1e6:.6f}\n")
        lines.append(f"edgefast_{name}_count{{{labels}}} {count}\n")


def _labels(label: bytes) -> str:
    """Turn "route\\trule" into label pairs; the overflow row is route "other"."""
    route, _, rule = label.decode("utf-8", "replace").partition("\t")
    return f'route="{_escape(route or "other")}",rule="{_escape(rule)}"'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
