"""Ambiguous path: a path that matches different rules with and without its parameters (";").

In: the served table, a request, its rule. Out: the refusal that the proxy answers, None if both
forms of the path match the same rule. Same logic as `is_read_alike` in core/exchange/target.pyx.
Must never: accept a request that a backend may read as one for another rule.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.explain.explanation import Answer
from edgefast.explain.head import Head, strip_parameters
from edgefast.explain.served_fleet import Served
from edgefast.table import Hit

__all__ = ["find_ambiguity"]


def find_ambiguity(served: Served, listener: ir.Listener, head: Head, hit: Hit) -> Answer | None:
    """Compare the rule of a request with that of the same path without parameters."""
    if listener.http.path_parameters != "keep" or b";" not in head.path:
        return None
    start = 0 if hit.match.kind == "regex" else hit.prefix_len
    bare = msgspec.structs.replace(head, path=strip_parameters(head.path, start))
    if bare.path == head.path:
        return None
    other = served.matcher.match(listener.name, head.host, bare.request())
    if other is not None and _name(other) == _name(hit):
        return None
    path, without = head.path.decode(), bare.path.decode()
    rule = f"{other.rule.route} rule {other.rule.name or other.rule.index}" if other else "no rule"
    return Answer(
        kind="status",
        check="path_parameters",
        status=400,
        why=f"{hit.rule.route} rule {hit.rule.name or hit.rule.index} takes {path}, {rule} takes {without}",
        fix="send the path without parameters, or set pathParameters of EdgeProxy spec.http to strip",
    )


def _name(hit: Hit) -> tuple[str, int]:
    return hit.rule.route, hit.rule.index
