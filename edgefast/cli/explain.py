"""`edgefast explain`: why a request gets its answer, from files, a running proxy, or a cluster.

In: a request in curl's syntax; files, an admin address, or a kubeconfig.
Out: the explanation as text, JSON or YAML on standard output; problems of the files on standard
error. Exit status 0 when a backend, a redirect or a filter answers, 1 when the proxy itself refuses
(404, 429, 500, ...), 2 for wrong usage or an unreachable proxy or cluster.
Must never: send the request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import click
import msgspec

from edgefast.cli.admin_client import ask_admin
from edgefast.cli.backend_option import backend_option
from edgefast.cli.check import collect_problems
from edgefast.cli.explain_live import explain_live
from edgefast.cli.ingressoptions import ingress_options
from edgefast.cli.inputs import read_inputs
from edgefast.cli.live import LiveError, Where, check_live, live_options, open_cluster
from edgefast.cli.omitted_objects import refuse_unparsed, report_adopted_objects
from edgefast.cli.options import (
    Format,
    adopt_option,
    config_option,
    ignore_option,
    output_option,
)
from edgefast.cli.output import has_colour, terminal_width, wrap_line, write_value
from edgefast.explain import (
    Explanation,
    ProxyDump,
    RequestSpecError,
    Served,
    read_dump,
    read_request_spec,
)
from edgefast.explain.explain import explain
from edgefast.explain.render import render_explanation
from edgefast.providers.added_backends import AddedBackend
from edgefast.translate.settings import IngressSettings

T = TypeVar("T")


@click.command("explain")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE|DIR",
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
    help="YAML or JSON file, or a folder of such files. Repeatable. - reads standard input.",
)
@click.option(
    "--admin",
    metavar="ADDRESS",
    help="Admin address of a proxy to ask. With --live, its endpoint health and counters are used.",
)
@live_options
@click.option(
    "--gateway",
    metavar="[NAMESPACE/]NAME",
    help="With --live: the Gateway that receives the request.",
)
@click.option("-n", "--namespace", help="With --live: only Gateways of this namespace.")
@config_option
@adopt_option
@ignore_option
@ingress_options
@backend_option
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Request header, same syntax as curl -H. Repeatable.",
)
@click.option(
    "-0",
    "--http1.0",
    "http10",
    is_flag=True,
    help="Explain the request in HTTP/1.0, same as curl -0. -H 'Host:' omits the Host header.",
)
@click.option(
    "--source",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Client address of the connection.",
)
@click.option(
    "--tls-sni", metavar="NAME", help="TLS server name (SNI).  [default: the host of an https URL]"
)
@click.option(
    "--address",
    default="",
    metavar="ADDRESS",
    help="Server address of the connection, if Gateways have the port at different addresses.",
)
@click.option(
    "--most",
    default=10,
    show_default=True,
    type=click.IntRange(min=0),
    help="Number of rules to show that did not match.",
)
@output_option("table")
@click.argument("request", nargs=-1, required=True, metavar="[METHOD] URL")
@click.pass_context
def explain_command(
    ctx: click.Context,
    request: tuple[str, ...],
    files: tuple[Path, ...],
    admin: str | None,
    live: bool,
    kubeconfig: Path | None,
    context: str | None,
    controller: str,
    gateway: str | None,
    namespace: str | None,
    config: Path | None,
    adopt: bool,
    ignore_foreign_policies: bool,
    ingress: IngressSettings,
    backends: tuple[AddedBackend, ...],
    headers: tuple[str, ...],
    http10: bool,
    source: str,
    address: str,
    tls_sni: str | None,
    most: int,
    output: Format,
) -> None:
    """Show which listener, route and policies decide the answer to a request. METHOD defaults to GET.

    Use grpc://HOST/PACKAGE.SERVICE/METHOD for a gRPC call and grpcs:// for one over TLS. Use tcp://HOST:PORT,
    tls://NAME[:PORT] and udp://HOST:PORT for TCP, TLS passthrough and UDP.

    \b
    Examples:
      # Explain a request to a configuration in files
      edgefast explain -f examples/quickstart.yaml http://localhost:8080/api
      # Ask a running proxy, with a header
      edgefast explain --admin 127.0.0.1:19000 -H "x-user: ann" POST http://shop.example/cart
      # Ask the cluster of the kubeconfig
      edgefast explain --live http://shop.example/
    """
    method, url = _read_words(request)
    if bool(files) + (bool(admin) or live) != 1:
        raise click.UsageError("pass one of -f FILE|DIR, --admin ADDRESS and --live")
    if adopt and not files:
        raise click.UsageError("--adopt: only with -f")
    if ignore_foreign_policies and not files:
        raise click.UsageError("--ignore-foreign-policies: only with -f")
    if backends and not files:
        raise click.UsageError("--backend: only with -f")
    check_live(
        live,
        kubeconfig=kubeconfig,
        context=context,
        controller=controller,
        gateway=gateway,
        namespace=namespace,
    )
    try:
        spec = msgspec.structs.replace(
            read_request_spec(method, url, headers, source, tls_sni, address, http10=http10),
            now=time.time(),
        )
    except RequestSpecError as error:
        raise click.UsageError(str(error)) from None
    if live:
        proxy = _refuse_nothing(_ask_proxy, admin) if admin else None
        where = Where(kubeconfig=kubeconfig, context=context, controller=controller, config=config)
        cluster = open_cluster(where)
        try:
            found = explain_live(
                cluster,
                spec,
                url,
                gateway=gateway,
                namespace=namespace,
                proxy=proxy,
                most=most,
            )
        finally:
            cluster.close()
    elif admin:
        found = _refuse_nothing(
            _ask_explanation, admin, method, url, headers, source, tls_sni, most, http10
        )
    else:
        served = _read_files(
            files,
            config,
            backends,
            ingress,
            adopt=adopt,
            ignore_foreign_policies=ignore_foreign_policies,
        )
        found = explain(served, spec, most=most)
    if output == "table":
        _write(found)
    else:
        write_value(msgspec.to_builtins(found), output)
    ctx.exit(0 if all(_is_served(one.kind, one.check) for one in found.answers) else 1)


def _read_words(words: tuple[str, ...]) -> tuple[str, str]:
    """Return method and URL; a method alone is no URL, and would be taken for a host's name."""
    if len(words) > 2:
        raise click.UsageError(f"give METHOD and URL, or URL: {' '.join(words)}")
    if len(words) == 1 and words[0].isalpha() and words[0].isupper():
        raise click.UsageError(f"missing URL after {words[0]}")
    return ("GET", words[0]) if len(words) == 1 else (words[0], words[1])


def _is_served(kind: str, check: str) -> bool:
    return kind in ("backend", "redirect") or check == "cors"


def _read_files(
    files: tuple[Path, ...],
    config: Path | None,
    backends: tuple[AddedBackend, ...],
    ingress: IngressSettings,
    *,
    adopt: bool,
    ignore_foreign_policies: bool,
) -> Served:
    from edgefast.explain import serve_translation
    from edgefast.translate.pipeline import translate

    inputs = read_inputs(
        files,
        config,
        adopt=adopt,
        ignore_foreign_policies=ignore_foreign_policies,
        ingress=ingress,
        backends=backends,
    )
    refuse_unparsed(inputs.unparsed)
    translation = translate(inputs.reading.snapshot, inputs.settings)
    found = collect_problems(inputs, translation)
    report_adopted_objects(found)
    errors = sum(problem.severity == "error" for problem in found)
    if errors:
        what = "problem" if errors == 1 else "problems"
        click.echo(f"{errors} {what} in the files; `edgefast check` lists them", err=True)
    return serve_translation(translation, problems=inputs.problems)


def _refuse_nothing(request: Callable[..., T], *words: Any) -> T:
    """Ask a proxy; exit status 1 would say that the request is refused."""
    try:
        return request(*words)
    except click.UsageError:
        raise
    except click.ClickException as error:
        raise LiveError(error.message) from None


def _ask_explanation(
    admin: str,
    method: str,
    url: str,
    headers: tuple[str, ...],
    source: str,
    sni: str | None,
    most: int,
    http10: bool,
) -> Explanation:
    """Let the proxy explain: what its rules compare with is not all in its dump."""
    words = {"method": method, "url": url, "headers": "\n".join(headers), "source": source}
    words = {**words, "sni": sni or "", "most": str(most)}
    words |= {"http10": "true"} if http10 else {}
    query = urlencode(words, errors="surrogateescape")
    reported = ask_admin(admin, f"/explain?{query}")
    try:
        return msgspec.convert(reported, Explanation)
    except msgspec.ValidationError as error:
        raise click.ClickException(
            f"the proxy at {admin} runs an incompatible release: {error}"
        ) from None


def _ask_proxy(admin: str) -> ProxyDump:
    dump = ask_admin(admin, "/dump")
    if not isinstance(dump, dict):
        message = f"{admin} did not answer /dump with a JSON object; check that --admin names an edgefast admin server"
        raise click.ClickException(message)
    limits: Any
    try:
        limits = (
            ask_admin(admin, "/limits")
            if dump.get("limit_stores")
            else {"counters": [], "complete": True}
        )
    except click.ClickException as error:  # its store may be away: the rest is known
        limits = error.message
    try:
        return read_dump(dump, limits)
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError) as error:
        raise click.ClickException(
            f"the proxy at {admin} runs an incompatible release: {error}"
        ) from None


def _write(found: Explanation) -> None:
    width, bold = terminal_width(), has_colour()
    for line in render_explanation(found):
        for part in wrap_line(line, width):
            click.echo(click.style(part, bold=True) if bold else part)
        bold = False
