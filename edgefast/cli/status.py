"""`edgefast status`: one screen of a proxy or a cluster: objects, problems and present traffic.

In: an admin address, or a kubeconfig.
Out: tables, YAML or JSON; with `--watch`, repeated until Ctrl-C. Rates cover the time between two
readings of the proxies' counters. Exit status 0 when all is well, 1 when a problem exists, 2 when
no proxy or cluster is reachable.
Must never: write to the proxy or the cluster.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from edgefast.cli.counters import measure
from edgefast.cli.live import ClusterView, LiveError, Source, Where, cluster_options, open_cluster
from edgefast.cli.options import DEFAULT_ADMIN, Format, output_option
from edgefast.cli.output import terminal_width, write_value
from edgefast.cli.show_status import render_screen
from edgefast.cli.status_model import StatusReport
from edgefast.cli.status_proxy import ProxySource, is_proxy
from edgefast.httpd.address import parse_address

#: A cursor's way home, the end of a line and the rest of the screen (ECMA-48 CUP, EL, ED).
_HOME, _CLEAR_LINE, _CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"


@click.command("status")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show all namespaces of a cluster.")
@click.option(
    "-n", "--namespace", help="Show one namespace of a cluster.  [default: the kubeconfig's]"
)
@cluster_options
@click.option(
    "--admin",
    metavar="ADDRESS",
    help="Admin address of a proxy, or of the controller of a cluster. off asks neither.  "
    f"[default: {DEFAULT_ADMIN}]",
)
@click.option("--watch", "-w", is_flag=True, help="Refresh until Ctrl-C.")
@click.option(
    "--interval",
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0.0, max=3600.0),
    help="Time between two readings. 0 reads once and shows no rates.",
)
@click.option(
    "--most",
    default=50,
    show_default=True,
    type=click.IntRange(min=0),
    help="Rows to show of each table. 0 shows all.",
)
@output_option("table")
@click.pass_context
def status(
    ctx: click.Context,
    all_namespaces: bool,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    admin: str | None,
    watch: bool,
    interval: float,
    most: int,
    output: Format,
) -> None:
    """Show Gateways, routes, proxies and problems of a proxy or a cluster.

    --admin selects a proxy. -A, -n, --kubeconfig and --context select a cluster. Without these options, the command shows the
    proxy on this machine if one runs, and otherwise the cluster of the kubeconfig.

    \b
    Examples:
      # Show the proxy on this machine, or the cluster of the kubeconfig
      edgefast status
      # Show all namespaces of a cluster
      edgefast status -A
      # Refresh every five seconds
      edgefast status --watch --interval 5
    """
    if watch and not interval:
        raise click.UsageError("--watch needs an --interval")
    if all_namespaces and namespace:
        raise click.UsageError("pass either -A or -n")
    requested = all_namespaces or namespace or kubeconfig or context
    with _open_source(
        admin,
        bool(requested),
        Where(kubeconfig=kubeconfig, context=context),
        namespace,
        all_namespaces,
    ) as source:
        if watch:
            with contextlib.suppress(KeyboardInterrupt):
                _watch(source, interval, most, output)
            return
        screen = _look_once(source, interval)
    _write(screen, most, output)
    ctx.exit(1 if has_problems(screen) else 0)


def has_problems(screen: StatusReport) -> bool:
    """Tell whether something is wrong; warnings are not."""
    return any(one.severity == "error" for one in screen.problems)


@contextlib.contextmanager
def _open_source(
    admin: str | None, cluster: bool, where: Where, namespace: str | None, everywhere: bool
) -> Iterator[Source]:
    """Open a proxy, or a cluster."""
    address = _parse(admin or DEFAULT_ADMIN)
    if not cluster and address:
        found = False
        try:
            found = is_proxy(address)
        except LiveError:
            if admin:  # it was named: nothing else is meant
                raise
        if found:
            yield ProxySource(address)
            return
    try:
        opened = open_cluster(msgspec.structs.replace(where, admin=address))
        try:
            yield opened.watch(namespace, everywhere=everywhere)
        finally:
            opened.close()
    except LiveError as error:
        if cluster or not address:
            raise
        message = (
            f"no proxy answers at {address} (`edgefast run` starts one, --admin names another)"
        )
        raise LiveError(f"{message}, and no cluster can be read: {error.message}") from None


def _parse(admin: str) -> str:
    """Return the address, "" for none."""
    try:
        found = parse_address(admin)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--admin") from None
    return str(found) if found is not None else ""


def _look_once(source: Source, interval: float) -> StatusReport:
    if not interval:
        return source.look().screen
    before = ClusterView(screen=StatusReport(source=""), pages=source.count())
    time.sleep(interval)
    return _complete(before, source.look())


def _complete(before: ClusterView, now: ClusterView) -> StatusReport:
    """Return a screen with the traffic since the sight before."""
    times = [
        page.at - before.pages[name].at for name, page in now.pages.items() if name in before.pages
    ]
    if not times:
        return now.screen
    return msgspec.structs.replace(
        now.screen,
        seconds=round(sum(times) / len(times), 3),
        traffic=measure(before.pages, now.pages),
    )


def _watch(source: Source, interval: float, most: int, output: Format) -> None:
    """Write a screen after each interval; one that cannot be had is told, and the next one is tried."""
    before: ClusterView | None = None
    due = time.monotonic()
    while True:
        try:
            now = source.look()
            screen = _complete(before, now) if before is not None else now.screen
            before = now
        except LiveError as error:
            screen = StatusReport(source=f"cannot be read: {error.message}")
        _redraw(screen, most, output)
        # A look that takes longer than the interval does not make the next ones come without a pause.
        due = max(due + interval, time.monotonic() + interval / 4)
        time.sleep(due - time.monotonic())


def _redraw(screen: StatusReport, most: int, output: Format) -> None:
    if output == "json":
        click.echo(msgspec.json.encode(screen))  # one document in each line
    elif output == "yaml":
        click.echo("---")
        _write(screen, most, output)
    elif not sys.stdout.isatty():
        _write(screen, most, output)
        click.echo()
    else:
        size = shutil.get_terminal_size()
        lines = list(render_screen(screen, most=most, width=size.columns))
        if len(lines) >= size.lines:
            left = len(lines) - size.lines + 2
            lines = [*lines[: size.lines - 2], f"... and {left} more lines"]
        click.echo(
            _HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_REST, nl=False
        )


def _write(screen: StatusReport, most: int, output: Format) -> None:
    if output != "table":
        write_value(msgspec.to_builtins(screen), output)
        return
    for line in render_screen(screen, most=most, width=terminal_width(), wrap=True):
        click.echo(line)
