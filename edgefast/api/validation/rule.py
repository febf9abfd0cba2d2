"""Rule: a condition on one Struct that needs more than one field, as CRDs state in CEL.

In: a built Struct. Out: `Violation`s with a path relative to that Struct. `reads` names the
attributes that a rule reads. A rule is skipped when one of them has its own violation, so that one
mistake gives one problem. `cel` is the same rule for the CRD of edgefast's kinds, `message` the
text of an API server for it. A `late` rule refuses nothing: translation handles that in its own way
(a route loses one rule, not all of it). It applies only to an object that is refused already, so
that one run reports all its mistakes.
Must never: look at another object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from edgefast.api.loaded import Path
from edgefast.api.model.fields import Element
from edgefast.diagnostics.reasons.word import Word


class Violation(msgspec.Struct, frozen=True):
    """One broken rule; `path` begins at the Struct that the rule is about.

    `severity` "" is that of the whole object.
    """

    path: Path
    reason: Word
    message: str
    hint: str = ""
    severity: Literal["", "warning"] = ""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`check` is asked for each Struct of type `struct`."""

    struct: type[Element]
    reads: tuple[str, ...]
    check: Callable[[Any], Iterable[Violation]]
    cel: str = ""
    message: str = ""
    late: bool = False


_Check = TypeVar("_Check", bound=Callable[[Any], Iterable[Violation]])


class RuleBook:
    """Collects the rules of one module through its decorator."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def on(
        self,
        struct: type[Element],
        *reads: str,
        cel: str = "",
        message: str = "",
        late: bool = False,
    ) -> Callable[[_Check], _Check]:
        """Add the decorated function as a rule about `struct`."""

        def add(check: _Check) -> _Check:
            self.rules.append(
                Rule(struct=struct, reads=reads, check=check, cel=cel, message=message, late=late)
            )
            return check

        return add
