"""`edgefast dump`: what a running proxy has applied, as its admin server tells it.

In: the admin address. Out: the dump as YAML, JSON or tables on standard output; exit status 1 with one line on standard
error when the proxy cannot be asked. It must not interpret: what is shown is what the proxy says.
"""

from __future__ import annotations

import http.client
from typing import Any

import click

from edgefast.cli.options import Format, admin_option, output_option
from edgefast.cli.output import write_value
from edgefast.cli.show_dump import write_tables

DEADLINE = 10.0  # seconds, connect and each read


@click.command()
@admin_option
@output_option("yaml")
def dump(admin: str, output: Format) -> None:
    """Show what a running proxy has applied."""
    value = fetch_dump(admin)
    if output == "table":
        write_tables(value)
    else:
        write_value(value, output)


def fetch_dump(admin: str) -> Any:
    """GET /dump; raises ClickException (exit status 1) that says what is wrong and what to look at."""
    import orjson

    host, _, port = admin.rpartition(":")
    if not port.isdecimal() or not host:
        raise click.BadParameter(f'"{admin}" is no ADDRESS:PORT', param_hint="--admin")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=DEADLINE)
    try:
        connection.request("GET", "/dump")
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise click.ClickException(
            f"no answer from the admin server at {admin}: {error} (is the proxy running, with this --admin address?)"
        ) from None
    finally:
        connection.close()
    if answer.status != 200:
        raise click.ClickException(
            f"{admin} answered {answer.status} to /dump: is this an edgefast admin server?"
        )
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise click.ClickException(
            f"{admin} answered /dump with something else than JSON"
        ) from None
