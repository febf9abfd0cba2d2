"""`edgefast run`: serves the objects of files, and goes on serving while they change.

In: files, the configuration, addresses. Out: traffic; the access log on standard output; everything
else on standard error. Exit status 0 after a drain, 1 when nothing could be served, 2 wrong usage,
128 + signal after a forced end. Flags win over the configuration file. It holds no logic of its
own: it fills in settings and wires rooms.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import click
import uvloop

from edgefast.cli.check import render_line
from edgefast.cli.inputs import read_config
from edgefast.cli.options import config_option
from edgefast.daemon.address import Address, check_ip, parse_address
from edgefast.daemon.logs import LEVELS, start_logging
from edgefast.problem import Problem
from edgefast.providers.files import FileSource
from edgefast.proxy.agent import Agent
from edgefast.proxy.banner import Banner
from edgefast.proxy.cpus import allowed_cpus
from edgefast.proxy.servers import ServerTaken, bind_servers, make_servers
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.standalone import NothingServed, Outcome, Standalone
from edgefast.resources.decode import LoadedConfig
from edgefast.resources.edgegateway import EdgeGateway
from edgefast.translate.settings import Settings, settings_from

T = TypeVar("T")
_WILDCARDS = ("0.0.0.0", "::")


def _through(
    parse: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, object], object]:
    """Make an option callback of a function that raises ValueError for what it cannot parse."""

    def convert(_: click.Context, __: click.Parameter, value: object) -> object:
        try:
            return tuple(map(parse, value)) if isinstance(value, tuple) else parse(str(value))
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return convert


@click.command()
@click.option(
    "-f",
    "--file",
    "files",
    required=True,
    multiple=True,
    metavar="FILE|DIR",
    type=click.Path(allow_dash=True, path_type=Path),
    help="YAML or JSON file, or a folder of them; may be repeated; watched. - is standard input.",
)
@config_option
@click.option(
    "--bind",
    "binds",
    multiple=True,
    metavar="IP",
    callback=_through(check_ip),
    help="Address to listen on; may be repeated.  [default: 0.0.0.0 and ::]",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    help="Worker processes.  [default: the CPUs this process may use]",
)
@click.option(
    "--admin",
    default="127.0.0.1:19000",
    show_default=True,
    metavar="ADDRESS",
    callback=_through(parse_address),
    help="Dump, drain, log level; off switches it off.",
)
@click.option(
    "--ready",
    default=":19003",
    show_default=True,
    metavar="ADDRESS",
    callback=_through(parse_address),
    help="GET /ready.",
)
@click.option(
    "--metrics",
    default=":19001",
    show_default=True,
    metavar="ADDRESS",
    callback=_through(parse_address),
    help="GET /metrics, for Prometheus.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the last good table here (it holds private keys), for a start without files.",
)
@click.option(
    "--drain-timeout",
    type=click.FloatRange(0, 86_400),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="After SIGTERM, abort what is left at the latest then.",
)
@click.option(
    "--min-drain",
    type=click.FloatRange(0, 86_400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="After SIGTERM, go on accepting for at least this long.",
)
@click.pass_context
def run(
    ctx: click.Context,
    files: tuple[Path, ...],
    config: Path | None,
    binds: tuple[str, ...],
    workers: int | None,
    admin: Address | None,
    ready: Address | None,
    metrics: Address | None,
    log_level: str,
    state_dir: Path | None,
    drain_timeout: float,
    min_drain: float,
) -> None:
    """Serve Gateway API objects from files."""
    loaded, problems = _read_config(config)
    if loaded is not None:
        admin = _prefer(ctx, "admin", admin, lambda: _admin_of(loaded))
        log_level = _prefer(ctx, "log_level", log_level, lambda: _level_of(loaded))
    start_logging(log_level)
    settings = ProxySettings(
        binds=tuple(dict.fromkeys(binds)) or _WILDCARDS,
        binds_required=bool(binds),
        workers=workers or allowed_cpus(),
        admin=admin,
        ready=ready,
        metrics=metrics,
        log_level=log_level,
        state_dir=state_dir,
        drain_timeout=drain_timeout,
        min_drain=min_drain,
    )
    gateway = loaded.config if loaded else None
    try:
        uvloop.run(_serve(files, gateway, problems, settings))
    except* ServerTaken as group:
        raise click.ClickException("; ".join(str(one) for one in group.exceptions)) from None
    except* NothingServed:
        _say("nothing can be served: no listener has a port to listen on, or no worker lives")
        ctx.exit(1)


async def _serve(
    files: tuple[Path, ...],
    gateway: EdgeGateway | None,
    problems: tuple[Problem, ...],
    settings: ProxySettings,
) -> NoReturn:
    bound = bind_servers(settings)
    agent = Agent(settings)
    servers = make_servers(agent, bound)
    addresses = {name: one.address for name, one in servers.items()}
    banner = Banner(settings.workers, addresses, _say, render_line)

    def report(outcome: Outcome) -> None:
        banner.show(outcome, agent.bound())

    def report_problems(now: tuple[Problem, ...]) -> None:
        banner.show_problems((*agent.source_problems, *now))

    def translation_settings() -> Settings:
        addresses = tuple(one for one in settings.binds if one not in _WILDCARDS)
        return settings_from(gateway, addresses=addresses, now=int(time.time()))

    agent.on_problems = report_problems
    source = FileSource(files)
    standalone = Standalone(agent, source, translation_settings, report, problems)
    _leave(await agent.run(standalone.run, *(server.run for server in servers.values())))


def _leave(status: int) -> NoReturn:
    """End the process now that all workers are reaped and the last table is kept.

    The interpreter's own end waits for every thread, and one may hang for as long as it likes: in a
    read of standard input or of a network file system.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


def _read_config(path: Path | None) -> tuple[LoadedConfig | None, tuple[Problem, ...]]:
    """Read the configuration file; a broken one is wrong usage, not half a configuration."""
    loaded, problems = read_config(path)
    if path is not None and loaded is None:
        _refuse(problems)
    return loaded, problems


def _prefer(ctx: click.Context, name: str, value: T, configured: Callable[[], T]) -> T:
    """Return the value of a flag that was given, else that of the configuration file."""
    given = ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    return value if given else configured()


def _admin_of(loaded: LoadedConfig) -> Address | None:
    address = loaded.config.admin.address
    host = f"[{address.host}]" if ":" in address.host else address.host
    try:
        return parse_address(f"{host}:{address.port}")
    except ValueError as error:
        _refuse((loaded.problem(("admin", "address", "host"), "Invalid", str(error), "error"),))


def _level_of(loaded: LoadedConfig) -> str:
    level = loaded.config.logging.level
    return "warning" if level == "warn" else level


def _say(line: str) -> None:
    # A disk that is full or a reader that is gone must not end the service.
    with contextlib.suppress(OSError):
        click.echo(line, err=True)


def _refuse(problems: tuple[Problem, ...]) -> NoReturn:
    for one in problems:
        _say(render_line(one))
    sys.exit(2)
