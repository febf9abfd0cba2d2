"""TLS policy: statuses of BackendTLSPolicies, one entry per Gateway with a route that uses a target.

In: the policies after conflicts and which Gateways use which Services. Out: PolicyStatus values.
Source: Gateway API PolicyStatus (at most 16 ancestors), BackendTLSPolicy conditions.
Must never: list a Gateway of another controller, or give a status to a policy that no API server has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from edgefast.api.model.origin import is_made
from edgefast.api.model.reference import ParentReference
from edgefast.api.snapshot import Key
from edgefast.translate.conditions.condition import Condition, condition_of
from edgefast.translate.conditions.status import PolicyAncestorStatus, PolicyStatus
from edgefast.translate.policy.backendtlspolicy import Policies, PolicyOutcome
from edgefast.translate.settings import Settings

MAX_ANCESTORS = 16  # maxItems of status.ancestors


def compute_tls_policy_statuses(
    policies: Policies, users_of: Callable[[Key], Iterable[Key]], settings: Settings
) -> dict[Key, PolicyStatus]:
    """Return the statuses; `users_of` gives the Gateways of a Service. Policies without any have none, and those that edgefast makes for Ingresses."""
    statuses = {}
    for key, outcome in policies.outcomes.items():
        gateways = sorted({one for service in _services(outcome) for one in users_of(service)})
        if not gateways or is_made(key[1]):
            continue
        conditions = _conditions(key, outcome, policies)
        statuses[key] = PolicyStatus(
            ancestors=tuple(
                PolicyAncestorStatus(
                    ancestor_ref=ParentReference(namespace=namespace, name=name),
                    controller_name=settings.controller_name,
                    conditions=conditions,
                )
                for namespace, name in gateways[:MAX_ANCESTORS]
            )
        )
    return statuses


def _services(outcome: PolicyOutcome) -> set[Key]:
    """Return the Services named as targets, whether or not the policy may attach to them."""
    namespace = outcome.policy.metadata.namespace
    return {
        (namespace, ref.name) for ref in outcome.policy.spec.target_refs if ref.kind == "Service"
    }


def _conditions(key: Key, outcome: PolicyOutcome, policies: Policies) -> tuple[Condition, ...]:
    generation = outcome.policy.metadata.generation
    refused = [*policies.conflicts.get(key, ()), *outcome.refused]
    return (
        condition_of(
            "Accepted", refused, generation, reason="Accepted", message="Policy is accepted"
        ),
        condition_of(
            "ResolvedRefs",
            outcome.unresolved,
            generation,
            reason="ResolvedRefs",
            message="All references are resolved",
        ),
    )
