"""`edgefast problem`: the meaning of a reason, with an example and the fix.

In: reasons, as in messages and conditions.
Out: their pages on standard output, the same as in docs/problems; without an argument, all reasons
with a sentence each. Exit status 2 for an unknown reason.
Must never: need a file, network or cluster.
"""

from __future__ import annotations

import click

from edgefast.cli.output import write_table
from edgefast.diagnostics.problem import did_you_mean
from edgefast.diagnostics.reasons.catalogue import PAGES
from edgefast.explain.reason_page import first_sentence, render_reason


@click.command()
@click.argument(
    "reasons",
    nargs=-1,
    metavar="[REASON]...",
    shell_complete=lambda _, __, start: [one for one in PAGES if one.startswith(start)],
)
def problem(reasons: tuple[str, ...]) -> None:
    """Explain a reason of a problem or status condition: cause, effect and fix.

    \b
    Examples:
      # List all reasons
      edgefast problem
      # Explain one reason
      edgefast problem NotSupported
      # Explain two reasons
      edgefast problem RefNotPermitted BackendNotFound
    """
    if not reasons:
        rows = [[word, first_sentence(page)] for word, page in PAGES.items()]
        write_table(["REASON", "MEANING"], rows)
        return
    folded = {word.casefold(): word for word in PAGES}
    pages = []
    for given in reasons:
        word = folded.get(given.casefold())
        if word is None:
            hint = did_you_mean(given, PAGES)
            listed = "edgefast problem lists all"
            raise click.UsageError(f'no reason "{given}" ({listed}){", " + hint if hint else ""}')
        pages.append(render_reason(PAGES[word], links=False))
    click.echo("\n".join(pages), nl=False)
