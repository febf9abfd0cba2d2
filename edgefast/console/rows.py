"""Rows: lines of the tree as the page shows them, in pages.

In: a state.
Out: plain structs.
Must never: return more rows than requested, or than `PAGE`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from edgefast import ir
from edgefast.console.index import Kind, Node
from edgefast.console.live_metrics import Rate
from edgefast.console.policies import tag_policies
from edgefast.console.state import State

PAGE = 200
Sort = Literal["name", "requests", "errors", "p99", "problems"]
_TAGS = 6


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line; numbers are of all rules below it."""

    id: str
    kind: Kind
    name: str
    about: str = ""
    tags: tuple[str, ...] = ()
    children: int = 0
    errors: int = 0  # problems here and below
    warnings: int = 0
    rate: Rate | None = None
    shared: bool = False  # the numbers are of rules that serve other names too


class Page(msgspec.Struct, frozen=True):
    """A part of a list."""

    total: int
    offset: int
    rows: Sequence[Any]


def cut_page(found: Sequence[Any], offset: int, limit: int, show: Callable[[Any], Any]) -> Page:
    """Return a page of a list, shown."""
    offset = min(max(0, offset), len(found))
    some = found[offset : offset + min(limit, PAGE)]
    return Page(len(found), offset, [show(one) for one in some])


def list_children(
    state: State,
    node: Node,
    offset: int,
    limit: int,
    sort: Sort,
    only_bad: bool,
    opened: Sequence[str] = (),
) -> tuple[Page, dict[str, int]]:
    """Return a page of a node's children, and the places of some of them, -1 for one that is not there."""
    found = order_children(state, node, sort, only_bad)
    wanted = {id_ for id_ in opened if id_}
    places = dict.fromkeys(wanted, -1)
    if wanted:
        places.update((one.id, at) for at, one in enumerate(found) if one.id in wanted)
    return cut_page(found, offset, limit, lambda child: make_row(state, child)), places


def order_children(state: State, node: Node, sort: Sort, only_bad: bool) -> Sequence[Node]:
    """Return all children in the order that was asked for."""
    marks, numbers = state.marks, state.numbers
    found: Sequence[Node] = state.index.children(node)
    if only_bad and not (found and found[0].kind == "backend"):
        found = [one for one in found if one.id in marks.errors or one.id in marks.warnings]
    if sort == "name" or (found and found[0].kind == "backend"):
        return found

    def weigh(one: Node) -> float:
        if sort == "problems":
            return marks.errors.get(one.id, 0) * 1e9 + marks.warnings.get(one.id, 0)
        rate = numbers.rate(one.labels) or Rate()
        if sort == "errors":
            return rate.errors * rate.requests
        return rate.requests if sort == "requests" else rate.p99 or 0.0

    return sorted(found, key=weigh, reverse=True)  # stable: equals stay in order


def make_row(state: State, node: Node) -> Row:
    """Return one line."""
    about, tags = _describe(state, node)
    rule = node.kind == "backend"
    return Row(
        id=node.id,
        kind=node.kind,
        name=node.name,
        about=about,
        tags=tuple(tags[:_TAGS]),
        children=state.index.count_children(node),
        errors=1 if _is_bad_backend(node) else state.marks.errors.get(node.id, 0),
        warnings=state.marks.warnings.get(node.id, 0),
        rate=None if rule else state.numbers.rate(node.labels),
        shared=node.shared,
    )


def _is_bad_backend(node: Node) -> bool:
    one = node.subject
    return isinstance(one, ir.BackendRef | ir.StreamBackend) and not one.cluster and one.weight > 0


def _describe(state: State, node: Node) -> tuple[str, list[str]]:
    subject = node.subject
    match subject:
        case ir.Listener():
            host = "any host" if subject.hostname == "*" else subject.hostname
            return f"port {subject.port}, {host}", [subject.protocol]
        case ir.VirtualHost():
            return "", []
        case ir.Rule():
            tags = _rule_tags(state, node, subject)
            return f"{subject.route} rule {subject.name or subject.index}", tags
        case ir.StreamRoute():
            tags = [f"PROXY {one.proxy_protocol}" for one in subject.backends if one.proxy_protocol]
            return f"{subject.route} rule {subject.name or subject.index}", tags[:1]
        case ir.BackendRef() | ir.StreamBackend():
            return _describe_backend(state, node, subject)
    return "", []


def _rule_tags(state: State, node: Node, rule: ir.Rule) -> list[str]:
    first = node.matches[0]
    tags: list[str] = [first.kind]
    if first.method:
        tags.append(first.method)
    narrower = len(first.headers) + len(first.query)
    if narrower:
        tags.append(f"+{narrower} condition{'s' if narrower > 1 else ''}")
    if len(node.matches) > 1:
        more = len(node.matches) - 1
        tags.append(f"+{more} match{'es' if more > 1 else ''}")
    if rule.status:
        tags.append(f"answers {rule.status}")
    if rule.redirect is not None:
        tags.append(f"redirect {rule.redirect.status}")
    if rule.direct is not None:
        tags.append(f"answers {rule.direct.status}")
    if policies := tag_policies(state, rule):
        tags.append(policies)
    if rule.rate_limits:
        tags.append(f"{len(rule.rate_limits)} limit{'s' if len(rule.rate_limits) > 1 else ''}")
    if rule.mirrors:
        tags.append("mirror")
    return tags


def _describe_backend(
    state: State, node: Node, share: ir.BackendRef | ir.StreamBackend
) -> tuple[str, list[str]]:
    rule = node.parent.subject if node.parent is not None else None
    found = rule.backends if isinstance(rule, ir.Rule | ir.StreamRoute) else ()
    total = sum(one.weight for one in found) or 1
    tags = [f"{100 * share.weight / total:.3g} %"]
    if not share.cluster:
        status = f"answers {share.status}" if isinstance(share, ir.BackendRef) else "refused"
        return share.reason, [*tags, status]
    cluster = state.index.clusters.get(share.cluster)
    if cluster is None:
        return "", tags
    count = len(cluster.endpoints)
    message = f"{count} endpoint{'' if count == 1 else 's'}"
    if not count and cluster.fallback:
        message = f"{len(cluster.fallback)} terminating endpoints only"
    if cluster.tls is not None:
        tags.append("TLS")
    return message, tags
