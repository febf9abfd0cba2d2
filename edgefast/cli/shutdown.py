"""`edgefast shutdown` and `edgefast shutdown-manager`: delay a container's end until its proxy has drained (proxy/shutdown.py).

In: addresses, timings, the file that both commands share.
Out: exit status 0 when the proxy is drained or gone, 1 when the time ended before, 2 wrong usage.
The first is a preStop hook, so it imports little.
Must never: contain logic of its own.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from edgefast.cli.options import DEFAULT_ADMIN
from edgefast.cli.serving import give_up, in_words, say, through
from edgefast.daemon.logs import start_logging
from edgefast.httpd.address import Address, parse_address
from edgefast.httpd.server import bind_server
from edgefast.proxy.shutdown import READY_FILE, Holder, drain_proxy, write_ready

_DAY = 86_400

_ready_file = click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=READY_FILE,
    show_default=True,
    metavar="FILE",
    help="File that marks the proxy as drained. shutdown and shutdown-manager need the same one.",
)


@click.command()
@click.option(
    "--admin",
    default=DEFAULT_ADMIN,
    show_default=True,
    metavar="ADDRESS",
    callback=through(parse_address),
    help="Admin address of the proxy.",
)
@click.option(
    "--min-drain",
    type=click.FloatRange(0, _DAY),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Shortest drain, so that load balancers notice that the proxy is not ready.",
)
@click.option(
    "--drain-timeout",
    type=click.FloatRange(0, _DAY),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest drain.",
)
@click.option(
    "--exit-at-connections",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="End the drain when at most this many client connections are open.",
)
@_ready_file
@click.pass_context
def shutdown(
    ctx: click.Context,
    admin: Address | None,
    min_drain: float,
    drain_timeout: float,
    exit_at_connections: int,
    ready_file: Path,
) -> None:
    """Drain a proxy and wait until its connections are closed.

    The preStop hook of the container shutdown-manager calls it. Exit status: 0 if the proxy drained, 1 if not.

    \b
    Examples:
      # Drain the proxy on this machine
      edgefast shutdown
      # Wait at least 5 and at most 30 seconds
      edgefast shutdown --min-drain 5 --drain-timeout 30
      # Accept ten open connections at the end
      edgefast shutdown --exit-at-connections 10
    """
    if admin is None:
        raise click.BadParameter("the admin server is required", ctx)
    try:
        done = drain_proxy(
            admin,
            min_drain=min_drain,
            drain_timeout=drain_timeout,
            exit_at_connections=exit_at_connections,
            say=say,
        )
    finally:
        # Whatever happened: nobody may wait for this in vain.
        try:
            write_ready(ready_file)
        except OSError as error:
            say(
                f"{ready_file}: {error.strerror}; shutdown-manager does not see that the drain "
                "ended"
            )
    ctx.exit(0 if done else 1)


@click.command("shutdown-manager")
@click.option(
    "--listen",
    default=":19002",
    show_default=True,
    metavar="ADDRESS",
    callback=through(parse_address),
    help="Address of the server: GET /healthz, GET /shutdown/ready.",
)
@click.option(
    "--ready-timeout",
    type=click.FloatRange(0, _DAY),
    default=610.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest delay of a hook.",
)
@_ready_file
def shutdown_manager(listen: Address | None, ready_timeout: float, ready_file: Path) -> None:
    """Delay the end of a proxy container until the proxy is drained.

    Runs beside the proxy in its pod. The preStop hook of the proxy container waits for GET /shutdown/ready.

    \b
    Examples:
      # Listen on port 19002
      edgefast shutdown-manager
      # Listen on another address
      edgefast shutdown-manager --listen 127.0.0.1:19102
      # Answer a waiting hook after two minutes at the latest
      edgefast shutdown-manager --ready-timeout 120
    """
    start_logging("info")
    if listen is None:
        raise click.UsageError("--listen off disables the only server")
    try:
        sock = bind_server(listen)
    except OSError as error:
        give_up(f"--listen {listen}: {os.strerror(error.errno or 0)}; choose another address")

    async def hold() -> None:
        await Holder(sock, ready_file, ready_timeout).run()

    with in_words():
        asyncio.run(hold())
