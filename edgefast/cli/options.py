"""Options that several subcommands share, declared once with one name, meaning and help text.

In: nothing.
Out: click decorators. A path that does not exist is wrong usage.
Must never: read the files that the options name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

Format = Literal["table", "yaml", "json"]
F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_ADMIN = "127.0.0.1:19000"

_PATH = click.Path(exists=True, allow_dash=True, path_type=Path)


def _make_files_option(*, required: bool) -> Callable[[F], F]:
    return click.option(
        "-f",
        "--file",
        "files",
        required=required,
        multiple=True,
        metavar="FILE|DIR",
        type=_PATH,
        help="YAML or JSON file, or a folder of such files. Repeatable. - reads standard input.",
    )


files_option = _make_files_option(required=True)


def path_options(command: F) -> F:
    """Add `-f` and the same files as arguments; the command gets both, and has to join them."""
    argument = click.argument("paths", nargs=-1, metavar="[FILE|DIR]...", type=_PATH)
    return argument(_make_files_option(required=False)(command))


def join_files(files: tuple[Path, ...], paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the files of `path_options`; without any, raises UsageError."""
    if not files and not paths:
        raise click.UsageError("pass -f FILE or -f DIR, the files to read (- is standard input)")
    return (*files, *paths)


config_option = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the EdgeGateway configuration (config.gateway.edge.io/v1alpha1).",
)

adopt_option = click.option(
    "--adopt",
    is_flag=True,
    help="Accept every GatewayClass, serve objects of Envoy Gateway, and ignore parameters of other projects.",
)

ignore_option = click.option(
    "--ignore-foreign-policies",
    is_flag=True,
    help="Serve the targets of other projects' access policies WITHOUT these policies. By "
    "default the targets answer 500.",
)

cluster_option = click.option(
    "--cluster",
    is_flag=True,
    help="Translate as a controller does: one fleet for each Gateway or merged class.",
)

admin_option = click.option(
    "--admin",
    default=DEFAULT_ADMIN,
    show_default=True,
    metavar="ADDRESS",
    help="Admin address of the proxy.",
)


def output_option(default: Format) -> Callable[[F], F]:
    """`-o table|yaml|json` with the default that suits the subcommand."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "yaml", "json"]),
        default=default,
        show_default=True,
        help="Output format.",
    )
