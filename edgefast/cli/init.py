"""`edgefast init`: writes a folder with a first configuration: Gateway, HTTPRoute, Service, policies, README.

In: the name of a folder. The files are in starter/ beside this module.
Out: the files, and the next commands on standard output. Exit status 2 if a file exists already; nothing
is written then.
Must never: overwrite a file.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

__all__ = ["init", "list_starter_files"]

_STARTER = Path(__file__).with_name("starter")
_DEFAULT = "gateway"


@click.command()
@click.argument(
    "folder",
    metavar="[DIR]",
    default=_DEFAULT,
    type=click.Path(file_okay=False, path_type=Path),
)
def init(folder: Path) -> None:
    """Write a first configuration into a folder: Gateway, route, Service, policies and a README.

    DIR is created if it does not exist. Without DIR the folder is `gateway`.

    \b
    Examples:
      # Write the folder gateway
      edgefast init
      # Write the folder shop
      edgefast init shop
      # Write into the working folder
      edgefast init .
    """
    files = list_starter_files()
    existing = [one.name for one in files if os.path.lexists(folder / one.name)]
    if existing:
        raise click.UsageError(
            f"{folder} already has {', '.join(existing)}; edgefast init overwrites no file: "
            "pass another folder, or move these files"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in files:
            with (folder / one.name).open("x") as target:  # also a file of this moment stays
                target.write(one.read_text())
            click.echo(f"wrote {folder / one.name}")
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    shown = shlex.quote(str(folder))
    click.echo(
        "\nStart a backend on port 3000, for example: python3 -m http.server 3000 --bind 127.0.0.1\n"
        "Then:\n"
        f"  edgefast check -f {shown}\n"
        f"  edgefast run -f {shown}\n"
        "  curl -i http://localhost:8080/"
    )


def list_starter_files() -> list[Path]:
    """Return the files that `edgefast init` writes, by name."""
    return sorted(_STARTER.iterdir())
