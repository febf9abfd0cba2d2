"""A dump as tables: agent, workers, listeners, virtual hosts, clusters with endpoints, policies, limit stores, problems.

In: the value of the admin server's /dump (proxy/admin/admin.py).
Out: tables on standard output, one after the other. Requests and connections of an endpoint are
sums over the workers. All workers share one memory for its health and ejections; a worker that has
not read it yet may report older values.
Must never: fail because a worker did not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click
import msgspec

from edgefast import ir
from edgefast.cli.output import write_table
from edgefast.explain.describe import describe_unit
from edgefast.httpd.address import Address

Row = list[object]

#: An endpoint is shown as not healthy if at least this many last requests failed, and none succeeded.
_FAILING = 5


def write_tables(dump: Any) -> None:
    """Write all sections; empty ones are left out."""
    agent, table = dump["agent"], dump["table"]
    state = "ready" if agent["ready"] else "not ready"
    click.echo(f"edgefast {agent['version']}, pid {agent['pid']}, {agent['phase']}, {state}")
    zones = [one["engine"].get("zone", "") for one in dump["workers"] if one.get("engine")]
    if any(zones):
        click.echo(f"zone {', '.join(dict.fromkeys(zones))}")
    click.echo(
        f"table {table['version']}, {table['resources']} resources, accepted {table['accepted']}"
    )
    sections: tuple[tuple[list[str], Iterable[Row]], ...] = (
        (["WORKER", "PID", "TABLE", "CONNECTIONS", "ACTIVE", "RESTARTS"], _workers(dump)),
        (["LISTENER", "PROTOCOL", "PORT", "HOSTNAME", "VERSION"], _listeners(dump)),
        (["VIRTUAL HOST", "RULES", "VERSION"], _virtual_hosts(dump)),
        (["STREAM ROUTE", "ROUTE", "BACKENDS", "VERSION"], _stream_routes(dump)),
        (
            ["CLUSTER", "ENDPOINT", "ZONE", "HEALTHY", "ACTIVE", "IDLE", "EJECTIONS"],
            _endpoints(dump),
        ),
        (["POLICY", "SAYS", "VERSION"], _policies(dump)),
        (["SECRET", "NAMES", "EXPIRES"], _secrets(dump)),
        (["LIMIT STORE", "MODE", "ADDRESSES", "VERSION"], _limit_stores(dump)),
        (["WORKER", "COUNTS IN", "STATE", "WHEN IT FAILS", "ERRORS"], _rate_limits(dump)),
        (["SEVERITY", "PROBLEM"], ([one["severity"], one["text"]] for one in dump["problems"])),
    )
    for header, rows in sections:
        found = list(rows)
        if found:
            click.echo()
            write_table(header, found)


def _workers(dump: Any) -> Iterator[Row]:
    for one in dump["workers"]:
        engine = one.get("engine") or {}
        version = one["version"] or one.get("error", "none")
        yield [
            one["worker"],
            one["pid"],
            version,
            engine.get("connections", "?"),
            engine.get("active", "?"),
            one["restarts"],
        ]


def _listeners(dump: Any) -> Iterator[Row]:
    for one in dump["listeners"]:
        yield [
            one["name"],
            one["protocol"],
            ", ".join(str(Address(host, one["bind_port"])) for host in one.get("addresses", ()))
            or one["bind_port"],
            one.get("hostname", "*"),
            one["version"],
        ]


def _virtual_hosts(dump: Any) -> Iterator[Row]:
    for one in dump["virtual_hosts"]:
        yield [one["name"], len(one.get("rules", ())), one["version"]]


def _stream_routes(dump: Any) -> Iterator[Row]:
    for one in dump.get("stream_routes", ()):
        shares = (
            f"{share.get('weight', 1)} {share.get('cluster') or 'refused'}"
            for share in one.get("backends", ())
        )
        place = f"{one.get('route', '')}[{one.get('index', 0)}]"
        yield [one["name"], place, ", ".join(shares) or one.get("reason", ""), one["version"]]


def _endpoints(dump: Any) -> Iterator[Row]:
    seen: dict[tuple[str, str], list[Any]] = {}
    for worker in dump["workers"]:
        for cluster in (worker.get("engine") or {}).get("clusters", ()):
            for one in cluster["endpoints"]:
                seen.setdefault((cluster["name"], one["address"]), []).append(one)
    for (cluster_name, address), found in sorted(seen.items()):
        failing = all(one.get("failures", 0) or not one["healthy"] for one in found)
        failures = sum(one.get("failures", 0) for one in found)
        healthy = all(one["healthy"] for one in found) and not (failing and failures >= _FAILING)
        sums = [sum(one[name] for one in found) for name in ("active", "idle")]
        ejections = max(one["ejections"] for one in found)
        yield [cluster_name, address, found[0].get("zone", ""), healthy, *sums, ejections]
    named = {name for name, _ in seen}
    for one in dump["clusters"]:
        if one["name"] not in named:
            yield [one["name"], "unused", "", "", "", "", ""]


def _policies(dump: Any) -> Iterator[Row]:
    for one in dump.get("policies", ()):
        message = one.get("error") or describe_unit(msgspec.convert(one, ir.PolicyUnit))
        yield [one["name"], message, one["version"]]


def _secrets(dump: Any) -> Iterator[Row]:
    for one in dump["secrets"]:
        yield [one["name"], ", ".join(one.get("names", ())), one.get("expires", "")]


def _limit_stores(dump: Any) -> Iterator[Row]:
    for one in dump["limit_stores"]:
        plain = one["kind"] == "memory"
        place = "shared by the workers" if plain else ", ".join(one["addresses"])
        yield [one["kind"], "" if plain else one["mode"], place, one["version"]]


def _rate_limits(dump: Any) -> Iterator[Row]:
    """How each worker gets on with the store; nothing when no rule has limits."""
    if not dump["limit_stores"]:
        return
    for worker in dump["workers"]:
        limits = (worker.get("engine") or {}).get("rate_limits")
        if limits is None:
            continue
        store = limits["store"]
        refuses = "500" if limits["fail_closed"] else "pass"
        if isinstance(store, str):
            yield [worker["worker"], store, "", refuses, ""]
            continue
        state = "connected" if store["connected"] else "not connected"
        if not store["available"]:
            state += ", not asked"
        errors = ", ".join(f"{kind} {count}" for kind, count in store["errors"].items())
        yield [worker["worker"], store["kind"], state, refuses, errors or "none"]
