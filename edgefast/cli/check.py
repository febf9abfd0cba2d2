"""`edgefast check`: every problem of the files, one line each, as `edgefast run` (or, with `--cluster`, a controller) would report them.

In: files.
Out: problems on standard output, a summary on standard error. Exit status 0 (everything is served,
possibly with warnings), 1 (a part would not be served as written, or, with `--strict`, there are
warnings), 2 (wrong usage).
Must never: serve or write anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from edgefast import ir
from edgefast.cli.backend_option import backend_option
from edgefast.cli.example_slice import show_slice
from edgefast.cli.ingressoptions import ingress_options
from edgefast.cli.inputs import Inputs, read_inputs
from edgefast.cli.options import (
    Format,
    adopt_option,
    cluster_option,
    config_option,
    ignore_option,
    join_files,
    output_option,
    path_options,
)
from edgefast.cli.output import render_line, write_value
from edgefast.diagnostics.problem import Problem, ask_for_more, page_of
from edgefast.providers.added_backends import AddedBackend
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import IngressSettings
from edgefast.translate.translation import Translation


@click.command()
@path_options
@config_option
@adopt_option
@ignore_option
@ingress_options
@backend_option
@cluster_option
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@output_option("table")
@click.pass_context
def check(
    ctx: click.Context,
    paths: tuple[Path, ...],
    files: tuple[Path, ...],
    config: Path | None,
    adopt: bool,
    ignore_foreign_policies: bool,
    ingress: IngressSettings,
    backends: tuple[AddedBackend, ...],
    cluster: bool,
    strict: bool,
    output: Format,
) -> None:
    """Validate files and list their problems. Files can be arguments, too: edgefast check DIR.

    Exit status: 0 if everything is served, 1 if something is not, 2 for wrong usage.

    \b
    Examples:
      # Validate one file
      edgefast check -f examples/quickstart.yaml
      # Validate as a controller in a cluster does, and fail on warnings
      edgefast check -f examples/kubernetes --cluster --strict
      # Print the problems of a folder as JSON
      edgefast check -f examples/kubernetes -o json
    """
    if adopt and cluster:
        raise click.UsageError("--adopt: not with --cluster")
    inputs = read_inputs(
        join_files(files, paths),
        config,
        standalone=not cluster,
        adopt=adopt,
        ignore_foreign_policies=ignore_foreign_policies,
        ingress=ingress,
        backends=backends,
    )
    translation = translate(inputs.reading.snapshot, inputs.settings)
    refused = _check_keys(translation.ir.fleets)
    problems = collect_problems(inputs, translation, refused)
    if output == "table":
        for problem in problems:
            click.echo(render_line(problem))
    else:
        write_value([describe_problem(problem) for problem in problems], output)
    click.echo(summarise(inputs, problems), err=True)
    if output == "table" and not cluster and (example := show_slice(inputs, problems)):
        click.echo(example, err=True)
    ctx.exit(1 if any(_counts(problem, strict=strict) for problem in problems) else 0)


def _check_keys(fleets: Sequence[ir.Fleet]) -> Iterable[Problem]:
    """Return the problems that the TLS library finds; the engine is loaded only if an object has a key (25 ms)."""
    if not any(fleet.secrets for fleet in fleets):
        return ()
    from edgefast.proxy.tls.key_check import check_fleets

    return check_fleets(fleets)


def _counts(problem: Problem, *, strict: bool) -> bool:
    """Tell whether a problem makes the exit status 1: what `--adopt` was asked to do is none."""
    return problem.severity == "error" or (strict and problem.reason != "Adopted")


def collect_problems(
    inputs: Inputs, translation: Translation, others: Iterable[Problem] = ()
) -> list[Problem]:
    """Problems of decoding and of translation, by file and line; errors of one place before its warnings."""
    found = [*inputs.problems, *translation.problems, *others]
    return sorted(dict.fromkeys(found), key=_place)


def _place(problem: Problem) -> tuple[str, int, bool]:
    source = problem.source
    return (source.file, source.line, problem.severity != "error") if source else ("", 0, False)


def describe_problem(problem: Problem) -> dict[str, Any]:
    """A problem as plain values; `text` is what a status condition says."""
    named = problem.object
    return {
        "file": problem.source.file if problem.source else None,
        "line": problem.source.line if problem.source else None,
        "object": {"kind": named.kind, "namespace": named.namespace, "name": named.name}
        if named
        else None,
        "path": problem.path,
        "reason": problem.reason,
        "message": problem.message,
        "hint": problem.hint,
        "severity": problem.severity,
        "text": problem.text(),
        "page": page_of(problem.reason),
    }


def summarise(inputs: Inputs, problems: Sequence[Problem]) -> str:
    """The last line: how much was read and what came of it."""
    read = f"{_count(inputs.reading.objects, 'object')} in {_count(inputs.reading.files, 'file')}"
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    reported = [_count(n, word) for n, word in ((errors, "problem"), (warnings, "warning")) if n]
    more = ask_for_more(sorted(problems, key=lambda one: one.severity != "error"))
    message = f"{', '.join(reported) or 'no problems'} ({read})"
    return f"{message}; more about it: {more}" if more else message


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
