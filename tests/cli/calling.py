"""Calling the command line in this process: arguments in, exit status and the two outputs out."""

from __future__ import annotations

from dataclasses import dataclass

from click.testing import CliRunner

from edgefast.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """What a call left behind."""

    status: int
    out: str
    err: str


def call(*arguments: str, stdin: str | None = None) -> Outcome:
    """Run `edgefast` with these arguments; an exception that is no exit is raised here."""
    done = CliRunner().invoke(main, list(arguments), input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Outcome(done.exit_code, done.stdout, done.stderr)
