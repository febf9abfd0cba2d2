"""The rules of our own kinds: those that a CRD says in CEL, too."""

from __future__ import annotations

from edgefast.api.edge.backendtrafficpolicy import TrafficSession
from edgefast.api.validation import (
    backend,
    config,
    edge,
    health_check,
    jwt,
    load_balancer,
    oidc,
    policy,
    policy_target,
    response_rewrite,
    route_filter,
    session_persistence,
    traffic,
    zone_aware,
)
from edgefast.api.validation.rule import Rule

_BOOKS = (
    edge,
    health_check,
    jwt,
    oidc,
    load_balancer,
    policy,
    policy_target,
    response_rewrite,
    route_filter,
    traffic,
    zone_aware,
    backend,
    config,
)
OWN: list[Rule] = [rule for one in _BOOKS for rule in one.BOOK.rules]
#: Those of sessions that are not said of the API's own kinds.
OWN += [rule for rule in session_persistence.BOOK.rules if rule.struct is TrafficSession]


def name_rule(rule: Rule) -> str:
    """What a test of a rule is called."""
    return f"{rule.struct.__name__}-{rule.check.__name__}"
