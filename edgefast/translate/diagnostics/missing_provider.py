"""Missing provider: authorization rules that require a token of a provider that no SecurityPolicy has.

In: all policies of edgefast. Out: a remark for each such rule: no request can match it. Merging
decides which policies apply where; a provider that does not exist applies nowhere, most likely a
slip.
Must never: report a provider that some policy has, or a policy that is closed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.kinds import ref_of
from edgefast.diagnostics.problem import Problem, did_you_mean
from edgefast.translate.policy.edge_policies import EdgePolicies
from edgefast.translate.policy.fail_closed import OwnKey
from edgefast.translate.policy.oidc import PROVIDER

__all__ = ["find_unproved"]


def find_unproved(own: EdgePolicies, is_told: Callable[[OwnKey], bool]) -> Iterator[Problem]:
    """Report rules whose provider nobody has; `is_told` tells of which policies anything is said."""
    if not any(one.unit.authorization is not None for one in own.units.values()):
        return
    there: set[str] = set()
    for outcome in own.outcomes.values():
        if not isinstance(outcome.policy, SecurityPolicy):
            continue
        spec = outcome.policy.spec
        there.update(one.name for one in (spec.jwt.providers if spec.jwt is not None else ()))
        if spec.oidc is not None:
            there.add(PROVIDER)
    for key, outcome in own.outcomes.items():
        if outcome.policy is None or not is_told(key):
            continue
        for unit in (one.unit for one in outcome.units):
            rules = unit.authorization.rules if unit.authorization is not None else ()
            for at, rule in enumerate(rules):
                token = rule.token
                if token is None or token.unit or token.provider in there:
                    continue
                fate = (
                    "the rule never matches"
                    if rule.allow
                    else "the rule matches without a valid token"
                )
                message = f'no jwt of a SecurityPolicy has a provider "{token.provider}": {fate}'
                path = f"spec.authorization.rules[{at}].principal.jwt.provider"
                hint = did_you_mean(token.provider, sorted(there))
                yield Problem(
                    ref_of(outcome.policy), path, "NotFound", message, hint, severity="warning"
                )
