"""Dashboard "limits": counts and refusals of rate limits, and the health of their store.

In: nothing.
Out: `LIMITS`. tests/monitoring checks names against the catalogue.
"""

from __future__ import annotations

from edgefast.monitoring.panel import Panel, Row

__all__ = ["LIMITS"]

_RATE = "[$__rate_interval]"


def _counted(result: str = "") -> str:
    matcher = f'{{$$,result="{result}"}}' if result else "{$$}"
    return f"rate(edgefast_ratelimit_requests_total{matcher}{_RATE})"


def _sum(name: str) -> str:
    return f"sum(rate(edgefast_ratelimit_{name}_total{{$$}}{_RATE}))"


LIMITS = (
    Row(
        "Requests",
        (
            Panel("Counted", ((f"sum({_counted()})", "all"),), "reqps", "stat", width=6),
            Panel(
                "Refused (429)", ((f"sum({_counted('over')})", "over"),), "reqps", "stat", width=6
            ),
            Panel(
                "Share refused",
                ((f"sum({_counted('over')}) / (sum({_counted()}) > 0)", "over"),),
                "percentunit",
                "stat",
                width=6,
            ),
            Panel(
                "Not counted",
                ((f"sum({_counted('error')})", "error"),),
                "reqps",
                "stat",
                text="error: the store failed, and the requests passed or got 500 (failClosed).",
                width=6,
            ),
            Panel(
                "Requests by result",
                ((f"sum by (result) ({_counted()})", "{{result}}"),),
                "reqps",
                text="shadow_over: over a limit with `shadow: true`, and passed.",
            ),
            Panel(
                "Refused, by limit",
                (
                    (
                        f"topk(10, sum by (route, limit) ({_counted('over')}))",
                        "{{limit}} of {{route}}",
                    ),
                ),
                "reqps",
            ),
            Panel(
                "Would be refused, by limit",
                (
                    (
                        f"topk(10, sum by (route, limit) ({_counted('shadow_over')}))",
                        "{{limit}} of {{route}}",
                    ),
                ),
                "reqps",
            ),
        ),
    ),
    Row(
        "Store",
        (
            Panel(
                "Time until an answer",
                ((f"{_sum('store_seconds')} / ({_sum('batches')} > 0)", "of a batch"),),
                "s",
            ),
            Panel(
                "Time that a request waits",
                ((f"{_sum('wait_seconds')} / (sum({_counted()}) > 0)", "of a counted request"),),
                "s",
            ),
            Panel(
                "Batches",
                (
                    (_sum("batches"), "sent"),
                    (f"sum({_counted()}) / ({_sum('batches')} > 0)", "requests per batch"),
                ),
            ),
            Panel(
                "Failures",
                (
                    (_sum("store_errors"), "errors"),
                    (_sum("store_timeouts"), "no answer in time"),
                    (_sum("store_full"), "no room in shared memory"),
                    (_sum("no_room"), "of these, values above the limit's room"),
                ),
                "ops",
            ),
            Panel(
                "Workers with a store that does not count",
                (
                    ("sum(edgefast_ratelimit_stores_down{$$})", "workers"),
                    (
                        "sum by (store, trouble) (edgefast_ratelimit_store_troubles{$$})",
                        "{{store}} {{trouble}}",
                    ),
                ),
            ),
            Panel(
                "Decided without the store",
                ((f"{_sum('local')} / (sum({_counted('over')}) > 0)", "share of the refused"),),
                "percentunit",
                text="Denied requests of counters that a worker knows to be exhausted.",
            ),
        ),
    ),
)
