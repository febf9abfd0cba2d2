"""`edgefast status`: classes, Gateways, listeners and routes of a cluster with their problems, through a kubeconfig.

In: a kubeconfig, a namespace or `-A`. Out: tables, or JSON. What proxies serve is asked of the controller's admin server
where that can be reached (`kubectl port-forward` leads to it), and left out where not. Exit status 0 when all is well, 1
when something has a problem, 2 when the cluster cannot be asked. Must never: write anything to the cluster.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from controller.cli.overview import (
    CLASS_HEADER,
    GATEWAY_HEADER,
    LISTENER_HEADER,
    PROBLEM_HEADER,
    ROUTE_HEADER,
    Overview,
    make_overview,
)
from edgefast.daemon.address import Address, parse_address

_PROXY_HEADER = ("FLEET", "PROXY", "CONNECTED", "VERSION", "STATE")
_ADMIN = "127.0.0.1:19000"
_ADMIN_SECONDS = 2.0


def _address(_: click.Context, parameter: click.Parameter, value: str) -> Address | None:
    try:
        return parse_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


@click.command()
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option("-n", "--namespace", help="Namespace.  [default: the kubeconfig's]")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Kubeconfig. Default: $KUBECONFIG, or ~/.kube/config.",
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option(
    "--admin",
    default=_ADMIN,
    show_default=True,
    metavar="ADDRESS",
    callback=_address,
    help="The controller's admin server, for proxies and versions; off does not ask.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def status(
    all_namespaces: bool,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    admin: Address | None,
    output: str,
) -> None:
    """Show Gateways and routes of a cluster, and what is wrong with them."""
    from controller.kube.access import AccessError
    from controller.kube.errors import ApiError

    try:
        overview = asyncio.run(_read(kubeconfig, context, namespace, all_namespaces))
    except (AccessError, ApiError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    fleets = _ask_admin(admin)
    if output == "json":
        _write_json(overview, fleets)
    else:
        _write_tables(overview, fleets)
    sys.exit(1 if overview.problems else 0)


async def _read(
    kubeconfig: Path | None, context: str | None, namespace: str | None, everywhere: bool
) -> Overview:
    from controller.kube.apis import APIS
    from controller.kube.client import Kube

    version = "gateway.networking.k8s.io/v1"
    async with await Kube.open(kubeconfig, context) as kube:
        where = None if everywhere else namespace or kube.namespace
        classes, gateways, routes = await asyncio.gather(
            kube.list_all(APIS[version, "GatewayClass"]),
            kube.list_all(APIS[version, "Gateway"], where),
            kube.list_all(APIS[version, "HTTPRoute"], where),
        )
    return make_overview(classes, gateways, routes)


def _ask_admin(address: Address | None) -> list[dict[str, Any]] | None:
    """Return the fleets as the controller sees them, None when it cannot be asked."""
    if address is None:
        return None
    connection = http.client.HTTPConnection(address.host, address.port, timeout=_ADMIN_SECONDS)
    try:
        connection.request("GET", "/fleets")
        answer = connection.getresponse()
        body = json.loads(answer.read()) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    # A proxy's admin server may be at this address as well; it knows no fleets.
    return body if isinstance(body, list) else None


def _write_json(overview: Overview, fleets: list[dict[str, Any]] | None) -> None:
    def rows(header: Sequence[str], values: Sequence[Sequence[str]]) -> list[dict[str, str]]:
        names = [name.lower() for name in header]
        return [dict(zip(names, row, strict=True)) for row in values]

    value: dict[str, Any] = {
        "classes": rows(CLASS_HEADER, overview.classes),
        "gateways": rows(GATEWAY_HEADER, overview.gateways),
        "listeners": rows(LISTENER_HEADER, overview.listeners),
        "routes": rows(ROUTE_HEADER, overview.routes),
        "problems": rows(PROBLEM_HEADER, _problem_rows(overview)),
    }
    if fleets is not None:
        value["fleets"] = fleets
    click.echo(json.dumps(value, indent=2))


def _write_tables(overview: Overview, fleets: list[dict[str, Any]] | None) -> None:
    tables: list[tuple[Sequence[str], Sequence[Sequence[str]]]] = [
        (CLASS_HEADER, overview.classes),
        (GATEWAY_HEADER, overview.gateways),
        (LISTENER_HEADER, overview.listeners),
        (ROUTE_HEADER, overview.routes),
        (_PROXY_HEADER, _proxy_rows(fleets or [])),
        (PROBLEM_HEADER, _problem_rows(overview)),
    ]
    shown = [(header, rows) for header, rows in tables if rows]
    for index, (header, rows) in enumerate(shown):
        if index:
            click.echo()
        _write_table(header, rows)
    if not overview.gateways:
        click.echo("no Gateway here; -A shows those of all namespaces", err=True)


def _problem_rows(overview: Overview) -> list[tuple[str, ...]]:
    return [(one.object, one.type, one.reason, one.message) for one in overview.problems]


def _proxy_rows(fleets: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for fleet in fleets:
        for node in fleet["nodes"]:
            if node["refused"]:
                state = f"refuses {'; '.join(node['refused'])}"
            else:
                state = "up to date" if node["version"] == fleet["version"] else "behind"
            connected = "yes" if node["connected"] else "no"
            rows.append(
                (fleet["fleet"], node["name"], connected, node["version"][:8] or "-", state)
            )
    return rows


def _write_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # Messages hold what users wrote: nothing of it may steer a terminal.
    texts = [[_printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
