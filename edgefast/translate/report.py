"""Report: the problems of one object while it is translated, sorted by what they mean to its status.

In: field path, reason, message. Out: `Problem` values in lists that become conditions: `refused`
(Accepted, PartiallyInvalid), `unresolved` (ResolvedRefs), `unavailable` (BackendsAvailable),
`warnings` (no condition). Places in files are added at the very end, see `pipeline.py`.
Must never: outlive the translation of its object, or raise for a user's mistake.
"""

from __future__ import annotations

from edgefast.problem import ObjectRef, Problem


class Report:
    """Collects the problems of one object; each method returns the problem it noted."""

    __slots__ = ("object", "refused", "unavailable", "unresolved", "warnings")

    def __init__(self, object: ObjectRef) -> None:  # noqa: A002 - the field's own name
        self.object = object
        self.refused: list[Problem] = []
        self.unresolved: list[Problem] = []
        self.unavailable: list[Problem] = []
        self.warnings: list[Problem] = []

    def refuse(self, path: str, reason: str, message: str, hint: str = "") -> Problem:
        """Note a value that is not served: Accepted=False, or PartiallyInvalid."""
        return _note(self.refused, Problem(self.object, path, reason, message, hint))

    def unresolve(self, path: str, reason: str, message: str, hint: str = "") -> Problem:
        """Note a reference that leads nowhere: ResolvedRefs=False."""
        return _note(self.unresolved, Problem(self.object, path, reason, message, hint))

    def miss(self, path: str, reason: str, message: str) -> Problem:
        """Note a backend without endpoints: BackendsAvailable=False."""
        problem = Problem(self.object, path, reason, message, severity="warning")
        return _note(self.unavailable, problem)

    def warn(self, path: str, reason: str, message: str, hint: str = "") -> Problem:
        """Note something that works, but perhaps not as meant."""
        problem = Problem(self.object, path, reason, message, hint, severity="warning")
        return _note(self.warnings, problem)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, gravest first."""
        return (*self.refused, *self.unresolved, *self.unavailable, *self.warnings)


def _note(notes: list[Problem], problem: Problem) -> Problem:
    notes.append(problem)
    return problem
