"""Problem index: the problems of each line of the tree.

In: an index, all known problems.
Out: errors and warnings by node, summed up towards the gateways. A rule that answers with an error
because of the configuration is a problem even without a report (a proxy of a fleet gets no
reports).
Must never: guess the object of a problem; a problem that names no object here is only in the list
of all problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from edgefast import ir
from edgefast.api.model.route_name import ROUTE_KINDS, name_of, ref_of_name, route_key
from edgefast.console.index import Index, Node
from edgefast.diagnostics.problem import Problem
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.translate.deps.policy_summary import KIND_OF

_RULE = re.compile(r"spec\.rules\[(\d+)\]")


class ObjectProblems(msgspec.Struct, frozen=True):
    """A problem as it is shown."""

    severity: str
    text: str
    source: str = ""  # "shop.yaml:12"
    node: str = ""  # id of the line that it belongs to
    reasons: tuple[str, ...] = ()  # those that there is a page about


#: Kinds of policies, and what the names of their units begin with.
_POLICIES = {kind: family for family, kind in KIND_OF.items()}


class ProblemIndex:
    """Assigns problems to the nodes of the tree."""

    def __init__(self, index: Index, problems: Sequence[Problem]) -> None:
        self._of: dict[str, list[ObjectProblems]] = {}
        self._below: dict[
            str, dict[ObjectProblems, Node]
        ] = {}  # and on the lines below: the first of those
        self.all: list[ObjectProblems] = []
        told_routes: set[str] = set()
        for one in problems:
            nodes = list(_find_nodes(index, one))
            reported = ObjectProblems(
                one.severity,
                one.text(),
                str(one.source) if one.source else "",
                nodes[0].id if nodes else "",
                (one.reason,),
            )
            self.all.append(reported)
            for node in nodes:
                self._mark(node, reported)
                if isinstance(node.subject, ir.Rule | ir.StreamRoute) and one.severity == "error":
                    told_routes.add(node.subject.route)
        once: set[str] = set()
        for node in index.broken:
            rule = node.subject
            if not isinstance(rule, ir.Rule | ir.StreamRoute) or rule.route in told_routes:
                continue
            message = "; ".join(dict.fromkeys(_why_broken(rule)))
            text = f"{ref_of_name(rule.route)} spec.rules[{rule.index}]: {message}"
            reported = ObjectProblems("error", text, rule.source, node.id, name_reasons(text))
            self._mark(node, reported)
            if text not in once:
                once.add(text)
                self.all.append(reported)
        self.all.sort(key=lambda one: one.severity != "error")
        self.errors: dict[str, int] = {}  # by line, each problem once
        self.warnings: dict[str, int] = {}
        for id_, found in self._below.items():
            errors = sum(one.severity == "error" for one in found)
            if errors:
                self.errors[id_] = errors
            if len(found) > errors:
                self.warnings[id_] = len(found) - errors

    def of(self, node: Node) -> Sequence[ObjectProblems]:
        """Return the problems of one line itself."""
        return self._of.get(node.id, ())

    def below(self, node: Node) -> Sequence[ObjectProblems]:
        """Return the problems of one line and of those below it, errors first, each with the line that has it."""
        found = self._below.get(node.id, {})
        reported = [msgspec.structs.replace(one, node=at.id) for one, at in found.items()]
        return sorted(reported, key=lambda one: (one.severity != "error", one.node != node.id))

    def _mark(self, node: Node, told: ObjectProblems) -> None:
        self._of.setdefault(node.id, []).append(told)
        for one in node.path():
            self._below.setdefault(one.id, {}).setdefault(told, node)


def _find_nodes(index: Index, problem: Problem) -> Iterator[Node]:
    """Give the lines of a problem's object."""
    ref = problem.object
    if ref is None:
        return
    name = f"{ref.namespace}/{ref.name}"
    if ref.kind in ROUTE_KINDS:
        name = name_of(route_key(ref.kind, ref.namespace, ref.name))
        part = _RULE.match(problem.path)
        for node in index.routes.get(name, ()):
            rule = node.subject
            if isinstance(rule, ir.Rule | ir.StreamRoute) and (
                part is None or rule.index == int(part[1])
            ):
                yield node
    elif ref.kind in _POLICIES:
        yield from index.guarded.get(f"{_POLICIES[ref.kind]}/{name}", ())
    elif ref.kind == "Gateway":
        node_ = index.find(f"g:{name}")
        if node_ is not None:
            yield node_
    elif ref.kind == "ListenerSet":
        for gateway in index.root.children:
            yield from (one for one in gateway.children if one.name.startswith(f"{name}/"))


def _why_broken(rule: ir.Rule | ir.StreamRoute) -> Iterator[str]:
    if isinstance(rule, ir.StreamRoute):
        yield from (one.reason for one in rule.backends if not one.cluster and one.weight)
        yield from ([rule.reason] if rule.reason else [])
        return
    if rule.status:
        yield f"answers {rule.status}" + (f": {rule.reason}" if rule.reason else "")
    for one in rule.backends:
        if not one.cluster and one.weight:
            yield f"a share is answered with {one.status}" + (
                f": {one.reason}" if one.reason else ""
            )
