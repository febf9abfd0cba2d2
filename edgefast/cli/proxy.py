"""`edgefast proxy`: serves the tables that a controller sends, and goes on serving them when it is gone.

In: the controller's address and this proxy's credentials, addresses. Out: traffic; the access log on standard output,
everything else on standard error. Exit status 0 after a drain, 2 wrong usage, 128 + signal after a forced end.
It holds no logic of its own. gRPC is imported when it runs: help and every other command do without.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec
import uvloop

from edgefast.cli.serving import check_start, give_up, in_words, leave, serving_options
from edgefast.daemon.interpreter import share_interpreter
from edgefast.daemon.logs import start_logging
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
    help="The controller that sends tables; of several addresses of HOST one that answers.",
)
@click.option(
    "--ca",
    required=True,
    type=_FILE,
    metavar="FILE",
    help="Authorities that the controller's certificate is checked against, PEM.",
)
@click.option("--cert", type=_FILE, metavar="FILE", help="This proxy's certificate chain, PEM.")
@click.option("--key", type=_FILE, metavar="FILE", help="Its private key, PEM.")
@click.option(
    "--token",
    type=_FILE,
    metavar="FILE",
    help="ServiceAccount token to send instead of, or beside, a certificate.",
)
@click.option(
    "--server-name",
    metavar="NAME",
    default="",
    help="Name that the controller's certificate must have.  [default: HOST]",
)
@click.option("--node", required=True, metavar="NAME", help="Name of this proxy: that of its pod.")
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
    """Serve what a controller sends.

    Files of credentials are read again for every connection, so they may be replaced at any time.
    """
    if (cert is None) != (key is None):
        raise click.UsageError("--cert and --key go together")
    if cert is None and token is None:
        raise click.UsageError("give --cert and --key, or --token: the controller asks for either")
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
