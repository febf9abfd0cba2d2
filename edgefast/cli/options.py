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

files_option = click.option(
    "-f",
    "--file",
    "files",
    required=True,
    multiple=True,
    metavar="FILE|DIR",
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
    help="YAML or JSON file, or a folder of such files. Repeatable. - reads standard input.",
)

config_option = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the EdgeGateway configuration (config.gateway.edge.io/v1alpha1).",
)

adopt_option = click.option(
    "--adopt",
    is_flag=True,
    help="Accept every GatewayClass, and ignore parameters of other projects.",
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
