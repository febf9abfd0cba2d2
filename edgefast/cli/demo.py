"""`edgefast demo`: a gateway to try, without files: two origins, TLS, a rate limit, a password, the console.

In: nothing; the objects are in demo.yaml beside this module.
Out: a gateway on loopback; commands to try on standard error, the access log on standard output. A
temporary folder has the certificate of the authority, and is removed at the end. Ports that are in use
are replaced by free ones.
Must never: listen on another address than loopback, start another program, or show a private key.
"""

from __future__ import annotations

import base64
import datetime
import functools
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import uvloop
import yaml

from edgefast.cli.freeport import choose_ports
from edgefast.cli.output import render_line
from edgefast.cli.serving import check_start, give_up, in_words, leave, say
from edgefast.daemon.logs import start_logging
from edgefast.daemon.process import process_age, share_interpreter
from edgefast.httpd.address import Address
from edgefast.httpd.echo import Echo
from edgefast.providers.added_backends import add_backends
from edgefast.providers.document import TextDocument
from edgefast.providers.files import FileSource
from edgefast.proxy.admin.servers import ServerTaken, bind_servers, make_orders, make_servers
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.pipelines.standalone import NothingServed, Outcome, Standalone
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.sockets.inherited import Inherited
from edgefast.translate.settings import Settings, settings_from

__all__ = ["demo", "make_demo_objects", "show_commands"]

_OBJECTS = Path(__file__).with_name("demo.yaml")
_LOOPBACK = "127.0.0.1"
#: HTTP, HTTPS, admin: the ports of the guides.
_PORTS = (8080, 8443, 19000)
#: Seconds for requests in progress after Ctrl-C.
_DRAIN = 2.0
_SECRET = "demo-certificate"


@click.command()
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Number of worker processes.",
)
@click.option(
    "--print",
    "print_objects",
    is_flag=True,
    help="Print the Gateway API objects of the demo as YAML and exit.",
)
def demo(workers: int, print_objects: bool) -> None:
    """Run a gateway to try, with two backends, TLS, a rate limit, a password and the console.

    It needs no files and listens on this machine only. Ctrl-C ends all of it.

    \b
    Examples:
      # Start the demo; it prints five commands to try
      edgefast demo
      # Use two worker processes
      edgefast demo --workers 2
      # Show the objects that the demo serves
      edgefast demo --print
    """
    if print_objects:
        click.echo(_OBJECTS.read_text(), nl=False)
        return
    start_logging("warning")
    share_interpreter()
    why = ""
    try:
        with in_words():
            http, https, admin = choose_ports(_PORTS)
            settings = ProxySettings(
                binds=(_LOOPBACK,),
                workers=workers,
                admin=Address(_LOOPBACK, admin),
                metrics=None,
                ready=None,
                log_level="warning",
                min_drain=0.0,
                drain_timeout=_DRAIN,
            )
            check_start(settings)
            status = _run(settings, http, https)
            leave(status)
    except* (NothingServed, ServerTaken) as group:
        why = "; ".join(str(one) for one in group.exceptions)
    if why:  # not in a handler: Python 3.11.2 wraps what `except*` raises in a group
        give_up(why)


def _run(settings: ProxySettings, http: int, https: int) -> int:
    """Serve until Ctrl-C; the folder of the authority lives as long."""
    from edgefast.providers.localauthority import make_local_certificate  # 25 ms, seldom needed

    now = datetime.datetime.now(datetime.UTC)
    made = make_local_certificate("edgefast demo authority", now)
    with tempfile.TemporaryDirectory(prefix="edgefast-demo-") as folder:
        authority = Path(folder) / "ca.crt"
        authority.write_bytes(made.authority)
        text = make_demo_objects(http, https, made.certificate, made.key)
        source = FileSource((), documents=(TextDocument("<demo>", text),))
        return uvloop.run(_serve(source, settings, show_commands(http, https, authority)))


async def _serve(source: FileSource, settings: ProxySettings, commands: str) -> int:
    bound = bind_servers(settings)
    agent = Agent(settings, inherited=Inherited())
    servers = make_servers(agent, bound)
    orders = make_orders(agent, servers)
    parts = (*servers.values(), *((orders,) if orders is not None else ()))
    origin = Echo()

    def report(outcome: Outcome) -> None:
        for problem in outcome.problems:
            say(render_line(problem), problem.severity)
        if agent.serving:
            ready = f"edgefast demo is ready in {process_age() * 1000:.0f} ms. "
            console = f"Console: http://{servers['admin'].address}/console/\n"
            click.echo(f"{ready}{commands}{console}Ctrl-C ends the demo.", err=True)

    def read_settings() -> Settings:
        return settings_from(None, addresses=settings.binds, now=int(time.time()))

    complete = functools.partial(
        add_backends, given=(), get_port=lambda key: origin.get_port(key[1])
    )
    standalone = Standalone(agent, source, read_settings, report, complete=complete)
    return await agent.run(standalone.run, origin.run, *(one.run for one in parts))


def make_demo_objects(http: int, https: int, certificate: bytes, key: bytes) -> bytes:
    """Return the objects as YAML, with these ports and the Secret of the HTTPS listener."""
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(_OBJECTS.read_bytes()))
    ports = {"HTTP": http, "HTTPS": https}
    for one in objects:
        for listener in one["spec"]["listeners"] if one["kind"] == "Gateway" else ():
            listener["port"] = ports[listener["protocol"]]
    data = {"tls.crt": certificate, "tls.key": key}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _SECRET, "namespace": "default"},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    text: str = yaml.safe_dump_all([*objects, secret], sort_keys=False)
    return text.encode()


def show_commands(http: int, https: int, authority: Path) -> str:
    """Return the five commands to try, each with what it shows."""
    return f"""\
Commands to try:

  # One gateway, two services: the path selects the service
  curl http://localhost:{http}/
  curl http://localhost:{http}/api/users
  # HTTPS, with a certificate of an authority that was made for this demo
  curl --cacert {authority} https://localhost:{https}/
  # A rate limit: three requests a minute get 200, the fourth gets 429
  curl -s -o /dev/null -w '%{{http_code}}\\n' 'http://localhost:{http}/limited?[1-4]'
  # A policy: without the password the gateway answers 401
  curl -u demo:demo http://localhost:{http}/private

"""
