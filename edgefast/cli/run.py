"""`edgefast run`: serves the objects of files, and applies changes of the files; or the backends of `--to` without a file.

In: files or `--to`, the configuration, addresses.
Out: traffic; the access log on standard output; everything else on standard error. Exit status 0
after a drain, 1 when nothing could be served, 2 wrong usage, 128 + signal after a forced end. Flags
have priority over the configuration file.
Must never: contain logic of its own; it fills in settings and connects components.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

import click
import msgspec
import uvloop

from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.decode.decode import LoadedConfig
from edgefast.cli.backend_option import backend_option
from edgefast.cli.ingressoptions import ingress_options
from edgefast.cli.inputs import read_config
from edgefast.cli.options import adopt_option, config_option, ignore_option
from edgefast.cli.output import render_line
from edgefast.cli.reverseproxyoption import reverse_proxy_options
from edgefast.cli.serving import (
    WILDCARDS,
    check_start,
    give_up,
    in_words,
    leave,
    say,
    serving_options,
)
from edgefast.daemon.logs import start_logging
from edgefast.daemon.process import share_interpreter
from edgefast.diagnostics.problem import Problem
from edgefast.httpd.address import Address, parse_address
from edgefast.httpd.echo import Echo
from edgefast.providers.added_backends import AddedBackend, add_backends
from edgefast.providers.files import FileSource
from edgefast.providers.reverseproxy import ReverseProxy
from edgefast.proxy.admin.servers import (
    ServerTaken,
    bind_servers,
    make_orders,
    make_servers,
)
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.handover.socket_receiver import TakeOver, TakeOverRefused
from edgefast.proxy.handover.wiring import wire_handover
from edgefast.proxy.pipelines.banner import Banner
from edgefast.proxy.pipelines.standalone import (
    Complete,
    FilesPending,
    FilesUnparsed,
    NothingServed,
    Outcome,
    Standalone,
)
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.sockets.inherited import receive_sockets
from edgefast.proxy.traces.export_thread import has_tracing
from edgefast.translate.settings import IngressSettings, Settings, settings_from


@click.command()
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE|DIR",
    type=click.Path(allow_dash=True, path_type=Path),
    help="YAML or JSON file, or a folder of such files. Repeatable. Changes are applied. - "
    "reads standard input.",
)
@reverse_proxy_options
@config_option
@adopt_option
@ignore_option
@ingress_options
@backend_option
@click.option(
    "--echo",
    is_flag=True,
    help="Answer for Services without endpoints with a built-in HTTP/1.1 page about the request.",
)
@serving_options
@click.option(
    "--settle-time",
    "settle",
    type=click.FloatRange(0, 60),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long after the last write of a file. Files that are renamed into place are "
    "read immediately.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Replace the edgefast process that listens on these addresses. It drains when this "
    "process serves.",
)
@click.pass_context
def run(
    ctx: click.Context,
    files: tuple[Path, ...],
    config: Path | None,
    adopt: bool,
    ignore_foreign_policies: bool,
    ingress: IngressSettings,
    backends: tuple[AddedBackend, ...],
    echo: bool,
    settings: ProxySettings,
    settle: float,
    take_over: bool,
    reverse_proxy: ReverseProxy | None,
) -> None:
    """Run a proxy that gets its configuration from files. It applies changes of the files.

    With --to it serves one or more backends without a file.

    \b
    Examples:
      # Serve a file
      edgefast run -f examples/quickstart.yaml
      # Serve a local backend without a file
      edgefast run --to http://127.0.0.1:3000 --listen :8080
      # Try a file without backends: a built-in page answers for them
      edgefast run -f examples/canary.yaml --echo
    """
    loaded, problems = _read_config(config)
    if loaded is not None:
        if not _is_given(ctx, "admin"):
            settings = msgspec.structs.replace(settings, admin=_admin_of(loaded))
        if not _is_given(ctx, "log_level"):
            settings = msgspec.structs.replace(settings, log_level=_level_of(loaded))
    start_logging(settings.log_level)
    share_interpreter()
    gateway = loaded.config if loaded else None
    if reverse_proxy is not None and gateway is not None:
        name = gateway.gateway.controller_name
        reverse_proxy = msgspec.structs.replace(reverse_proxy, controller_name=name)
    check_start(settings)
    why = ""
    try:
        with in_words():
            documents = (reverse_proxy,) if reverse_proxy is not None else ()
            source = FileSource(files, settle=settle, documents=documents, adopt=adopt)
            serving = _serve(
                source,
                gateway,
                problems,
                settings,
                adopt=adopt,
                ignore_foreign_policies=ignore_foreign_policies,
                ingress=ingress,
                backends=backends,
                echo=echo,
                take_over=take_over,
            )
            uvloop.run(serving)
    except* (FilesPending, FilesUnparsed, NothingServed, ServerTaken, TakeOverRefused) as group:
        why = "; ".join(str(one) for one in group.exceptions)
    if why:  # not in a handler: Python 3.11.2 wraps what `except*` raises in a group
        give_up(why)


async def _serve(
    source: FileSource,
    gateway: EdgeGateway | None,
    problems: tuple[Problem, ...],
    settings: ProxySettings,
    *,
    adopt: bool,
    ignore_foreign_policies: bool,
    ingress: IngressSettings,
    backends: tuple[AddedBackend, ...],
    echo: bool,
    take_over: bool,
) -> NoReturn:
    inherited = receive_sockets(os.environ)
    takeover = TakeOver(settings, take_over=take_over)
    await takeover.begin(inherited)
    bound = bind_servers(settings, inherited)
    agent = Agent(settings, inherited=inherited)
    servers = make_servers(agent, bound)
    parts = wire_handover(agent, servers, takeover, make_orders(agent, servers))
    addresses = {name: one.address for name, one in servers.items()}
    banner = Banner(settings.workers, addresses, say, render_line)

    def report(outcome: Outcome) -> None:
        banner.show(outcome, agent.bound())

    def report_problems(now: tuple[Problem, ...]) -> None:
        banner.show_problems((*agent.source_problems, *now))

    def translation_settings() -> Settings:
        wild = any(one in WILDCARDS for one in settings.binds)
        addresses = () if wild else settings.binds
        now = int(time.time())
        return settings_from(
            gateway,
            addresses=addresses,
            now=now,
            tracing=has_tracing(),
            adopt=adopt,
            ignore_foreign_policies=ignore_foreign_policies,
            ingress=ingress,
        )

    agent.on_problems = report_problems
    origin = Echo() if echo else None
    complete = _make_complete(backends, origin) if backends or origin else None
    standalone = Standalone(agent, source, translation_settings, report, problems, complete)
    origins = (origin.run,) if origin else ()
    leave(await agent.run(standalone.run, *origins, *parts))


def _make_complete(backends: tuple[AddedBackend, ...], origin: Echo | None) -> Complete:
    """Return a function that adds the backends of the command line to each snapshot."""
    get_port = (lambda key: origin.get_port("/".join(key))) if origin else None
    return functools.partial(add_backends, given=backends, get_port=get_port)


def _read_config(path: Path | None) -> tuple[LoadedConfig | None, tuple[Problem, ...]]:
    """Read the configuration file; a broken one is wrong usage, not half a configuration."""
    loaded, problems = read_config(path)
    if path is not None and loaded is None:
        _refuse(problems)
    return loaded, problems


def _is_given(ctx: click.Context, name: str) -> bool:
    """Whether a flag was given: flags win over the configuration file."""
    return ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


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


def _refuse(problems: tuple[Problem, ...]) -> NoReturn:
    for one in problems:
        say(render_line(one), "error")
    sys.exit(2)
