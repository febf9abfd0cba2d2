"""Missing target: the problem of a policy's target that does not exist, or lacks the named part.

In: the name of the target, and the parts that it has. Out: a Problem. Must never: look for
anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.policy_target import PASSES
from edgefast.diagnostics.problem import ObjectRef, Problem, did_you_mean

__all__ = ["report_missing_target", "report_missing_section"]


def report_missing_target(policy: ObjectRef, path: str, named: str) -> Problem:
    """Say that a target is not there."""
    message = f"{named} not found; this target has no effect: requests pass without the policy"
    return Problem(policy, f"{path}.name", "TargetNotFound", message)


def report_missing_section(
    policy: ObjectRef, path: str, target: str, section: str, names: Iterable[str], what: str
) -> Problem:
    """Say that a target has no such part."""
    there = list(dict.fromkeys(names))
    message = f'"{section}" ({target} has {", ".join(there) or f"no {what}"}); {PASSES}'
    hint = did_you_mean(section, there)
    return Problem(policy, f"{path}.sectionName", "TargetNotFound", message, hint)
