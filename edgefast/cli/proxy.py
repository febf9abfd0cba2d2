"""`edgefast proxy`: serves the tables that a controller sends, and continues without the controller.

In: the controller's address and this proxy's credentials, addresses.
Out: traffic; the access log on standard output, everything else on standard error. Exit status 0
after a drain, 2 wrong usage, 128 + signal after a forced end. gRPC is imported only when this
command runs.
Must never: contain logic of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec
import uvloop

from edgefast.cli.serving import check_start, give_up, in_words, leave, serving_options
from edgefast.daemon.logs import start_logging
from edgefast.daemon.process import share_interpreter
from edgefast.proxy.admin.servers import (
    ServerTaken,
    bind_servers,
    make_orders,
    make_servers,
)
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.sockets.inherited import receive_sockets
from edgefast.xds.credentials import CredentialFiles
from edgefast.xds.limits import IDENTITY_LIMIT
from edgefast.xds.target import make_target

if TYPE_CHECKING:
    from edgefast.proxy.pipelines.managed import StreamSettings

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--xds",
    "server",
    required=True,
    metavar="HOST:PORT",
    help="Address of the controller. If HOST has several addresses, the first that answers is "
    "used.",
)
@click.option(
    "--ca",
    required=True,
    type=_FILE,
    metavar="FILE",
    help="CA certificates that sign the controller's certificate, PEM.",
)
@click.option("--cert", type=_FILE, metavar="FILE", help="Certificate chain of this proxy, PEM.")
@click.option("--key", type=_FILE, metavar="FILE", help="Private key of the certificate, PEM.")
@click.option(
    "--token",
    type=_FILE,
    metavar="FILE",
    help="File with a ServiceAccount token, sent instead of or in addition to a certificate.",
)
@click.option(
    "--server-name",
    metavar="NAME",
    default="",
    help="Name that the controller's certificate must contain.  [default: HOST]",
)
@click.option(
    "--node", required=True, metavar="NAME", help="Name of this proxy, such as the name of its pod."
)
@serving_options
def proxy(
    server: str,
    ca: Path,
    cert: Path | None,
    key: Path | None,
    token: Path | None,
    server_name: str,
    node: str,
    settings: ProxySettings,
) -> None:
    """Run a proxy that gets its configuration from a controller.

    edgefast reads the credential files again for each connection, so you can replace them at any time.

    \b
    Examples:
      # Authenticate with a client certificate
      edgefast proxy --xds controller.example:18000 --ca ca.crt --cert tls.crt --key tls.key --node proxy-1
      # Authenticate with a ServiceAccount token
      edgefast proxy --xds controller.example:18001 --ca ca.crt --token token --node proxy-1
      # Keep the last good configuration on disk for a start without the controller
      edgefast proxy --xds controller.example:18000 --ca ca.crt --cert tls.crt --key tls.key --node proxy-1 --state-dir state
    """
    if (cert is None) != (key is None):
        raise click.UsageError("pass --cert and --key together")
    if cert is None and token is None:
        raise click.UsageError(
            "pass --cert and --key, or --token; the controller requires one of them"
        )
    if not 0 < len(node) <= IDENTITY_LIMIT:
        raise click.BadParameter(f"1 to {IDENTITY_LIMIT} characters", param_hint="--node")
    try:
        target = make_target(server)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--xds") from None
    # What gRPC's own threads have to say is said better by the client.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from edgefast.proxy.pipelines.managed import StreamSettings
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed: pip install 'edgefast[xds]'"
        ) from None
    start_logging(settings.log_level)
    share_interpreter()
    stream = StreamSettings(
        server=target,
        node=node,
        files=CredentialFiles(ca, cert, key, token),
        server_name=server_name,
    )
    settings = msgspec.structs.replace(settings, ready_when_empty=True, pod=node)
    check_start(settings)
    why = ""
    try:
        with in_words():
            uvloop.run(_serve(stream, settings))
    except* ServerTaken as group:
        why = "; ".join(str(one) for one in group.exceptions)
    if why:  # not in a handler: Python 3.11.2 wraps what `except*` raises in a group
        give_up(why)


async def _serve(stream: StreamSettings, settings: ProxySettings) -> NoReturn:
    from edgefast.proxy.pipelines.managed import Managed

    inherited = receive_sockets(os.environ)
    bound = bind_servers(settings, inherited)
    agent = Agent(settings, inherited=inherited)
    servers = make_servers(agent, bound)
    managed = Managed(agent, stream)
    orders = make_orders(agent, servers)
    serving = (*servers.values(), *((orders,) if orders is not None else ()))
    leave(await agent.run(managed.run, *(one.run for one in serving)))
