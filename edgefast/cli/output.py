"""Output formats: tables for people, YAML and JSON for programs.

In: rows or plain values.
Out: text on standard output; colour only for a terminal (and without NO_COLOR).
Must never: decide which data is shown.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import click

from edgefast.cli.options import Format
from edgefast.diagnostics.problem import Problem

#: Characters that a column of a table keeps on a narrow terminal.
_NARROWEST = 10
#: The first column of a line of text, and the gap behind it.
_COLUMN = re.compile(r" {0,8}\S{1,16} {2,16}(?=\S)")

#: Words that a reader looks for first, and the colour they get on a terminal.
COLOURS = {
    "error": "red",
    "False": "red",
    "ejected": "red",
    "limited": "red",
    "shadow": "yellow",
    "warning": "yellow",
    "True": "green",
}


def write_value(value: Any, output: Format, *, err: bool = False) -> None:
    """Write one plain value (dict, list, str, number) as YAML or JSON; JSON is indented and sorted as given. `err`: to standard error."""
    if output == "json":
        import orjson

        click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2), err=err)
        return
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    click.echo(
        yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120),
        nl=False,
        err=err,
    )


def write_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write rows in columns, each as wide as its widest cell; on a terminal that is narrower, wide cells are wrapped."""
    for line in render_table(header, wrap_rows(header, rows, terminal_width())):
        click.echo(line)


def terminal_width() -> int:
    """Return the columns of the terminal, 0 if standard output is not a terminal: programs read whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def wrap_line(line: str, width: int) -> list[str]:
    """Return a line as lines of at most `width` characters, indented below the first (0: as it is); words stay whole."""
    if not width or len(line) <= width:
        return [line]
    column = _COLUMN.match(line)  # "gained   any host ...": below the second column
    at = column.end() if column else len(line) - len(line.lstrip()) + 2
    return textwrap.wrap(
        line, width, subsequent_indent=" " * at, break_long_words=False, break_on_hyphens=False
    )


def wrap_rows(
    header: Sequence[str], rows: Sequence[Sequence[object]], width: int
) -> Sequence[Sequence[object]]:
    """Return the rows with cells of the widest columns continued in rows below, so that lines have at most `width` characters."""
    texts = [[escape_control(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    if not width or excess <= 0:
        return rows
    for narrowest in (
        _NARROWEST,
        1,
    ):  # columns become very narrow only if lines are too long otherwise
        least = [max(len(title), narrowest) for title in header]
        while excess > 0:
            at = max(range(len(widths)), key=lambda one: widths[one] - least[one])
            if widths[at] <= least[at]:
                break
            widths[at] -= 1
            excess -= 1
    wrapped: list[list[object]] = []
    for row in texts:
        cells = [textwrap.wrap(cell, size) or [""] for cell, size in zip(row, widths, strict=True)]
        wrapped += [list(one) for one in itertools.zip_longest(*cells, fillvalue="")]
    return wrapped


def render_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], width: int = 0
) -> Iterator[str]:
    """Give the lines of a table; with `width`, lines are cut there."""
    texts = [[escape_control(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    coloured = has_colour()
    for index, row in enumerate([list(header), *texts]):
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)] + [
            row[-1]
        ]
        if width:
            cells = _cut(cells, width)
        if coloured:
            cells = [paint(cell, bold=index == 0) for cell in cells]
        yield "  ".join(cells).rstrip()


def _cut(cells: Sequence[str], width: int) -> list[str]:
    """Return the cells that fit into a line, the last of them cut."""
    kept: list[str] = []
    for cell in cells:
        if width <= 0:
            break
        kept.append(cell[:width])
        width -= len(cell) + 2
    return kept


def paint(cell: str, bold: bool = False) -> str:
    """A cell in the colour of its word."""
    return click.style(cell, fg=COLOURS.get(cell.strip()), bold=bold or None)


def has_colour() -> bool:
    """True when standard output is a terminal and the user has not said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def escape_control(text: str) -> str:
    """Text as one line without control characters: object names and messages come from files of others."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def render_line(problem: Problem) -> str:
    """One line for a terminal: place, object and path, what is wrong; warnings say so at the end."""
    source = f"{problem.source} " if problem.source else ""
    text = escape_control(problem.text())
    note = " (warning)" if problem.severity == "warning" else ""
    if not has_colour():
        return source + text + note
    colour = "yellow" if note else "red"
    head, separator, rest = text.partition(": ")
    return click.style(source, dim=True) + click.style(head, fg=colour) + separator + rest + note
