"""`--backend`: the option of all commands that read files.

In: the values given. Out: a click decorator, which gives a command `backends`. Must never: be imported by commands that read no files.
"""

from __future__ import annotations

import click

from edgefast.providers.added_backends import AddedBackend, parse_backend

__all__ = ["backend_option"]

#: Values of one call.
_MOST = 1000


def _read_backends(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> tuple[AddedBackend, ...]:
    if len(given) > _MOST:
        raise click.BadParameter(f"given {len(given)} times (at most {_MOST})")
    try:
        return tuple(map(parse_backend, given))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


backend_option = click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="SERVICE=IP:PORT",
    callback=_read_backends,
    help="Endpoint of a Service that has no EndpointSlices. Repeatable. SERVICE can be "
    "NAMESPACE/SERVICE or SERVICE:PORT.",
)
