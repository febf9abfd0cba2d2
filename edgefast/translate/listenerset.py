"""ListenerSets: refused in words, because their listeners are not merged yet.

In: the ListenerSets whose parent is a Gateway of ours. Out: their status and a problem each.
Source: Gateway API ListenerSet conditions; `NotAllowed` is also what the API asks for where the Gateway
does not allow any, which is its default.
Must never: serve one of their listeners.
"""

from __future__ import annotations

from edgefast.problem import Problem
from edgefast.resources.kinds import ref_of
from edgefast.resources.snapshot import Key
from edgefast.translate.condition import fails
from edgefast.translate.facts import World
from edgefast.translate.report import Report
from edgefast.translate.status import ListenerSetStatus


def refuse_listener_sets(
    world: World,
) -> tuple[dict[Key, ListenerSetStatus], tuple[Problem, ...]]:
    """Return the statuses and problems of ListenerSets that ask for a Gateway of ours."""
    statuses, problems = {}, []
    for key, found in sorted(world.snapshot.listener_sets.items()):
        parent = found.spec.parent_ref
        gateway = (parent.namespace or key[0], parent.name)
        if world.gateways.get(gateway) is None:
            continue
        allowed = world.snapshot.gateways[gateway].spec.allowed_listeners
        none = allowed is None or allowed.namespaces.from_ == "None"
        reason = "NotAllowed" if none else "ListenersNotValid"
        said = "ListenerSet is not available yet"
        problem = Report(ref_of(found)).refuse("spec.parentRef", reason, said)
        generation = found.metadata.generation
        problems.append(problem)
        statuses[key] = ListenerSetStatus(
            conditions=(
                fails("Accepted", reason, problem.text(), generation),
                fails("Programmed", reason, problem.text(), generation),
            )
        )
    return statuses, tuple(problems)
