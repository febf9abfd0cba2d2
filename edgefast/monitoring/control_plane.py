"""Dashboard "control plane": from objects to tables, from tables to proxies, and statuses back.

In: nothing.
Out: `CONTROL_PLANE`. tests/monitoring checks names against the catalogue. Variables select the
controllers. The panels include all proxies of the Prometheus, because proxies have other jobs.
"""

from __future__ import annotations

from edgefast.monitoring.panel import Panel, Row

__all__ = ["CONTROL_PLANE"]

_RATE = "[$__rate_interval]"


def _sum(name: str, by: str = "") -> str:
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} (rate(edgefast_controller_{name}_total{{$$}}{_RATE}))"


def _quantile(share: float, name: str, by: str = "le") -> str:
    buckets = f"rate(edgefast_controller_{name}_seconds_bucket{{$$}}{_RATE})"
    return f"histogram_quantile({share}, sum by ({by}) ({buckets}))"


def _of(name: str) -> str:
    return f"max(edgefast_controller_{name}{{$$}})"


CONTROL_PLANE = (
    Row(
        "Controllers",
        (
            Panel(
                "Leaders", (("sum(edgefast_controller_leader{$$})", ""),), "short", "stat", width=6
            ),
            Panel(
                "Replicas that have read all objects",
                (("sum(edgefast_controller_synced{$$})", ""),),
                "short",
                "stat",
                width=6,
            ),
            Panel("Problems in objects", ((_of("problems"), ""),), "short", "stat", width=6),
            Panel(
                "Configuration problems", ((_of("config_problems"), ""),), "short", "stat", width=6
            ),
            Panel(
                "Objects",
                (("max by (kind) (edgefast_controller_objects{$$})", "{{kind}}"),),
            ),
            Panel(
                "Changes of objects",
                ((_sum("events", "kind"), "{{kind}}"),),
                "ops",
            ),
            Panel(
                "Errors of the API server",
                (
                    (_sum("watch_restarts", "cause"), "watch restarted: {{cause}}"),
                    (_sum("undecodable_objects"), "objects that cannot be read"),
                    (_of("watch_problems"), "not readable now"),
                    (_sum("status_write_failures", "reason"), "status: {{reason}}"),
                    (_sum("infra_failures"), "fleets"),
                ),
            ),
        ),
    ),
    Row(
        "From objects to tables",
        (
            Panel(
                "Time of a stage (p99)",
                ((_quantile(0.99, "stage", "le, stage"), "{{stage}}"),),
                "s",
            ),
            Panel(
                "Work",
                (
                    (_sum("runs"), "runs"),
                    (_sum("translated", "what"), "translated: {{what}}"),
                    (_sum("changed_resources"), "changed resources"),
                ),
                "ops",
            ),
            Panel("Changed bytes", ((_sum("changed_bytes"), "bytes"),), "Bps"),
        ),
    ),
    Row(
        "From tables to proxies",
        (
            Panel(
                "Time until a proxy serves a change",
                tuple((_quantile(one, "ack"), f"p{one * 100:g}") for one in (0.5, 0.99)),
                "s",
            ),
            Panel(
                "Proxies by fleet",
                (
                    ("max by (fleet) (edgefast_controller_proxies{$$})", "{{fleet}}"),
                    (
                        "max by (fleet) (edgefast_controller_proxies_behind{$$})",
                        "behind: {{fleet}}",
                    ),
                ),
            ),
            Panel(
                "Streams",
                (
                    ("sum(edgefast_controller_streams{$$})", "open"),
                    (_of("fleets"), "fleets with tables"),
                ),
            ),
            Panel(
                "Answers of proxies",
                (
                    (_sum("acks"), "serve it"),
                    (_sum("partial_acks"), "refused something"),
                    (_sum("nacks", "type"), "refused: {{type}}"),
                    (_sum("mismatches"), "restarted"),
                    (_sum("refused_calls", "cause"), "call refused: {{cause}}"),
                ),
                "ops",
            ),
            Panel(
                "Sent",
                ((_sum("pushed_bytes"), "bytes"),),
                "Bps",
            ),
            Panel(
                "Proxies without their controller",
                (
                    ("count(edgefast_xds_connected == 0) or vector(0)", "not heard"),
                    ("sum(edgefast_xds_last_good_served) or vector(0)", "table from disk"),
                    ("sum(edgefast_table_refused) or vector(0)", "resources refused"),
                ),
            ),
        ),
    ),
    Row(
        "Statuses and fleets",
        (
            Panel(
                "Statuses",
                (
                    (_sum("status_writes"), "written"),
                    (_sum("status_conflicts"), "merged again"),
                ),
                "ops",
            ),
            Panel("Objects with a status", ((_of("statuses"), "objects"),)),
            Panel(
                "Objects of fleets",
                (
                    (_sum("infra_applied"), "applied"),
                    (_sum("infra_deleted"), "deleted"),
                    (_sum("infra_failures"), "failed"),
                    (_sum("kubernetes_events", "outcome"), "Events {{outcome}}"),
                ),
                "ops",
            ),
        ),
    ),
)
