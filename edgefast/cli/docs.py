"""`edgefast docs`: prints the pages of docs/ that messages refer to, without a checkout and without a network.

In: names of pages, as in messages (`migrating`, `reference/edgeproxy`); the end of a name is enough where it is unique. Out: their
Markdown on standard output; without a name, all pages with their titles. Exit status 2 for a page that does not exist. The wheel carries the pages in `edgefast/docs`
(setup.py); a checkout has them beside the package. Must never: read a file outside of that folder.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

import edgefast
from edgefast.cli.output import write_table
from edgefast.diagnostics.problem import did_you_mean

_PACKAGE = Path(edgefast.__file__).parent
#: In a wheel, in a checkout.
_FOLDERS = (_PACKAGE / "docs", _PACKAGE.parent / "docs")
_INDEX = "/README"
#: The line for contributors before a generated page.
_MADE = re.compile(r"\A<!-- Made from .*?-->\s*", re.DOTALL)


@click.command()
@click.argument(
    "pages",
    nargs=-1,
    metavar="[PAGE]...",
    shell_complete=lambda _, __, start: [
        one for one in find_pages() if one.startswith(start) and not _is_reason(one)
    ],
)
def docs(pages: tuple[str, ...]) -> None:
    """Print a page of the documentation, or list all pages.

    \b
    Examples:
      # List all pages
      edgefast docs
      # Print the page about migration from other gateways
      edgefast docs migrating
      # Print two pages
      edgefast docs configuration explain
    """
    found = find_pages()
    if not pages:
        rows = [[name, _title(path)] for name, path in found.items() if not _is_reason(name)]
        write_table(["PAGE", "TITLE"], rows)
        return
    texts = []
    for given in pages:
        name = given.partition("#")[0].removeprefix("docs/").removesuffix(".md").strip("/")
        path = _find_page(name.removesuffix(_INDEX), found)
        if path is None:
            hint = did_you_mean(name, [*found, *(page.rpartition("/")[2] for page in found)])
            listed = "edgefast docs lists all"
            raise click.UsageError(f'no page "{given}" ({listed}){", " + hint if hint else ""}')
        texts.append(_MADE.sub("", path.read_text()))
    click.echo("\n".join(texts), nl=False)


def find_pages() -> dict[str, Path]:
    """Return all pages by name; the page of a folder is its README."""
    folder = next((one for one in _FOLDERS if one.is_dir()), _FOLDERS[0])
    names = {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("*.md"))
    }
    return {name.removesuffix(_INDEX): path for name, path in names.items()}


def _find_page(name: str, found: dict[str, Path]) -> Path | None:
    """Return a page by its name, or by the end of it where one page alone ends so ("tracing" for "guides/tracing")."""
    if name in found or not name:
        return found.get(name)
    ends = [page for page in found if page.endswith(f"/{name}")]
    return found[ends[0]] if len(ends) == 1 else None


def _is_reason(name: str) -> bool:
    """Tell whether a page describes a reason: `edgefast problem` lists those."""
    return name.startswith("problems/")


def _title(path: Path) -> str:
    with path.open() as lines:
        return next((line.strip("# \n") for line in lines if line.startswith("# ")), "")
