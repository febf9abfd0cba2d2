"""Rate limits: which of a rule's limits count a request, and the values of their counters.

In: the rule's limits, the request, the client, the counters of a proxy (or nothing). Out:
`LimitPart`s. Conditions are those of core/limit/limit.pyx; the matcher's functions read values.
Must never: count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgefast import ir
from edgefast.api.model.regex import compile_bytes_regex
from edgefast.diagnostics.redact import is_credential, show
from edgefast.explain.client import Client
from edgefast.explain.explanation import LimitPart
from edgefast.explain.match_failure import cut
from edgefast.explain.served_fleet import Live
from edgefast.netaddr import is_in, parse_network, read_address
from edgefast.table.match import Call

#: As the list of counters calls the client's address.
_SOURCE = "sourceCIDR"


def evaluate_limits(
    rule: ir.Rule, call: Call, client: Client, live: Live | None
) -> tuple[LimitPart, ...]:
    """Return every limit of a rule; `live` None: nobody was asked for counters."""
    return tuple(
        _evaluate(rule, limit, call, client, _known_rows(limit, live)) for limit in rule.rate_limits
    )


def _known_rows(limit: ir.RateLimit, live: Live | None) -> tuple[Mapping[str, Any], ...] | None:
    """Return the rows in which a limit's counter is, if it differs from others there; a machine does not list its own limits."""
    if limit.kind != "Window":
        return None
    if live is None or (live.hidden and any(map(is_credential, limit.distinct_headers))):
        return None
    return live.rows


def _evaluate(
    rule: ir.Rule,
    limit: ir.RateLimit,
    call: Call,
    client: Client,
    rows: Iterable[Mapping[str, Any]] | None,
) -> LimitPart:
    values: dict[str, str] = {}
    why_not = _why_not(limit, call, client, values)
    row = None
    if rows is not None and not why_not:
        row = next((one for one in rows if _is_row(one, rule, limit, values)), None)
    full = limit.requests == 0 and not why_not
    return LimitPart(
        name=limit.name,
        requests=limit.requests,
        unit=limit.unit,
        counts=not why_not,
        why_not=why_not,
        values=values if not why_not else {},
        shadow=limit.shadow,
        kind=limit.kind,
        burst=limit.burst,
        status=limit.status,
        early=limit.kind != "Window" and not (limit.headers or limit.distinct_headers),
        used=row["used"] if row else 0 if rows is not None and not why_not else None,
        remaining=0 if full else row["remaining"] if row else None,
        reset=row["reset"] if row else None,
    )


def _why_not(limit: ir.RateLimit, call: Call, client: Client, values: dict[str, str]) -> str:
    """Return the condition that does not hold, "" when all do; distinct values are put into `values`."""
    for one in limit.headers:
        value = call.header(one.name)
        if value is None:
            return f"header {one.name} is missing"
        shown, wanted = cut(value.decode("utf-8", "replace")), cut(show(one.name, one.value))
        if one.regex:
            if compile_bytes_regex(one.value).fullmatch(value) is None:
                return f"header {one.name}: {shown} does not match {wanted}"
        elif value != one.value.encode():
            return f"header {one.name}: {shown} != {wanted}"
    if limit.sources or limit.distinct_source or limit.excepts:
        address = read_address(client.address)
        if address is None:
            return f"the client address {client.address} is not valid"
        for source in limit.sources:
            if not is_in(address, parse_network(source)):
                return f"client {address} is not in {source}"
        for source in limit.excepts:
            if is_in(address, parse_network(source)):
                return f"client {address} is exempt: it is in {source}"
    for name in limit.distinct_headers:
        value = call.header(name)
        if value is None:
            return f"header {name} is missing"
        values[name] = value.decode("utf-8", "backslashreplace")
    if limit.distinct_source:
        values[_SOURCE] = str(address)
    return ""


def _is_row(
    row: Mapping[str, Any], rule: ir.Rule, limit: ir.RateLimit, values: dict[str, str]
) -> bool:
    return (
        row["route"] == rule.route
        and row["rule"] == (rule.name or str(rule.index))
        and row["limit"] == limit.name
        and not row["cut"]
        and row["values"] == values
    )
