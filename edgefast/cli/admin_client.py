"""Admin client: requests to the admin server of a running proxy, for `dump`, `limits` and `status`.

In: the admin address, a path.
Out: the answer as plain values or text; ClickException (exit status 1) with the error and the fix.
Must never: interpret the answer; commands show it unchanged.
"""

from __future__ import annotations

import http.client
from typing import Any

import click

from edgefast.cli.output import escape_control

#: Seconds, connect and each read: listing the counters of a full store takes two on an idle machine.
DEADLINE = 20.0


def ask_admin(admin: str, path: str) -> Any:
    """GET a path that answers with JSON."""
    import orjson

    body = _get(admin, path)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        place = path.partition("?")[0]
        raise click.ClickException(f"{admin} did not answer {place} with JSON") from None


def ask_text(admin: str, path: str) -> str:
    """GET a path that answers with text."""
    return _get(admin, path).decode("utf-8", "replace")


def _get(admin: str, path: str) -> bytes:
    host, _, port = admin.rpartition(":")
    if not port.isdecimal() or not host:
        raise click.BadParameter(
            f'"{admin}" is not an address (allowed: ADDRESS:PORT)', param_hint="--admin"
        )
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=DEADLINE)
    try:
        # Not the name in --admin: the server answers to none, since any DNS may point one at it.
        connection.request("GET", path, headers={"Host": "localhost"})
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise click.ClickException(
            f"no proxy answers at {admin} (`edgefast run` starts one, --admin names another): {error}"
        ) from None
    finally:
        connection.close()
    place = path.partition("?")[0]
    if answer.status != 200:
        why = escape_control(body[:200].decode("utf-8", "replace").partition("\n")[0])
        if answer.status == 404 or not why:
            why = "check that --admin names an edgefast admin server"
        raise click.ClickException(f"{admin} answered {answer.status} to {place}: {why}")
    return body
