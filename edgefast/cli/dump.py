"""`edgefast dump`: the applied configuration of a running proxy, from its admin server.

In: the admin address.
Out: the dump as YAML, JSON or tables on standard output; exit status 1 with one line on standard
error when the proxy is not reachable.
Must never: interpret the dump; the proxy's answer is shown unchanged.
"""

from __future__ import annotations

import click

from edgefast.cli.admin_client import ask_admin
from edgefast.cli.options import Format, admin_option, output_option
from edgefast.cli.output import write_value
from edgefast.cli.show_dump import write_tables


@click.command()
@admin_option
@output_option("yaml")
def dump(admin: str, output: Format) -> None:
    """Show the configuration that a running proxy has applied. Secrets are not shown.

    \b
    Examples:
      # Print the configuration of the proxy on this machine as YAML
      edgefast dump
      # Print it as tables
      edgefast dump -o table
      # Print the configuration of a proxy with another admin address
      edgefast dump --admin 127.0.0.1:19100 -o json
    """
    value = ask_admin(admin, "/dump")
    if output == "table":
        write_tables(value)
    else:
        write_value(value, output)
