"""Ingress options: which Ingresses a subcommand serves, and at which ports.

In: the command line. Out: `IngressSettings` as the argument `ingress` of the subcommand.
Must never: read a file.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from edgefast.translate.settings import IngressSettings

__all__ = ["KeyType", "ingress_options"]

F = TypeVar("F", bound=Callable[..., Any])

_KEY = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PORT = click.IntRange(1, 65535)


class KeyType(click.ParamType[str]):
    """NAMESPACE/NAME of an object."""

    name = "NAMESPACE/NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _KEY.fullmatch(str(value)):
            self.fail(f'"{value}" (expected NAMESPACE/NAME)', param, ctx)
        return str(value)


_OPTIONS = (
    click.option(
        "--ingress-class",
        "ingress_classes",
        multiple=True,
        metavar="NAME",
        help="Serve Ingresses of this class, such as nginx. Repeatable. By default: IngressClasses "
        "with the controller gateway.edge.io/ingress-controller; edgefast convert adds k8s.io/ingress-nginx.",
    ),
    click.option(
        "--ingress-http",
        type=_PORT,
        default=80,
        show_default=True,
        metavar="PORT",
        help="HTTP port of Ingresses.",
    ),
    click.option(
        "--ingress-https",
        type=_PORT,
        default=443,
        show_default=True,
        metavar="PORT",
        help="HTTPS port of Ingresses.",
    ),
    click.option(
        "--ingress-config",
        type=KeyType(),
        metavar="NAMESPACE/NAME",
        help="ConfigMap with the settings of ingress-nginx. By default: the only one called "
        "ingress-nginx-controller.",
    ),
    click.option(
        "--ingress-certificate",
        type=KeyType(),
        metavar="NAMESPACE/NAME",
        multiple=True,
        help="Secret with the certificate for hosts of Ingresses without one. Give the option twice for two key types "
        "(RSA and ECDSA).",
    ),
)


def ingress_options(command: F) -> F:
    """Add the options; the subcommand gets their values as `ingress`."""

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        ingress_classes: tuple[str, ...],
        ingress_http: int,
        ingress_https: int,
        ingress_config: str | None,
        ingress_certificate: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        if ingress_http == ingress_https:
            raise click.UsageError("--ingress-http and --ingress-https: the ports must differ")
        if len(ingress_certificate) > 2:
            raise click.UsageError(
                "--ingress-certificate can be given at most twice, once for each key type"
            )
        first, second = (*ingress_certificate, "", "")[:2]
        ingress = IngressSettings(
            classes=tuple(dict.fromkeys(ingress_classes)),
            http_port=ingress_http,
            https_port=ingress_https,
            config_map=ingress_config or "",
            certificate=first,
            additional_certificate=second,
        )
        return command(*args, ingress=ingress, **rest)

    made: Any = wrapped
    for option in reversed(_OPTIONS):
        made = option(made)
    return made  # type: ignore[no-any-return]
