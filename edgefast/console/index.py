"""Index: the tree of one table (gateway, listener, virtual host, rule, backend; layer 4 routes below their listener) with search by id and
text.

In: a fleet.
Out: `Node`s. Their ids consist of names, so they remain valid in the next table. Backends are
created on access, because a table has many.
Must never: be changed after creation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from edgefast import ir
from edgefast.explain.match_failure import describe_match
from edgefast.table.row_label import label_rule

Kind = Literal["gateway", "listener", "host", "rule", "backend"]
Subject = (
    str | ir.Listener | ir.VirtualHost | ir.BackendRef | ir.Rule | ir.StreamRoute | ir.StreamBackend
)

_FOUND = 5000  # nodes that a search counts
_GUARDED = 100  # rules of a policy that its problems are told at


class Node(msgspec.Struct, eq=False):
    """One line of the tree."""

    id: str
    kind: Kind
    name: str
    subject: Subject
    parent: Node | None = None
    place: int = 0  # among its parent's children
    children: list[Node] = msgspec.field(default_factory=list)
    matches: tuple[ir.Match, ...] = ()  # of a rule, in order of precedence
    labels: frozenset[bytes] = frozenset()  # rows of counters of the rules below
    shared: bool = False  # some of these rules are below other nodes of this kind too
    rules: int = 0  # below

    def path(self) -> tuple[Node, ...]:
        """Return its ancestors, the highest first, and itself."""
        return (*(self.parent.path() if self.parent else ()), self)

    def add(self, child: Node) -> Node:
        """Append a child."""
        child.parent, child.place = self, len(self.children)
        self.children.append(child)
        return child


class Index:
    """The tree of one table (gateway, listener, host, rule, backend), with search."""

    def __init__(self, fleet: ir.Fleet) -> None:
        self.fleet = fleet
        self.root = Node("", "gateway", "", "")
        self.clusters = {one.name: one for one in fleet.clusters}
        self.policies = {one.name: one for one in fleet.policies}
        self.guarded: dict[str, list[Node]] = {}  # some rules that units of a policy hold for
        self.by_label: dict[bytes, Node] = {}  # one rule of each label
        self.routes: dict[str, list[Node]] = {}  # rules of each route, on all its hosts
        self.broken: list[Node] = []  # rules that do not serve what was asked for
        self.limited: list[Node] = []  # rules with limits
        self.hosts = 0
        self.entries = 0
        self._nodes: dict[str, Node] = {}
        self._texts: list[tuple[str, Node]] | None = None
        self._build()

    # --- making it ------------------------------------------------------------------------------

    def _build(self) -> None:
        hosts: dict[str, list[ir.VirtualHost]] = {}
        for one in self.fleet.virtual_hosts:
            hosts.setdefault(one.listener, []).append(one)
        streams: dict[str, list[ir.StreamRoute]] = {}
        for route in self.fleet.stream_routes:
            streams.setdefault(route.listener, []).append(route)
        gateways: dict[str, Node] = {}
        for listener in sorted(self.fleet.listeners, key=lambda one: one.name):
            name = "/".join(listener.name.split("/")[:2])
            gateway = gateways.get(name)
            if gateway is None:
                gateway = gateways[name] = self._enter(
                    self.root, "gateway", f"g:{name}", name, name
                )
            section = listener.name[len(name) + 1 :]
            place = self._enter(gateway, "listener", f"l:{listener.name}", section, listener)
            for host in sorted(hosts.get(listener.name, ()), key=_host_order):
                self._add_host(place, host)
            for route in streams.get(listener.name, ()):
                self._add_stream(place, route)
        for gateway in self.root.children:
            for node in (*gateway.children, gateway):
                node.labels = frozenset(label for one in node.children for label in one.labels)
                node.rules = sum(one.rules for one in node.children)
        self._mark_shared()

    def _enter(self, parent: Node, kind: Kind, id_: str, name: str, subject: Subject) -> Node:
        node = self._nodes[id_] = parent.add(Node(id_, kind, name, subject))
        return node

    def _add_host(self, listener: Node, host: ir.VirtualHost) -> None:
        path = f"{host.listener}/{host.hostname}"
        node = self._enter(listener, "host", f"h:{path}", host.hostname, host)
        matches: dict[int, list[ir.Match]] = {}
        for entry in host.entries:
            matches.setdefault(entry.rule, []).append(entry.match)
        labels = []
        for number, found in matches.items():  # in order of the first match of each
            rule = host.rules[number]
            id_ = f"r:{path}|{rule.route}|{rule.index}"
            if id_ in self._nodes:  # one rule in several forms
                id_ = f"{id_}|{number}"
            child = self._enter(node, "rule", id_, found[0].path or "/", rule)
            child.matches = tuple(found)
            label = label_rule(rule)
            child.labels, child.rules = frozenset((label,)), 1
            labels.append(label)
            self.by_label.setdefault(label, child)
            self.routes.setdefault(rule.route, []).append(child)
            if is_broken(rule):
                self.broken.append(child)
            if rule.rate_limits:
                self.limited.append(child)
            for policy in {one.partition("#")[0] for one in rule.units()}:
                checks = self.guarded.setdefault(policy, [])
                if len(checks) < _GUARDED:
                    checks.append(child)
        node.labels, node.rules = frozenset(labels), len(labels)
        self.hosts += 1
        self.entries += len(host.entries)

    def _add_stream(self, listener: Node, route: ir.StreamRoute) -> None:
        """Add a place of layer 4; nobody counts requests there."""
        id_ = f"r:{route.listener}/{route.hostname}|{route.route}|{route.index}"
        node = self._enter(listener, "rule", id_, route.hostname, route)
        node.rules = 1
        if route.route:
            self.routes.setdefault(route.route, []).append(node)
        if is_broken(route):
            self.broken.append(node)

    def _mark_shared(self) -> None:
        for kind in ("gateway", "listener", "host", "rule"):
            nodes = [one for one in self._nodes.values() if one.kind == kind]
            seen: dict[bytes, int] = {}
            for one in nodes:
                for label in one.labels:
                    seen[label] = seen.get(label, 0) + 1
            for one in nodes:
                one.shared = any(seen[label] > 1 for label in one.labels)

    # --- looking --------------------------------------------------------------------------------

    def find(self, id_: str) -> Node | None:
        """Return a node by its id; "" is the root."""
        if not id_:
            return self.root
        if not id_.startswith("b:"):
            return self._nodes.get(id_)
        of, _, number = id_[2:].rpartition("|")
        rule = self._nodes.get(of)
        backends = self.children(rule) if rule is not None else []
        return backends[int(number)] if _is_number(number, len(backends)) else None

    def children(self, node: Node) -> list[Node]:
        """Return the children of a node."""
        rule = node.subject
        if node.kind != "rule" or not isinstance(rule, ir.Rule | ir.StreamRoute):
            return node.children
        if isinstance(rule, ir.Rule) and (rule.status or rule.redirect is not None):
            return []
        shares: Sequence[ir.BackendRef | ir.StreamBackend] = rule.backends
        return [
            Node(f"b:{node.id}|{at}", "backend", one.cluster, one, node, at)
            for at, one in enumerate(shares)
        ]

    def count_children(self, node: Node) -> int:
        """Return how many there are."""
        return len(self.children(node))

    def search(self, words: str) -> list[Node]:
        """Return nodes with all of the words in their names, those that are meant exactly first."""
        wanted = words.lower().split()
        if not wanted:
            return []
        if self._texts is None:
            self._texts = list(self._write_texts())
        exact: list[Node] = []
        found: list[Node] = []
        plain = words.strip().lower()
        for text, node in self._texts:
            if all(word in text for word in wanted):
                (exact if plain in text.split("\n") else found).append(node)
                if len(exact) + len(found) >= _FOUND:
                    break
        return exact + found

    def _write_texts(self) -> Iterator[tuple[str, Node]]:
        for node in self._nodes.values():
            yield "\n".join(_words(node)).lower(), node


def _words(node: Node) -> Sequence[str]:
    subject = node.subject
    if isinstance(subject, ir.Listener):
        return node.name, subject.name, str(subject.port), f":{subject.port}", subject.protocol
    if isinstance(subject, ir.StreamRoute):
        names = (subject.route, subject.route.rpartition("/")[2], subject.name, subject.source)
        return (node.name, *names, *(one.cluster for one in subject.backends))
    if not isinstance(subject, ir.Rule):
        return (node.name,)
    return (
        subject.route,
        subject.route.rpartition("/")[2],
        subject.name,
        *(describe_match(one) for one in node.matches),
        *(one.path or "/" for one in node.matches),
        *(one.cluster for one in subject.backends),
        *(one.name for one in subject.rate_limits),
        *subject.units(),
        subject.source,
    )


def is_broken(rule: ir.Rule | ir.StreamRoute) -> bool:
    """Tell whether a rule, or a share of its requests, is answered with an error because of the configuration."""
    if isinstance(rule, ir.StreamRoute):
        return bool(rule.reason) or any(not one.cluster and one.weight for one in rule.backends)
    return bool(rule.status) or any(not one.cluster and one.weight for one in rule.backends)


def _host_order(host: ir.VirtualHost) -> tuple[int, str]:
    """Exact names before wildcards, any host last, as precedence has it."""
    return (2 if host.hostname == "*" else host.hostname.startswith("*."), host.hostname)


def _is_number(text: str, limit: int) -> bool:
    return text.isascii() and text.isdecimal() and int(text) < limit
