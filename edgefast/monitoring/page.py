"""The reference page of metrics, made from the catalogue.

In: the families.
Out: the text of docs/reference/metrics.md.
Must never: document a metric that the exposition does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.monitoring.controller_metrics import CONTROLLER
from edgefast.monitoring.family import Family
from edgefast.monitoring.proxy_metrics import PROXY

__all__ = ["render_page"]

_HEAD = """\
<!-- Made from edgefast/monitoring by `python -m edgefast.monitoring.generate --write`; do not edit. -->
# Metrics

Every proxy and every controller answers `GET /metrics` on port 19001 in the Prometheus text format (0.0.4). All names begin
with `edgefast_`, those of a controller with `edgefast_controller_`; units are seconds and bytes; counters end in
`_total`, and start at zero with the process, not with a worker. Dashboards and alerts: [monitoring](../monitoring/README.md).

**How many series.** Labels are names from the configuration, never values from clients: `route` is `namespace/name`, `rule` its
name or number, `limit` is `namespace/filter#number`. A worker has 16,384 rows, one for each rule of a route and each limit of a
route (`edgefast_metric_rows`). Requests without a row are counted in the row `overflow`, which always exists; a row is reused
after its rule is removed. Requests that match no rule have `-` for both; `edgefast_no_route_total` and similar metrics give the cause.

**Histograms** are counted by workers in shared memory: buckets of `edgefast_request_duration_seconds` end at
0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250 and 500 ms, 1, 2.5 and 10 s. A scrape does not use CPU of workers.

**Exemplars** are off by default. Where an EdgeProxy has `tracing.exemplars: true`, a proxy answers scrapers that support OpenMetrics
in that format, with the newest trace of each bucket of `edgefast_request_duration_seconds` ([tracing](../guides/tracing.md#exemplars)).
Without it the format is always text; the access log has the `request_id` of a slow request.
"""


def render_page() -> str:
    """Return the text of docs/reference/metrics.md."""
    return "\n".join(
        (
            _HEAD,
            "## Proxies",
            "",
            *_table(PROXY.values()),
            "",
            "## Controllers",
            "",
            *_table(CONTROLLER.values()),
            "",
        )
    )


def _table(families: Iterable[Family]) -> Iterator[str]:
    yield "| metric | type | unit | labels | meaning |"
    yield "|---|---|---|---|---|"
    for one in families:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        unit = "Unix time" if one.unit == "timestamp" else one.unit
        text = one.help + (f" Only when {one.when}." if one.when else "")
        text = text.replace("|", "\\|")
        yield f"| `{one.name}` | {one.kind} | {unit} | {labels} | {text} |"
