"""`edgefast diff`: changes for requests between two sets of files, or when files are applied to a cluster.

In: two files or folders; or, with `--live`, files and a kubeconfig.
Out: changes as text, JSON or YAML on standard output, a summary on standard error. Exit status 0:
no request changes. 1: some requests change. 2: wrong usage, an unreachable cluster, or files
without objects on which requests depend. 3: requests lost their backend, or a request that a policy
denied is now allowed.
Must never: change anything.
"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from edgefast.cli.backend_option import backend_option
from edgefast.cli.diff_live import translate_live
from edgefast.cli.ingressoptions import ingress_options
from edgefast.cli.inputs import Inputs, read_inputs
from edgefast.cli.live import Where, check_live, live_options, open_cluster
from edgefast.cli.missing_inputs import find_unknown
from edgefast.cli.omitted_objects import refuse_unparsed, report_adopted_objects, report_omitted
from edgefast.cli.options import (
    Format,
    adopt_option,
    cluster_option,
    config_option,
    ignore_option,
    output_option,
)
from edgefast.cli.output import escape_control, has_colour, terminal_width, wrap_line, write_value
from edgefast.explain import Difference, diff_translations
from edgefast.explain.render_diff import render_difference, summarise_difference
from edgefast.providers.added_backends import FLAG, AddedBackend
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import IngressSettings
from edgefast.translate.translation import Translation

_PATH = click.Path(exists=True, allow_dash=True, path_type=Path)


@click.command("diff")
@click.argument("paths", type=_PATH, nargs=-1, required=True, metavar="OLD NEW | --live FILE...")
@live_options
@click.option(
    "-n",
    "--namespace",
    help="With --live: the namespace of objects without one.  [default: the kubeconfig's]",
)
@config_option
@adopt_option
@ignore_option
@ingress_options
@backend_option
@cluster_option
@output_option("table")
@click.pass_context
def diff_command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    live: bool,
    kubeconfig: Path | None,
    context: str | None,
    controller: str,
    namespace: str | None,
    config: Path | None,
    adopt: bool,
    ignore_foreign_policies: bool,
    ingress: IngressSettings,
    backends: tuple[AddedBackend, ...],
    cluster: bool,
    output: Format,
) -> None:
    """Compare two configurations and show which requests get another answer.

    Compares OLD with NEW. With --live, compares the cluster with the cluster after FILEs are applied.

    Exit status: 0 if nothing changes, 1 if something changes, 3 if access is granted that was denied or a request fails.

    \b
    Examples:
      # Compare two files
      edgefast diff examples/quickstart.yaml examples/canary.yaml
      # Show the effect of a file on the cluster of the kubeconfig
      edgefast diff --live examples/kubernetes/quickstart.yaml
      # Print the difference as JSON
      edgefast diff examples/quickstart.yaml examples/canary.yaml -o json
    """
    check_live(
        live, kubeconfig=kubeconfig, context=context, controller=controller, namespace=namespace
    )
    if adopt and (live or cluster):
        raise click.UsageError("--adopt: not with --live or --cluster")
    if ignore_foreign_policies and (live or cluster):
        raise click.UsageError("--ignore-foreign-policies: not with --live or --cluster")
    if backends and live:
        raise click.UsageError("--backend: not with --live")
    if live:
        where = Where(kubeconfig=kubeconfig, context=context, controller=controller, config=config)
        opened = open_cluster(where)
        try:
            before, after = translate_live(opened, paths, namespace)
        finally:
            opened.close()
    elif len(paths) == 2:
        old, new = (
            read_inputs(
                [one],
                config,
                standalone=not cluster,
                adopt=adopt,
                ignore_foreign_policies=ignore_foreign_policies,
                ingress=ingress,
                backends=backends,
            )
            for one in paths
        )
        before = _translate(paths[0], old, new)
        after = _translate(paths[1], new, old)
    else:
        raise click.UsageError("give OLD and NEW, or --live and files")
    report_adopted_objects((*before.problems, *after.problems))
    found = diff_translations(before, after)
    # A cluster has it all.
    unknown = [] if live else find_unknown(before, after, changes=bool(found.changes))
    for message in unknown:
        click.echo(f"not compared: {escape_control(message)}", err=True)
    if unknown and not found.changes:
        click.echo("pass files or folders with Gateways and routes", err=True)
        ctx.exit(2)
    if output == "table":
        _write(found)
    else:
        write_value(msgspec.to_builtins(found), output)
    click.echo(summarise_difference(found), err=True)
    ctx.exit(3 if found.breaks or found.opens else 1 if found.changes else 0)


def _translate(path: Path, inputs: Inputs, other: Inputs) -> Translation:
    """Translate one side; a `--backend` that only the other side uses is not an error."""
    refuse_unparsed(inputs.unparsed)
    problems = [
        one for one in inputs.problems if not one.path.startswith(FLAG) or one in other.problems
    ]
    report_omitted(str(path), problems)
    return translate(inputs.reading.snapshot, inputs.settings)


def _write(found: Difference) -> None:
    width = terminal_width()
    for line in render_difference(found):
        colour = has_colour() and line.startswith(("opened", "refused", "breaks"))
        for part in wrap_line(line, width):
            click.echo(click.style(part, fg="red") if colour else part)
