"""Serving options: the common options and exit of `edgefast run` and `edgefast proxy`.

In: a command's function.
Out: the same function with options; it receives their values as `settings`.
Must never: depend on the source of tables.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from edgefast.api.edge.zone_aware import ZONE_PATTERN
from edgefast.daemon.logs import LEVELS, write_line
from edgefast.daemon.os_error import explain_failure, is_refusal
from edgefast.daemon.process import forbid_cores
from edgefast.httpd.address import check_ip, parse_address
from edgefast.proxy.access_log.log_file import check_log_file
from edgefast.proxy.process.cpus import allowed_cpus
from edgefast.proxy.process.file_limit import explain_start, raise_limit
from edgefast.proxy.settings import ProxySettings

__all__ = [
    "WILDCARDS",
    "check_start",
    "give_up",
    "in_words",
    "leave",
    "say",
    "serving_options",
    "through",
]

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Addresses that are all of a family.
WILDCARDS = ("0.0.0.0", "::")


def through(
    parse: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, object], object]:
    """Make an option callback of a function that raises ValueError for what it cannot parse."""

    def convert(_: click.Context, __: click.Parameter, value: object) -> object:
        try:
            return tuple(map(parse, value)) if isinstance(value, tuple) else parse(str(value))
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return convert


def _read_log_file(text: str) -> Path | None:
    """Return the file, which can be written then; raises ValueError."""
    if text == "-":
        return None
    path = Path(text).absolute()
    try:
        check_log_file(path)
    except OSError as error:
        raise ValueError(
            f"{text}: {error.strerror or 'is not a regular file'} (- is standard output)"
        ) from None
    return path


def _read_zone(text: str) -> str:
    """Return a zone's name; "" is none. Raises ValueError."""
    if text and not re.fullmatch(ZONE_PATTERN, text):
        raise ValueError(
            f'"{text}" is not a zone (allowed: at most 63 letters, digits, -, _ and .)'
        )
    return text


_OPTIONS = (
    click.option(
        "--bind",
        "binds",
        multiple=True,
        metavar="IP",
        callback=through(check_ip),
        help="IP address to listen on. Repeatable.  [default: 0.0.0.0 and ::]",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, 256),
        help="Number of worker processes.  [default: the CPUs of this process]",
    ),
    click.option(
        "--admin",
        default="127.0.0.1:19000",
        show_default=True,
        metavar="ADDRESS",
        callback=through(parse_address),
        help="Address of the admin server: dump, drain, log level, console. off disables it.",
    ),
    click.option(
        "--console/--no-console",
        default=True,
        show_default=True,
        help="Serve the web console at /console/ of the admin address.",
    ),
    click.option(
        "--ready",
        default=":19003",
        show_default=True,
        metavar="ADDRESS",
        callback=through(parse_address),
        help="Address of the readiness server: GET /ready.",
    ),
    click.option(
        "--metrics",
        default=":19001",
        show_default=True,
        metavar="ADDRESS",
        callback=through(parse_address),
        help="Address of the Prometheus metrics server: GET /metrics.",
    ),
    click.option(
        "--access-log",
        metavar="FILE",
        default="-",
        show_default=True,
        callback=through(_read_log_file),
        help="File for access log lines. It is reopened after a rename. - writes to standard "
        "output.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="Least severe log lines to write.",
    ),
    click.option(
        "--state-dir",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for the last good configuration, used at a start without its source. It "
        "contains private keys.",
    ),
    click.option(
        "--zone",
        envvar="EDGEFAST_ZONE",
        metavar="NAME",
        callback=lambda context, option, text: through(_read_zone)(context, option, text or ""),
        help="Zone of this machine, for zone-aware load balancing.  [default: $EDGEFAST_ZONE, "
        "or the zone that the controller reports]",
    ),
    click.option(
        "--drain-timeout",
        type=click.FloatRange(0, 86_400),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="Abort the remaining connections this long after SIGTERM.",
    ),
    click.option(
        "--min-drain",
        type=click.FloatRange(0, 86_400),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="Accept connections for at least this long after SIGTERM.",
    ),
)


def serving_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of a serving process; the command gets them as `settings: ProxySettings`."""

    @functools.wraps(command)
    def call(*arguments: Any, **values: Any) -> T:
        given = {one: values.pop(one) for one in ProxySettings.__struct_fields__ if one in values}
        return command(*arguments, settings=_make_settings(**given), **values)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call


def _make_settings(*, binds: tuple[str, ...], workers: int | None, **others: Any) -> ProxySettings:
    return ProxySettings(
        binds=tuple(dict.fromkeys(binds)) or WILDCARDS,
        binds_required=bool(binds),
        workers=workers or allowed_cpus(),
        **others,
    )


def say(line: str, level: str = "info") -> None:
    """Write a line to standard error."""
    write_line(level, "edgefast", line)


def give_up(why: str) -> NoReturn:
    """Say why the process ends, and end it with exit status 1."""
    say(why, "error")
    raise click.exceptions.Exit(1)


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """End what the system does not allow with a line and exit status 1; what is a mistake of ours keeps its traceback."""
    try:
        yield
    except (OSError, MemoryError, BaseExceptionGroup) as error:
        if not is_refusal(error):
            raise
        log.debug("cause of the end", exc_info=error)
        give_up(f"cannot continue: {explain_failure(error)}")


def check_start(settings: ProxySettings) -> None:
    """End the process when there are too few descriptors to begin; keys that come into its memory stay there."""
    forbid_cores()
    servers = sum(one is not None for one in (settings.admin, settings.metrics, settings.ready))
    if why := explain_start(raise_limit(), settings.workers, servers):
        give_up(why)


def leave(status: int) -> NoReturn:
    """End the process now that all workers are reaped and the last table is kept.

    The interpreter's own end waits for every thread, and one may hang for as long as it likes: in a
    read of standard input or of a network file system.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)
