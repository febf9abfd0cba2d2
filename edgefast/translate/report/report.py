"""Report: the problems of one object during translation, sorted by their effect on its status.

In: field path, reason, message. Out: `Problem` values in lists that become conditions. The lists
are `refused` (Accepted, PartiallyInvalid), `unresolved` (ResolvedRefs), `unavailable`
(BackendsAvailable), `warnings` (no condition). One mistake may be in several lists and counts once
in `problems`. The pipeline adds places in files at the very end (`pipeline.py`).
Must never: outlive the translation of its object, or raise for a user's mistake.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edgefast.diagnostics.problem import ObjectRef, Problem, Severity
from edgefast.diagnostics.reasons.word import Word


class Report:
    """Collects the problems of one object; each method returns the problem it noted.

    `condition` is the word that the status condition has for it, when it is not `reason`.
    """

    __slots__ = ("_consequences", "object", "refused", "unavailable", "unresolved", "warnings")

    def __init__(self, object: ObjectRef) -> None:  # noqa: A002 - the field's own name
        self.object = object
        self.refused: list[Problem] = []
        self.unresolved: list[Problem] = []
        self.unavailable: list[Problem] = []
        self.warnings: list[Problem] = []
        self._consequences: tuple[Problem, ...] = ()

    def refuse(
        self,
        path: str,
        reason: Word,
        message: str,
        hint: str = "",
        *,
        condition: Word | Literal[""] = "",
    ) -> Problem:
        """Note a value that is not served: Accepted=False, or PartiallyInvalid."""
        problem = Problem(self.object, path, reason, message, hint, condition=condition)
        return _note(self.refused, problem)

    def unresolve(
        self,
        path: str,
        reason: Word,
        message: str,
        hint: str = "",
        *,
        condition: Word | Literal[""] = "",
    ) -> Problem:
        """Note a reference that leads nowhere: ResolvedRefs=False."""
        problem = Problem(self.object, path, reason, message, hint, condition=condition)
        return _note(self.unresolved, problem)

    def adopt(self, problem: Problem, *, condition: Word) -> Problem:
        """Note that a mistake in another object, told there already, refuses this one too."""
        return _note(self.refused, msgspec.structs.replace(problem, condition=condition))

    def follow(self, problem: Problem) -> Problem:
        """Keep a problem out of `problems`: it only follows from one that is told elsewhere."""
        self._consequences += (problem,)
        return problem

    def miss(self, path: str, reason: Word, message: str, *, mistake: str = "") -> Problem:
        """Note a backend without endpoints: BackendsAvailable=False; `mistake`: why, when it is somebody's."""
        text = f"{message}: {mistake}" if mistake else message
        severity: Severity = "error" if mistake else "warning"
        problem = Problem(self.object, path, reason, text, severity=severity)
        return _note(self.unavailable, problem)

    def warn(self, path: str, reason: Word, message: str, hint: str = "") -> Problem:
        """Note something that works, but perhaps not as meant."""
        problem = Problem(self.object, path, reason, message, hint, severity="warning")
        return _note(self.warnings, problem)

    def lose(self, path: str, reason: Word, message: str, hint: str = "") -> Problem:
        """Note something that is not served as it is written, for which no condition has a word."""
        return _note(self.warnings, Problem(self.object, path, reason, message, hint))

    def join(self, other: Report) -> None:
        """Take what another report of the object has, each once."""
        for notes, more in (
            (self.refused, other.refused),
            (self.unresolved, other.unresolved),
            (self.unavailable, other.unavailable),
            (self.warnings, other.warnings),
        ):
            notes += [one for one in more if one not in notes]
        self._consequences += other._consequences

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, gravest first, each mistake once."""
        noted = (*self.refused, *self.unresolved, *self.unavailable, *self.warnings)
        reported = (one for one in noted if one not in self._consequences)
        return tuple(dict.fromkeys(map(_plain, reported)))


def _plain(problem: Problem) -> Problem:
    return msgspec.structs.replace(problem, condition="") if problem.condition else problem


def _note(notes: list[Problem], problem: Problem) -> Problem:
    notes.append(problem)
    return problem
