"""`edgefast log-level`: changes the log level of a running process.

In: a level, the admin address.
Out: exit status 0 when it is changed, 1 when no process accepted the command. The command must be
run by the process's user or root, in its network namespace.
"""

from __future__ import annotations

import http.client
from urllib.parse import urlencode

import click

from edgefast.cli.options import DEFAULT_ADMIN
from edgefast.cli.serving import give_up, through
from edgefast.daemon.logs import LEVELS
from edgefast.httpd.address import Address, parse_address
from edgefast.httpd.control_socket import send_command

_DEADLINE = 5.0  # seconds


@click.command("log-level")
@click.option(
    "--admin",
    default=DEFAULT_ADMIN,
    show_default=True,
    metavar="ADDRESS",
    callback=through(parse_address),
    help="Admin address of the proxy or controller.",
)
@click.argument("level", type=click.Choice(LEVELS))
@click.pass_context
def log_level(ctx: click.Context, admin: Address | None, level: str) -> None:
    """Change the log level of a running proxy or controller.

    \b
    Examples:
      # Write debug lines
      edgefast log-level debug
      # Return to the default level
      edgefast log-level info
      # Change the level of a process with another admin address
      edgefast log-level --admin 127.0.0.1:19100 warning
    """
    if admin is None:
        raise click.BadParameter("missing address of the process", ctx)
    try:
        status, body = send_command(admin, f"/log-level?{urlencode({'level': level})}", _DEADLINE)
    except (OSError, http.client.HTTPException) as error:
        give_up(f"log-level: no process at admin address {admin}: {error}")
    if status != 200:
        give_up(f"log-level: refused: {body.decode('utf-8', 'replace').strip()}")
