"""`edgefast install`: the chart's objects without helm: printed, or applied to a cluster.

In: values as for helm (`--values`, `--set`), a kubeconfig. Out: YAML with `--dry-run`, else one line per step. Exit status 1
when values are wrong or the cluster refuses, 2 for wrong usage. A release that helm manages is helm's.
Must never: apply anything when any value is wrong.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from controller.manifests.load import load_install
from controller.manifests.naming import DEFAULT_NAMESPACE, DEFAULT_RELEASE, Release
from controller.manifests.objects import Install, Manifest
from controller.manifests.render import render_install, render_namespace

F = TypeVar("F", bound=Callable[..., Any])


def release_options(command: F) -> F:
    """`--release`, `--namespace`, `--kubeconfig`, `--context`: which installation, where."""
    for option in (
        click.option("--context", help="Context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Kubeconfig file.  [default: $KUBECONFIG or ~/.kube/config]",
        ),
        click.option(
            "-n",
            "--namespace",
            default=DEFAULT_NAMESPACE,
            show_default=True,
            help="Namespace of the controller.",
        ),
        click.option(
            "--release",
            "release_name",
            default=DEFAULT_RELEASE,
            show_default=True,
            help="Name of the installation. A name other than the default becomes the prefix of "
            "its objects.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@release_options
@click.option(
    "-f",
    "--values",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, allow_dash=True, dir_okay=False, path_type=Path),
    help="Values file, as for helm. Repeatable. - reads standard input.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set one value. Repeatable."
)
@click.option(
    "--set-string",
    "texts",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one value as a string. Repeatable.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the objects without a connection to a cluster."
)
@click.option("--skip-crds", is_flag=True, help="Do not install the CRDs of edgefast.")
@click.option(
    "--timeout",
    default=120.0,
    show_default=True,
    type=click.FloatRange(1, 3600),
    help="Seconds to wait for the certificates and for the controller.",
)
@click.pass_context
def install(
    ctx: click.Context,
    release_name: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    files: tuple[Path, ...],
    settings: tuple[str, ...],
    texts: tuple[str, ...],
    dry_run: bool,
    skip_crds: bool,
    timeout: float,
) -> None:
    """Install or upgrade the controller in a cluster, without helm.

    \b
    Examples:
      # Install into the cluster of the kubeconfig
      edgefast install
      # Print the objects for review
      edgefast install --dry-run
      # Install with two replicas into another namespace
      edgefast install -n gateways --set deployment.replicas=2
    """
    release = make_release(release_name, namespace)
    made, problems = load_install(release, [_read(path) for path in files], settings, texts)
    for problem in problems:
        click.echo(f"{problem.source or 'values'}: {problem.text()}", err=True)
    if made is None:
        ctx.exit(1)
    manifests = render_install(made, crds=not skip_crds)
    if dry_run:
        click.echo(render_yaml([render_namespace(release), *manifests]), nl=False)
        return
    try:
        from controller.cli.rollout import Refused, roll_out
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error}: pip install 'edgefast[controller]'") from None
    try:
        asyncio.run(roll_out(made, manifests, kubeconfig, context, timeout, _write_message))
    except Refused as error:
        click.echo(f"edgefast install: {error}", err=True)
        ctx.exit(1)
    click.echo(_next_steps(made))


def make_release(name: str, namespace: str) -> Release:
    """Return the release; wrong usage when its name is too long."""
    try:
        return Release(name, namespace)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--release") from None


def render_yaml(manifests: list[Manifest]) -> str:
    """Return manifests as one stream of documents, texts of many lines as such."""
    return yaml.dump_all(
        manifests,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
        explicit_start=True,
    )


class _Dumper(yaml.SafeDumper):
    """A dumper without anchors, and with literal blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _read(path: Path) -> tuple[str, bytes]:
    if str(path) == "-":
        return "<stdin>", sys.stdin.buffer.read()
    return str(path), path.read_bytes()


def _write_message(line: str) -> None:
    click.echo(line)


def _next_steps(made: Install) -> str:
    name = made.values.config.edge_gateway.gateway.controller_name
    return f"ready: GatewayClasses with spec.controllerName {name} are served"
