"""Pieces: the routes that serve Ingresses, as parts that can be joined and named.

In: the objects that edgefast serves. Out: `Piece`s: rules with their origin, hostnames, parents and policies.
Must never: change what a rule does.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgefast.api.gateway.httproute import HTTPRoute, HTTPRouteRule
from edgefast.api.model.origin import RuleOrigin
from edgefast.api.model.reference import ParentReference
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.ingress.assemble import IngressObjects

__all__ = [
    "HTTP_FILTER",
    "LIMITS",
    "SECURITY",
    "TRAFFIC",
    "Piece",
    "filter_names",
    "find_pieces",
    "policies_of",
]

#: Tables of policies that routes have.
SECURITY = "security_policies"
TRAFFIC = "backend_traffic_policies"
#: Table of the limits that rules have, and the kind of the other filters of edgefast.
LIMITS = "rate_limit_filters"
HTTP_FILTER = "HTTPRouteFilter"

#: A policy by kind and key.
PolicyKey = tuple[str, Key]


class Piece(msgspec.Struct, kw_only=True, eq=False):
    """Rules of one Ingress with the same hosts, listeners and policies."""

    ingress: ObjectRef
    made: list[str]  # names of the routes that edgefast serves
    parents: tuple[ParentReference, ...]
    hostnames: tuple[str, ...]
    rules: list[tuple[HTTPRouteRule, RuleOrigin]]
    policies: frozenset[PolicyKey]
    ordered: bool = False  # the order of its rules needs the annotation
    name: str = ""  # of the route in the output

    @property
    def namespace(self) -> str:
        """Return the namespace of the Ingress and of its routes."""
        return self.ingress.namespace

    @property
    def is_encrypted(self) -> bool:
        """Tell whether the piece serves requests over TLS."""
        return any(one.section_name != "http" for one in self.parents)

    @property
    def has_backends(self) -> bool:
        """Tell whether a rule sends requests to a backend."""
        return any(rule.backend_refs for rule, _ in self.rules)

    @property
    def is_redirect(self) -> bool:
        """Tell whether all rules are redirects."""
        return all(
            any(one.request_redirect is not None for one in rule.filters) for rule, _ in self.rules
        )


def find_pieces(made: IngressObjects) -> list[Piece]:
    """Return one piece for each route, in the order in which edgefast made them."""
    policies = policies_of(made)
    pieces = []
    for (namespace, name), route in made.tables.get("http_routes", {}).items():
        assert isinstance(route, HTTPRoute) and route.origin is not None
        assert route.origin.ingress is not None
        pieces.append(
            Piece(
                ingress=route.origin.ingress,
                made=[name],
                parents=route.spec.parent_refs,
                hostnames=route.spec.hostnames,
                rules=list(zip(route.spec.rules, route.origin.rules, strict=True)),
                policies=policies.get((namespace, name), frozenset()),
            )
        )
    return pieces


def policies_of(made: IngressObjects) -> dict[Key, frozenset[PolicyKey]]:
    """Return the policies of each route; parts of one policy count as one."""
    found: dict[Key, set[PolicyKey]] = {}
    for kind, key, target in _targets(made):
        found.setdefault((key[0], target), set()).add((kind, _whole(key)))
    return {key: frozenset(one) for key, one in found.items()}


def _targets(made: IngressObjects) -> Iterator[tuple[str, Key, str]]:
    for table in (SECURITY, TRAFFIC):
        for key, policy in made.tables.get(table, {}).items():
            for ref in policy.spec.target_refs:
                if ref.kind == "HTTPRoute":
                    yield table, key, ref.name


def _whole(key: Key) -> Key:
    """Return the name of a policy without the number of its part."""
    return key[0], key[1].rpartition("-")[0]


def filter_names(rule: HTTPRouteRule) -> list[str]:
    """Return the names of the HTTPRouteFilters of a rule."""
    refs = (one.extension_ref for one in rule.filters)
    return [one.name for one in refs if one is not None and one.kind == HTTP_FILTER]
