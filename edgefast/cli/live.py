"""Live: the interface through which explain, diff and status read a cluster.

In: `Where`, from the command line.
Out: a `Cluster`, created by the provider of the entry-point group `edgefast.live` (the controller
registers one). It returns objects as the controller's compiler reads them, the proxies' reports,
and the screen of `edgefast status`. Every error on the way to a cluster is a `LiveError`: one line,
exit status 2.
Must never: import a provider, or depend on the way it reads a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
import msgspec

from edgefast import ir
from edgefast.api.snapshot import Key, Snapshot
from edgefast.cli.counters import Page
from edgefast.cli.status_model import StatusReport
from edgefast.diagnostics.problem import Problem
from edgefast.translate.settings import Settings

GROUP = "edgefast.live"
F = TypeVar("F", bound=Callable[..., Any])


class LiveError(click.ClickException):
    """A cluster cannot be asked; the text says why and what to do."""

    exit_code = 2


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster, and which controller of it."""

    kubeconfig: Path | None = None
    context: str | None = None
    controller: str = ""  # "NAMESPACE" or "NAMESPACE/RELEASE"; "": the only one
    config: Path | None = None  # read instead of the controller's ConfigMap
    admin: str = ""  # of the controller, for `look`; "": not asked
    ingresses: bool = False  # Ingresses too, without a controller and whatever its configuration


class Objects(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a controller would translate now."""

    snapshot: Snapshot
    settings: Settings
    server: str  # "https://192.0.2.1:6443"
    config: str  # where the settings are from: "ConfigMap edge-gateway-system/edge-gateway-config"
    namespace: str  # of objects that name none: the kubeconfig's
    addresses: Mapping[Key, tuple[str, ...]]  # of Gateways, as their statuses say
    problems: tuple[Problem, ...] = ()  # objects that cannot be decoded
    unread: tuple[
        str, ...
    ] = ()  # Secrets and ConfigMaps that may not be read, and why: taken for sound


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy of a fleet."""

    name: str  # "namespace/pod"
    table: str = ""  # version of the table that it serves; "": not known
    why_not: str = ""  # why it could not be asked
    stores: Mapping[tuple[str, str], int] = {}  # troubles with places of counters (counters.Page)


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """One look at everything that `edgefast status` shows."""

    screen: StatusReport
    pages: Mapping[str, Page]  # by proxy


class Source(Protocol):
    """What `edgefast status` looks at: a proxy or a cluster."""

    def look(self) -> ClusterView:
        """Read everything."""

    def count(self) -> Mapping[str, Page]:
        """Read the counters of proxies alone."""


class Cluster(Protocol):
    """A cluster; methods raise LiveError."""

    def read_objects(self) -> Objects:
        """Read every object that counts, and the controller's configuration."""

    def complete(self, objects: Objects, snapshot: Snapshot) -> Objects:
        """Return `objects` with another snapshot and what that refers to besides."""

    def ask_proxies(self, fleet: ir.Infra) -> tuple[Proxy, ...]:
        """Ask the proxies of a fleet which table they serve. LiveError when they cannot be listed."""

    def watch(self, namespace: str | None, *, everywhere: bool) -> Source:
        """Return what `edgefast status` looks at; namespace None is the kubeconfig's."""

    def close(self) -> None:
        """Close all connections."""


def open_cluster(where: Where) -> Cluster:
    """Return the cluster; LiveError when nobody provides one. Nothing is asked yet."""
    from importlib.metadata import entry_points  # slow to import, seldom needed

    for point in entry_points(group=GROUP):
        try:
            provide: Callable[[Where], Cluster] = point.load()
            return provide(where)
        except ModuleNotFoundError as error:
            message = f"{error.name} is not installed: pip install 'edgefast[{point.name}]'"
            raise LiveError(message) from None
    raise LiveError("the package for clusters is not installed: pip install 'edgefast[controller]'")


def cluster_options(command: F) -> F:
    """`--kubeconfig`, `--context`: which cluster."""
    for option in (
        click.option("--context", help="Context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Kubeconfig file.  [default: $KUBECONFIG or ~/.kube/config]",
        ),
    ):
        command = option(command)
    return command


def live_options(command: F) -> F:
    """`--live` and what belongs to it."""
    controller = click.option(
        "--controller",
        default="",
        metavar="NAMESPACE[/RELEASE]",
        help="Controller to read the configuration from. Required if the cluster has several.",
    )
    live = click.option("--live", is_flag=True, help="Read the objects of a cluster.")
    return live(cluster_options(controller(command)))


def check_live(live: bool, **given: object) -> None:
    """Refuse options that mean nothing without `--live`."""
    wrong = [f"--{name}" for name, value in given.items() if value and not live]
    if wrong:
        raise click.UsageError(f"{', '.join(wrong)}: only with --live")
