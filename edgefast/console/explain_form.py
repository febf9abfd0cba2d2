"""Explain form: passes a request to edgefast.explain and returns the explanation in bounded size.

In: a state, the fields of the form.
Out: plain values: the documented JSON of docs/guides/explain.md, with `node`, the line of the tree
that receives the request. The list of endpoints is truncated, with a count.
Must never: send a request.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from edgefast.console.state import State
from edgefast.diagnostics.problem import Problem
from edgefast.explain import (
    Explanation,
    Live,
    RequestSpec,
    RequestSpecError,
    Served,
    read_request_spec,
)
from edgefast.explain.explain import explain
from edgefast.explain.source_location import Origin
from edgefast.table import Shards

LONGEST = 8000  # characters of the form
_METHOD = 32
_HEADERS = 100
_ENDPOINTS = 20  # of one backend


def read_form(
    method: str, url: str, headers: str, source: str, sni: str, *, http10: bool = False
) -> RequestSpec:
    """Read the form; headers are lines. Raises AskError."""
    if len(url) + len(headers) + len(sni) > LONGEST or len(method) > _METHOD:
        raise RequestSpecError(f"the request is longer than {LONGEST} characters")
    lines = [line for line in headers.splitlines() if line.strip()]
    if len(lines) > _HEADERS:
        raise RequestSpecError(f"more than {_HEADERS} headers")
    request = read_request_spec(
        method.strip() or "GET",
        url.strip(),
        lines,
        source.strip() or "127.0.0.1",
        sni.strip() or None,
        http10=http10,
    )
    return msgspec.structs.replace(request, now=time.time())


def serve(state: State, live: Live | None, problems: tuple[Problem, ...]) -> Served:
    """Return the applied table with what is known of this moment."""
    table = state.table
    return Served(
        state.index.fleet,
        Shards(table.resources, table.version),
        Origin(table.translation, problems) if table.translation is not None else None,
        live,
        table.version,
    )


def explain_form(served: Served, state: State, request: RequestSpec) -> dict[str, Any]:
    """Return the explanation as plain values."""
    found = explain(served, request)
    reported: dict[str, Any] = msgspec.to_builtins(found)
    for backend in reported.get("backends", ()):
        endpoints = backend.get("endpoints", ())
        if len(endpoints) > _ENDPOINTS:
            backend["endpoints"] = endpoints[:_ENDPOINTS]
            backend["more_endpoints"] = len(endpoints) - _ENDPOINTS
    reported["node"] = _find_node(state, found)
    return reported


def _find_node(state: State, found: Explanation) -> str:
    if found.rule is None or found.listener is None:
        return ""
    rule = found.rule
    id_ = f"r:{found.listener.name}/{rule.virtual_host}|{rule.route}|{rule.index}"
    return id_ if state.index.find(id_) is not None else ""
