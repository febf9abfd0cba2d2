"""Omitted objects: objects with errors that an answer does not contain, reported beside the answer.

In: the owner of the problems, the problems of decoding.
Out: the first problems on standard error, each with its position, and a reference to the rest.
Warnings are omitted, except the line about the effect of `--adopt`. A file that cannot be parsed
ends the call.
Must never: decide how an object is treated.
"""

from __future__ import annotations

from collections.abc import Iterable

import click

from edgefast.cli.output import escape_control
from edgefast.diagnostics.problem import Problem, ask_for_more

_SHOWN = 3


def refuse_unparsed(problems: Iterable[Problem]) -> None:
    """End the call with exit status 2 for a file that cannot be parsed: its missing part may decide the answer."""
    found = [one.line() for one in problems]
    if not found:
        return
    for line in found[:_SHOWN]:
        click.echo(escape_control(line), err=True)
    rest = f"and {len(found) - _SHOWN} more; " if len(found) > _SHOWN else ""
    click.echo(f"{rest}no answer: a file cannot be parsed; correct or remove it", err=True)
    raise click.exceptions.Exit(2)


def report_omitted(owner: str, problems: Iterable[Problem]) -> None:
    """Write the errors; `owner` is a file or "the files"."""
    errors = [one for one in problems if one.severity == "error"]
    if not errors:
        return
    counted = "1 mistake" if len(errors) == 1 else f"{len(errors)} mistakes"
    click.echo(f"{owner}: {counted}; objects with an error are not used", err=True)
    for one in errors[:_SHOWN]:
        click.echo(f"  {escape_control(one.line())}", err=True)
    rest = f"and {len(errors) - _SHOWN} more; " if len(errors) > _SHOWN else ""
    click.echo(f"  {rest}more about it: {ask_for_more(errors)}", err=True)


def report_adopted_objects(problems: Iterable[Problem]) -> None:
    """Write what was taken for ours and what was left aside, once."""
    for line in dict.fromkeys(one.line() for one in problems if one.reason == "Adopted"):
        click.echo(escape_control(line), err=True)
