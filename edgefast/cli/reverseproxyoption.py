"""`--to` and the options that belong to it: a gateway for one or more backends without a file.

In: the options.
Out: a click decorator, which gives a command `reverse_proxy`: what `--to` describes, or None. Options
that contradict each other are wrong usage.
Must never: show the content of a key file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from edgefast.cli.serving import through
from edgefast.httpd.address import EVERYWHERE, Address
from edgefast.providers.reverseproxy import (
    MAX_HOSTS,
    MAX_TARGETS,
    FilePair,
    ReverseProxy,
    Target,
    parse_host,
    parse_listen,
    parse_server_name,
    parse_target,
)

__all__ = ["reverse_proxy_options"]

T = TypeVar("T")

_PORT, _TLS_PORT = 8080, 8443
_HEAD = "# Written by edgefast run --print. Serve it with edgefast run -f FILE.\n"
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _parse_pair(text: str) -> FilePair:
    """Return the files of a certificate and its key; raises ValueError with the allowed form."""
    names = text.split(",")
    if len(names) != 2 or not all(names):
        raise ValueError(
            f'"{text}": expected two files (allowed: CERT,KEY, such as cert.pem,key.pem); '
            "a file name cannot contain a comma"
        )
    return FilePair(Path(names[0]), Path(names[1]))


def _optional(parse: Callable[[str], object]) -> Callable[..., object]:
    """Make an option callback that keeps None."""
    convert = through(parse)
    return lambda context, option, value: None if value is None else convert(context, option, value)


_OPTIONS = (
    click.option(
        "--to",
        "targets",
        multiple=True,
        metavar="URL",
        help="Serve this backend without a file: http://HOST[:PORT], https://HOST[:PORT], "
        "h2c://HOST[:PORT] (HTTP/2 without TLS, such as gRPC), HOST:PORT or unix:/PATH. Repeatable; "
        "edgefast balances requests, and verifies the certificate of an https backend.",
    ),
    click.option(
        "--host",
        "hosts",
        multiple=True,
        metavar="NAME",
        callback=through(parse_host),
        help="With --to: serve requests for this hostname only. Repeatable.  [default: all]",
    ),
    click.option(
        "--listen",
        metavar="ADDRESS",
        callback=_optional(parse_listen),
        help="With --to: listen on this address: :PORT or IP:PORT.  [default: :8080, with --tls "
        ":8443]",
    ),
    click.option(
        "--tls",
        metavar="CERT,KEY",
        callback=_optional(_parse_pair),
        help="With --to: serve HTTPS with this certificate chain and private key, PEM. Changes of "
        "the files are applied.",
    ),
    click.option(
        "--redirect-http",
        metavar="ADDRESS",
        callback=_optional(parse_listen),
        help="With --tls: redirect HTTP requests at this port (:PORT, such as :80) to the port of "
        "--listen with status 301.",
    ),
    click.option(
        "--to-ca",
        metavar="FILE",
        type=_FILE,
        help="CA certificates that sign the certificates of https backends, PEM.  [default: those "
        "of the system]",
    ),
    click.option(
        "--to-server-name",
        metavar="NAME",
        callback=_optional(parse_server_name),
        help="Name that the certificates of https backends must contain.  [default: HOST of --to]",
    ),
    click.option(
        "--rewrite-host",
        is_flag=True,
        help="Send the name of the https backend as Host header.  [default: that of the client]",
    ),
    click.option(
        "--print",
        "print_objects",
        is_flag=True,
        help="With --to: print the Gateway API objects as YAML and exit.",
    ),
)
#: Options that only `--to` gives a meaning, and the values that are theirs by default.
_PARTS: dict[str, tuple[str, object]] = {
    "hosts": ("--host", ()),
    "listen": ("--listen", None),
    "tls": ("--tls", None),
    "redirect_http": ("--redirect-http", None),
    "to_ca": ("--to-ca", None),
    "to_server_name": ("--to-server-name", None),
    "rewrite_host": ("--rewrite-host", False),
    "print_objects": ("--print", False),
}
#: Options about files, which `--to` replaces.
_OTHERS: dict[str, tuple[str, object]] = {
    "files": ("-f", ()),
    "backends": ("--backend", ()),
    "echo": ("--echo", False),
}


def reverse_proxy_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add `--to` and its parts; the command gets `reverse_proxy: ReverseProxy | None`."""

    def call(*arguments: Any, **values: Any) -> T:
        targets = values.pop("targets")
        parts = {name: values.pop(name) for name in _PARTS}
        _check_combination(targets, parts, values)
        made = _make(targets, parts) if targets else None
        if made is not None and parts["print_objects"]:
            click.echo(_HEAD + made.render(keys=False), nl=False)
            raise click.exceptions.Exit(0)
        return command(*arguments, reverse_proxy=made, **values)

    wrapped = functools.wraps(command)(call)
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _check_combination(
    targets: tuple[str, ...], parts: dict[str, Any], others: dict[str, Any]
) -> None:
    if not targets:
        for name, (flag, default) in _PARTS.items():
            if parts[name] != default:
                raise click.UsageError(f"{flag} needs --to URL, the backend to serve")
        if not others["files"]:
            raise click.UsageError(
                "pass -f FILE to serve Gateway API objects, or --to URL to serve a backend "
                "without a file; edgefast init writes a first file, edgefast demo needs no input"
            )
        return
    for name, (flag, default) in _OTHERS.items():
        if others[name] != default:
            raise click.UsageError(
                f"{flag} cannot be combined with --to, which makes all objects; to extend them, "
                "write them to a file: edgefast run --to URL --print > gateway.yaml"
            )


def _make(texts: tuple[str, ...], parts: dict[str, Any]) -> ReverseProxy:
    """Return what the options describe; raises BadParameter with the option, the allowed values and the fix."""
    for name, given, most in (("--to", texts, MAX_TARGETS), ("--host", parts["hosts"], MAX_HOSTS)):
        if len(given) > most:
            raise click.BadParameter(
                f"given {len(given)} times (at most {most})", param_hint=f"'{name}'"
            )
    targets = _parse_targets(texts, parts["to_server_name"] or "")
    for name, flag in (("to_ca", "--to-ca"), ("to_server_name", "--to-server-name"), ("rewrite_host", "--rewrite-host")):  # fmt: skip
        if parts[name] and all(one.scheme != "https" for one in targets):
            raise click.UsageError(f"{flag} needs an https target: --to https://HOST")
    listen = parts["listen"] or Address(EVERYWHERE, _PORT if parts["tls"] is None else _TLS_PORT)
    made = ReverseProxy(
        targets=targets,
        hosts=tuple(dict.fromkeys(parts["hosts"])),
        listen=listen,
        tls=parts["tls"],
        redirect_port=_check_redirect(parts, listen),
        ca=parts["to_ca"],
        rewrite_host=parts["rewrite_host"],
    )
    if why := made.check():
        raise click.BadParameter(why, param_hint="'--to'")
    for flag, one in (
        ("--tls", msgspec.structs.replace(made, ca=None)),
        ("--to-ca", msgspec.structs.replace(made, tls=None)),
    ):
        try:
            one.read()
        except OSError as error:
            raise click.BadParameter(str(error.strerror or error), param_hint=f"'{flag}'") from None
    return made


def _check_redirect(parts: dict[str, Any], listen: Address) -> int:
    """Return the port of `--redirect-http`, 0 without the option. It belongs to the same Gateway as `listen`."""
    redirect: Address | None = parts["redirect_http"]
    if redirect is None:
        return 0
    if parts["tls"] is None:
        raise click.UsageError(
            "--redirect-http needs --tls CERT,KEY, because it redirects HTTP requests to HTTPS"
        )
    if redirect.host not in (EVERYWHERE, listen.host):
        raise click.BadParameter(
            f"{redirect.host} is not the address of --listen ({listen}); write :{redirect.port}",
            param_hint="'--redirect-http'",
        )
    if redirect.port == listen.port:
        raise click.BadParameter(
            f"{redirect.port} is the port of --listen, which serves HTTPS; use another port",
            param_hint="'--redirect-http'",
        )
    return redirect.port


def _parse_targets(texts: tuple[str, ...], server_name: str) -> tuple[Target, ...]:
    try:
        return tuple(dict.fromkeys(parse_target(one, server_name) for one in texts))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--to'") from None
