"""Values of an installation: defaults, then files, then single settings, checked against the models.

In: a release, the texts of values files, `--set` settings.
Out: `Install`, or every problem with its file and line. Merging follows helm: maps are merged key
by key, lists and scalars are replaced, and a null removes a default.
Must never: render values that helm would refuse, or the reverse; both read the same models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from controller.manifests.defaults import default_values
from controller.manifests.naming import Release
from controller.manifests.objects import Install, Manifest
from controller.manifests.setting import SettingError, apply_setting
from controller.manifests.values import ChartValues
from edgefast.api.decode.text import DocumentMarks, PieceLines
from edgefast.api.decode.walk import Walk
from edgefast.api.decode.yaml_text import SyntaxProblem, read_yaml
from edgefast.api.loaded import Path, render_path
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import Problem, Source
from edgefast.diagnostics.reasons.word import Word

File = tuple[str, bytes]  # name in problems, text


def load_install(
    release: Release,
    files: Sequence[File] = (),
    settings: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> tuple[Install | None, tuple[Problem, ...]]:
    """Return the installation and (), or None and what is wrong with its values.

    `texts` are settings whose values are text, whatever they look like (`--set-string`).
    """
    merged: Manifest = default_values()
    marks: list[tuple[str, DocumentMarks, Manifest]] = []
    problems: list[Problem] = []
    for name, text in files:
        try:
            written, where = _read(text)
        except SyntaxProblem as error:
            problems.append(_problem("", "Invalid", error.message, Source(name, error.line + 1)))
            continue
        marks.append((name, where, written))
        merged = merge(merged, written)
    for setting, textual in [(one, False) for one in settings] + [(one, True) for one in texts]:
        try:
            merged = apply_setting(merged, setting, textual=textual)
        except SettingError as error:
            problems.append(_problem("", "Invalid", f"--set {setting}: {error}", None))
    merged.pop("global", None)  # helm's own, for charts within charts
    walk = Walk()
    values = walk.build(ChartValues, merged)
    violations = [*walk.violations, *_check(values, merged)]
    for one in violations:
        source = _source(one.path, marks)
        problems.append(_problem(render_path(one.path), one.reason, one.message, source, one.hint))
    if problems:
        return None, tuple(problems)
    return Install(release, values, merged["config"]["edgeGateway"]), ()


def merge(below: Manifest, above: Manifest) -> Manifest:
    """Return `above` over `below`; a null in `above` takes a key away."""
    result = dict(below)
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = merge({}, value) if isinstance(value, dict) else value
    return result


def _read(text: bytes) -> tuple[Manifest, DocumentMarks]:
    documents = list(read_yaml(text))
    if len(documents) > 1:
        raise SyntaxProblem("a second document (a file has the values once)", 0)
    value = documents[0].value if documents else None
    if value is not None and not isinstance(value, dict):
        raise SyntaxProblem("the values must be an object", 0)
    return value or {}, DocumentMarks(PieceLines(text, "yaml"), 0, (), 0)


def _check(values: ChartValues | None, merged: Manifest) -> Iterable[Violation]:
    """What the models cannot say, as the templates and values.schema.json say it to helm."""
    yield from _missing(default_values(), merged, ())
    if values is None:
        return
    budget = values.pod_disruption_budget
    if budget.min_available is not None and budget.max_unavailable is not None:
        at = ("podDisruptionBudget", "maxUnavailable")
        yield Violation(at, "Forbidden", "together with minAvailable")
    if values.hpa.min_replicas > values.hpa.max_replicas:
        message = f"{values.hpa.min_replicas} (at most maxReplicas, {values.hpa.max_replicas})"
        yield Violation(("hpa", "minReplicas"), "Invalid", message)


def _missing(defaults: Manifest, merged: Any, path: Path) -> Iterable[Violation]:
    """A value that has a default may not be taken away (lists and maps are emptied instead)."""
    if path in (("config", "edgeGateway"),) or path[-1:] in (("resources",),):
        return
    for key, value in defaults.items():
        here = (*path, key)
        if not isinstance(merged, dict) or key not in merged:
            yield Violation(here, "Required", "null removes its default")
        elif isinstance(value, dict):
            yield from _missing(value, merged[key], here)


def _source(path: Path, marks: list[tuple[str, DocumentMarks, Manifest]]) -> Source | None:
    """Return the last file that says something about a path, down to the deepest key it has."""
    best: tuple[int, Source] | None = None
    for name, where, written in marks:
        depth = 0
        at: Any = written
        for key in path:
            if isinstance(at, dict) and key in at:
                at = at[key]
            elif isinstance(at, list) and isinstance(key, int) and key < len(at):
                at = at[key]
            else:
                break
            depth += 1
        if depth and (best is None or depth >= best[0]):
            best = depth, Source(name, where.line_of(path[:depth]))
    return best[1] if best else None


def _problem(
    path: str, reason: Word, message: str, source: Source | None, hint: str = ""
) -> Problem:
    return Problem(None, path, reason, message, hint=hint, source=source)
