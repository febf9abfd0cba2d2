"""Report: what becomes of each annotation, field and setting: served the same, different or refused.

In: the Ingresses, the problems of their translation, what `--standard` loses. Out: `Line`s by Ingress, in the order of their names.
Must never: call a part the same that the translation reports as not served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from edgefast.api.ingress.ingress import Ingress
from edgefast.api.kinds import ref_of
from edgefast.api.snapshot import Key
from edgefast.convert.comments import name_setting
from edgefast.convert.conversion import Line, Result
from edgefast.convert.standard import Loss
from edgefast.diagnostics.problem import Problem
from edgefast.translate.ingress.unserved import HARMLESS, PARTS
from edgefast.translate.ingress.values import PREFIX

__all__ = ["count_results", "report_all"]

#: Notes about what ingress-nginx does, too.
_AS_NGINX = re.compile(
    r"as ingress-nginx (does|serves)|as in ingress-nginx|ingress-nginx ignores it|no effect without"
)
#: Reasons of what has no effect in ingress-nginx either.
_NO_EFFECT = ("Shadowed", "Ignored")
#: What differs wherever an annotation is used.
_ALWAYS = {
    "affinity": "the cookie has another value; each client gets one new session",
    "service-upstream": "a Backend contains the clusterIP of the Service; change it when the Service gets another one",
}
_EFFECTS = {
    "Shadowed": "an older Ingress owns the path",
    "Ignored": "not an annotation of ingress-nginx",
}


def report_all(
    ours: Sequence[Ingress],
    unserved: Iterable[Ingress],
    problems: Iterable[Problem],
    losses: Iterable[Loss],
    certificates: Mapping[tuple[Key, str], Key],
) -> tuple[Line, ...]:
    """Return the lines of converted Ingresses (`ours`), then those of the ConfigMap and of all other Ingresses."""
    by_object: dict[str, list[Problem]] = {}
    for one in problems:
        by_object.setdefault(str(one.object or "options"), []).append(one)
    lost: dict[str, list[Loss]] = {}
    for loss in losses:
        lost.setdefault(str(loss.ingress), []).append(loss)
    lines: list[Line] = []
    for ingress in sorted(ours, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        name = str(ref_of(ingress))
        found = by_object.pop(name, [])
        own = _report_ingress(ingress, found, certificates)
        lines += _add_losses(name, list(own), lost.get(name, []))
    others = {str(ref_of(one)): one for one in unserved}
    for name, found in sorted(by_object.items()):
        lines += (_line(name, one) for one in found)
        if name in others:
            lines += _report_unserved(others[name], found)
    return tuple(dict.fromkeys(lines))


def count_results(lines: Iterable[Line]) -> dict[Result, int]:
    """Return the number of lines of each result."""
    counts: dict[Result, int] = {"same": 0, "differs": 0, "refused": 0}
    for one in lines:
        counts[one.result] += 1
    return counts


def _report_ingress(
    ingress: Ingress, problems: Sequence[Problem], certificates: Mapping[tuple[Key, str], Key]
) -> Iterator[Line]:
    name = str(ref_of(ingress))
    reported = {name_setting(one.path) for one in problems}
    if not any(one.path.startswith("spec") for one in problems):
        yield Line(object=name, setting="spec", result="same")
    key = (ingress.metadata.namespace, ingress.metadata.name)
    for (owner, field), secret in certificates.items():
        if owner == key:
            how = f"Secret {secret[0]}/{secret[1]} is not in the input; the listener needs it"
            yield Line(object=name, setting=field, result="same", how=how)
    yield from (_line(name, one) for one in problems)
    for full in sorted(ingress.metadata.annotations):
        short = full.removeprefix(PREFIX)
        if short == full or short in reported:
            continue
        if short in _ALWAYS:
            yield Line(object=name, setting=short, result="differs", how=_ALWAYS[short])
        elif short in PARTS:
            yield Line(object=name, setting=short, result="same", how="no effect alone")
        elif short in HARMLESS:
            how = "changes no answer; it has no counterpart"
            yield Line(object=name, setting=short, result="same", how=how)
        else:
            yield Line(object=name, setting=short, result="same")


def _report_unserved(ingress: Ingress, problems: Sequence[Problem]) -> Iterator[Line]:
    """Give the annotations without a problem of an Ingress that is not served."""
    reported = {name_setting(one.path) for one in problems}
    for full in sorted(ingress.metadata.annotations):
        short = full.removeprefix(PREFIX)
        if short != full and short not in reported:
            name = str(ref_of(ingress))
            yield Line(
                object=name, setting=short, result="refused", how="the Ingress is not served"
            )


def _line(name: str, problem: Problem) -> Line:
    result: Result = "refused" if problem.severity == "error" else "differs"
    how = problem.message
    if problem.reason in _NO_EFFECT:
        result = "same"
        how = f"{_EFFECTS[problem.reason]}; no effect in ingress-nginx either"
    elif problem.severity != "error" and _AS_NGINX.search(problem.message):
        result = "same"
    setting = name_setting(problem.path) or "spec"
    return Line(object=name, setting=setting, result=result, how=how, fix=problem.hint)


def _add_losses(name: str, lines: list[Line], losses: Iterable[Loss]) -> Iterator[Line]:
    """Give the lines; a setting that `--standard` loses is not the same any more."""
    found = list(losses)
    changed = {one.setting for one in found}
    for one in lines:
        if one.result != "same" or one.setting not in changed:
            yield one
    for loss in found:
        yield Line(object=name, setting=loss.setting, result="differs", how=loss.how)
