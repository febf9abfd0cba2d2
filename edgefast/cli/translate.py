"""`edgefast translate`: the compiled form of the files.

In: files and a target: `ir` (what proxies serve), `status` (what a controller would write to each
object), `infra` (the fleets it would create).
Out: YAML, JSON or a table on standard output, problems on standard error. The exit status is 0
whenever a result exists; `check` reports problems by exit status.
Must never: print key material.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from edgefast.cli import show
from edgefast.cli.backend_option import backend_option
from edgefast.cli.check import collect_problems
from edgefast.cli.ingressoptions import ingress_options
from edgefast.cli.inputs import read_inputs
from edgefast.cli.omitted_objects import refuse_unparsed
from edgefast.cli.options import (
    Format,
    cluster_option,
    config_option,
    files_option,
    output_option,
)
from edgefast.cli.output import render_line, write_table, write_value
from edgefast.providers.added_backends import AddedBackend
from edgefast.translate.pipeline import translate as translate_objects
from edgefast.translate.settings import IngressSettings

Target = Literal["ir", "status", "infra"]


@click.command()
@click.option(
    "--to",
    "target",
    type=click.Choice(["ir", "status", "infra"]),
    default="ir",
    show_default=True,
    help="Proxy configuration (ir), status conditions (status) or fleet objects (infra).",
)
@cluster_option
@files_option
@config_option
@ingress_options
@backend_option
@output_option("yaml")
def translate(
    target: Target,
    cluster: bool,
    files: tuple[Path, ...],
    config: Path | None,
    ingress: IngressSettings,
    backends: tuple[AddedBackend, ...],
    output: Format,
) -> None:
    """Show the proxy configuration, statuses or fleets that files translate to.

    \b
    Examples:
      # Show the configuration that the proxy serves
      edgefast translate -f examples/quickstart.yaml
      # Show the status conditions of the objects
      edgefast translate -f examples/quickstart.yaml --to status
      # Show the Deployments and Services that a controller creates
      edgefast translate -f examples/kubernetes --cluster --to infra
    """
    inputs = read_inputs(files, config, standalone=not cluster, ingress=ingress, backends=backends)
    refuse_unparsed(inputs.unparsed)
    translation = translate_objects(inputs.reading.snapshot, inputs.settings)
    for problem in collect_problems(inputs, translation):
        click.echo(render_line(problem), err=True)
    if output == "table":
        write_table(*TABLES[target](translation))
    else:
        write_value(VALUES[target](translation), output)


TABLES: dict[Target, Any] = {
    "ir": show.ir_table,
    "status": show.status_table,
    "infra": show.infra_table,
}
VALUES: dict[Target, Any] = {
    "ir": show.ir_value,
    "status": show.status_value,
    "infra": show.infra_value,
}
