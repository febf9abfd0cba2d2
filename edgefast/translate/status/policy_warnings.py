"""Policy warnings: which SecurityPolicies and BackendTrafficPolicies need a new status while the Gateways are the same.

In: the changes of policies, routes, uses and facts. Out: keys of policies.
Must never: miss one with a status that would differ from a result without a previous one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.api.edge.policy_target import BACKEND_TARGETS
from edgefast.api.model.route_name import kind_of, plain_key
from edgefast.api.snapshot import Key
from edgefast.translate.deps.dependency_facts import Fact
from edgefast.translate.deps.policy_summary import KIND_OF, PolicySummary, split_unit
from edgefast.translate.policy.edge_policies import EdgePolicies
from edgefast.translate.policy.fail_closed import OwnKey
from edgefast.translate.route.outcome import key_of_route
from edgefast.translate.route.routes import Routes
from edgefast.translate.status.policy_usage import PolicyUses

__all__ = ["find_suspects"]

_FRONTS = ("Gateway", "ListenerSet")


def find_suspects(
    own: EdgePolicies,
    routes: Routes,
    uses: PolicyUses,
    unmade: frozenset[str],
    changed: Iterable[Fact],
) -> set[OwnKey]:
    """Return the policies whose own object, neighbours on a target, routes, backends or uses have changed, or units that are made now, or not."""
    found: set[OwnKey] = {_key_of_unit(one) for one in uses.touched | unmade}
    fronts = False
    for pair in own.changes:
        for outcome in pair:
            if outcome is None:
                continue
            found.add(_key_of(outcome.shape))
            for target, _ in outcome.targets:
                found.update(map(_key_of, own.attached.get(target, ())))
                fronts = fronts or target[0] in _FRONTS
    if fronts:  # what is above may beat what is below
        for target, level in own.attached.items():
            if target[0] in _FRONTS:
                found.update(map(_key_of, level))
    for pair_of_routes in routes.changes if own.attached else ():
        one = pair_of_routes[1] or pair_of_routes[0]
        assert one is not None
        key = key_of_route(one.route)
        found.update(_attached_to(own, kind_of(key), plain_key(key)))
    for fact in changed if own.attached else ():
        if fact[0] in BACKEND_TARGETS:
            found.update(_attached_to(own, fact[0], (fact[1], fact[2])))
    return found


def _attached_to(own: EdgePolicies, kind: str, key: Key) -> Iterator[OwnKey]:
    begin = (kind, *key)
    for target in own.attached.starting_at((*begin, "")):
        if target[:3] != begin:
            return
        yield from map(_key_of, own.attached[target])


def _key_of(shape: PolicySummary) -> OwnKey:
    namespace, _, name = shape.owner.partition("/")
    return (KIND_OF[shape.family], namespace, name)


def _key_of_unit(unit: str) -> OwnKey:
    family, owner = split_unit(unit)
    namespace, _, name = owner.partition("/")
    return (KIND_OF[family], namespace, name)
