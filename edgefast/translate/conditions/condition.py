"""Condition: one condition of a status, as `metav1.Condition` without its transition time.

In: type, reason and the problems behind it. Out: `Condition` values; their message is the text of
those problems. The writer adds `lastTransitionTime`, because translation has no clock.
Must never: decide anything; the caller knows what its problems mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from edgefast.diagnostics.problem import Problem
from edgefast.diagnostics.reasons.word import Word

__all__ = ["Reason"]


class Reason(msgspec.Struct, frozen=True):
    """One line of the page."""

    type: str  # of the condition
    status: Literal["True", "False"]
    reason: str
    meaning: str
    ours: bool = False  # the Gateway API has no such word


#: `metav1.Condition.message` has maxLength 32768; the end says that something was cut.
MESSAGE_LIMIT = 32_768
_CUT = " ... (cut)"


class Condition(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """One condition; `observed_generation` 0 (objects from files) is left out."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    observed_generation: int = 0


def holds(type: str, reason: str, message: str, generation: int) -> Condition:  # noqa: A002
    """Return the condition as True."""
    return Condition(
        type=type,
        status="True",
        reason=reason,
        message=cut_message(message),
        observed_generation=generation,
    )


def fails(type: str, reason: Word, message: str, generation: int) -> Condition:  # noqa: A002
    """Return the condition as False."""
    return Condition(
        type=type,
        status="False",
        reason=reason,
        message=cut_message(message),
        observed_generation=generation,
    )


def condition_of(
    type: str,  # noqa: A002
    problems: Sequence[Problem],
    generation: int,
    *,
    reason: str,
    message: str,
) -> Condition:
    """Return True with `condition` when there is no problem, else False with the first one's reason."""
    if not problems:
        return holds(type, reason, message, generation)
    first = problems[0]
    return fails(type, first.condition or first.reason, render_problems(problems), generation)


def render_problems(problems: Iterable[Problem]) -> str:
    """Join the texts of problems, each once, in order."""
    return "; ".join(dict.fromkeys(problem.text() for problem in problems))


def cut_message(message: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return the message within the API's limit."""
    if len(message) <= limit:
        return message
    return message[: limit - len(_CUT)] + _CUT
