"""Lack: what is said of a target of a policy that is not there, or does not have the part that is named.

In: the target as it is called, and the parts that it has. Out: a Problem. Must never: look for anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.problem import ObjectRef, Problem, did_you_mean
from edgefast.resources.edge.policytarget import PASSES

__all__ = ["tell_lack", "tell_section"]


def tell_lack(policy: ObjectRef, path: str, named: str) -> Problem:
    """Say that a target is not there."""
    return Problem(policy, f"{path}.name", "TargetNotFound", f"{named} not found")


def tell_section(
    policy: ObjectRef, path: str, target: str, section: str, names: Iterable[str], what: str
) -> Problem:
    """Say that a target has no such part."""
    there = list(dict.fromkeys(names))
    said = f'"{section}" ({target} has {", ".join(there) or f"no {what}"}); {PASSES}'
    hint = did_you_mean(section, there)
    return Problem(policy, f"{path}.sectionName", "TargetNotFound", said, hint)
