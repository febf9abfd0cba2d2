"""Root cause: the place of the mistake in the user's objects behind an answer, and its fix.

In: the text of a problem as `Problem.text` writes it ("HTTPRoute default/a spec.rules[0]: NotFound
..."), the origin.
Out: the place, and one line of advice with the name that was perhaps meant. The mistake may be in
another object: one that is refused, or one that the text quotes.
Must never: name a place that no text names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from edgefast import ir
from edgefast.diagnostics.problem import ObjectRef
from edgefast.explain.explanation import Answer, Place
from edgefast.explain.source_location import Origin
from edgefast.translate.diagnostics.missing_object import find_absent, hint_absent

#: Behind the first subject and reason another subject: "HTTPRoute ...: InvalidBackendRef BackendTLSPolicy default/p spec...: ...".
_FOLLOWED = re.compile(
    r'^[A-Z]\w+ [^\s":]+ [^\s":]+: [A-Z]\w+ ([A-Z]\w+) ([^\s/":]+)/([^\s/":]+) ([a-z][^\s":]*): '
)


def find_path(ref: ObjectRef, message: str) -> str:
    """Return the field path that a message begins with, "" when it names none of this object."""
    subject, colon, _ = message.partition(": ")
    path = subject.removeprefix(f"{ref} ")
    return path if colon and path != subject else ""


def advise(origin: Origin, rule: ir.Rule, answers: Iterable[Answer]) -> tuple[Answer, ...]:
    """Return a rule's answers with what to do about mistakes: looking for names is for one request, not for thousands."""
    return tuple(_advise(origin, rule, one) for one in answers)


def _advise(origin: Origin, rule: ir.Rule, answer: Answer) -> Answer:
    if answer.check in ("rule_invalid", "backend_invalid") and not answer.fix:
        return msgspec.structs.replace(answer, fix=_correct_rule(origin, rule, answer.why))
    if rule.direct is None or rule.direct.status != 503:
        return answer
    # The rule is a closed location of an Ingress. Its problem has the field that the rule comes from.
    found = origin.problem_at(origin.rule(rule))
    if found is None:
        return answer
    return msgspec.structs.replace(answer, why=found.message, fix=answer.fix or found.hint)


def _correct_rule(origin: Origin, rule: ir.Rule, message: str) -> str:
    path = find_path(origin.route_ref(rule.route), message)
    place = origin.rule_place(rule, path) if path else origin.rule(rule)
    return correct(origin, place, message)


def correct(origin: Origin, place: Place, message: str) -> str:
    """Advise on a mistake at a place, or at the one that follows from the text."""
    absent = find_absent(message)
    if absent is not None and (left_out := origin.refusal_of(absent)) is not None:
        at = f" ({left_out.source})" if left_out.source else ""
        return f"correct {absent} {left_out.path}{at}; it is ignored because of this error"
    inner = _find_inner(message)
    if inner is not None:
        place = origin.place(*inner)
    source = f" ({place.source})" if place.source else ""
    advice = f"correct {place.object} {place.path}{source}"
    hint = hint_absent(absent, origin.snapshot) if absent is not None else ""
    return f"{advice}: {hint}" if hint else advice


def _find_inner(message: str) -> tuple[ObjectRef, str] | None:
    """Return the object and path that are wrong when a text tells of another object's problem."""
    found = _FOLLOWED.search(message)
    return (ObjectRef(found[1], found[2], found[3]), found[4]) if found else None
