"""The `edgefast-controller` command: `run` (the control plane), `certgen` (its first certificates), `version`.

In: the command line.
Out: a process that controls until SIGTERM; exit status 0 after an orderly end, 1 when it cannot
start or continue, 2 for wrong usage or an invalid configuration. The subcommand that needs a large
module imports it.
Must never: contain logic of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from controller.options import Options
from edgefast import __version__
from edgefast.daemon.logs import LEVELS
from edgefast.httpd.address import Address, parse_address

__all__ = ["main"]

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, path_type=Path)


def _address(_: click.Context, parameter: click.Parameter, value: str | None) -> Address | None:
    if value is None:
        return None
    try:
        return parse_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


def _at(name: str, default: str | None, text: str) -> Callable[[F], F]:
    return click.option(
        name, default=default, show_default=True, metavar="ADDRESS", callback=_address, help=text
    )


def _cluster_options(command: F) -> F:
    for option in (
        click.option("--context", help="Context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Kubeconfig.  [default: the pod's ServiceAccount, $KUBECONFIG, ~/.kube/config]",
        ),
        click.option(
            "--cluster-domain",
            default="cluster.local",
            show_default=True,
            help="DNS domain of the cluster.",
        ),
        click.option(
            "--name",
            default="edge-gateway",
            show_default=True,
            help="Name of the controller's Service.",
        ),
        click.option(
            "--namespace",
            default="edge-gateway-system",
            show_default=True,
            help="Namespace of the controller.",
        ),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Run the control plane of edgefast: it watches a cluster, configures proxies and writes statuses.

    \b
    Examples:
      # Run the controller
      edgefast-controller run
      # Create its certificates
      edgefast-controller certgen
      # Show its version
      edgefast-controller version
    """


@main.command()
def version() -> None:
    """Show the version of the controller.

    \b
    Examples:
      # Print the version
      edgefast-controller version
    """
    click.echo(f"edgefast-controller {__version__}")


@main.command()
@_cluster_options
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace existing certificates. Certificates of the old authority are not trusted any "
    "more.",
)
@click.option(
    "--rotate",
    is_flag=True,
    help="Add a new authority. The old one stays trusted until the new one is in use.",
)
def certgen(
    namespace: str,
    name: str,
    cluster_domain: str,
    kubeconfig: Path | None,
    context: str | None,
    overwrite: bool,
    rotate: bool,
) -> None:
    """Create the certificate authority and the certificate of the controller. Existing ones are kept.

    \b
    Examples:
      # Create missing certificates
      edgefast-controller certgen
      # Replace the certificate authority with an overlap
      edgefast-controller certgen --rotate
      # Create the certificates in another namespace
      edgefast-controller certgen --namespace gateways
    """
    import asyncio

    from controller.certs.certgen import CertgenError
    from controller.certs.certgen import certgen as make
    from controller.kube.access import AccessError
    from controller.kube.client import Kube
    from controller.kube.errors import ApiError

    async def work() -> list[str]:
        async with await Kube.open(kubeconfig, context) as kube:
            return await make(
                kube,
                namespace,
                name=name,
                domain=cluster_domain,
                overwrite=overwrite,
                rotate=rotate,
            )

    try:
        for line in asyncio.run(work()):
            click.echo(line)
    except (AccessError, ApiError, CertgenError) as error:
        raise click.ClickException(str(error)) from None


@main.command()
@_cluster_options
@click.option(
    "--config",
    type=_FILE,
    metavar="FILE",
    help="File with the EdgeGateway configuration. Changes are applied.",
)
@click.option(
    "--certs",
    default="/certs",
    show_default=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with tls.crt, tls.key and ca.crt of the controller. Changes are applied.",
)
@click.option("--proxy-image", default="edgefast/proxy:latest", help="Container image of proxies.")
@click.option("--proxy-pull-policy", default="", help="imagePullPolicy of proxies.")
@click.option("--proxy-pull-secret", multiple=True, help="imagePullSecrets of proxies.")
@click.option(
    "--pod-name",
    envvar="POD_NAME",
    default="edge-gateway",
    help="Name of this pod.  [env: POD_NAME]",
)
@click.option(
    "--pod-ip", envvar="POD_IP", default="127.0.0.1", help="IP address of this pod.  [env: POD_IP]"
)
@_at(
    "--xds",
    ":18000",
    "Address of the config stream for client certificates, or for tokens in Gateway Namespace "
    "mode.",
)
@_at(
    "--xds-token",
    ":18001",
    "Address of the config stream for tokens. Controller Namespace mode refuses all calls to "
    "it. off disables it.",
)
@_at("--relay", ":18002", "Address for acknowledgements from other replicas. off disables it.")
@_at("--probes", ":8081", "Address of /healthz and /readyz. off disables it.")
@_at("--metrics", ":19001", "Address of /metrics. off disables it.")
@_at(
    "--admin",
    None,
    "Address of the admin server: dump, fleets, log level.  [default: admin.address of the "
    "configuration]",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    help="Least severe log lines to write.  [default: logging.level of the configuration]",
)
def run(
    namespace: str,
    name: str,
    cluster_domain: str,
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    certs: Path,
    proxy_image: str,
    proxy_pull_policy: str,
    proxy_pull_secret: tuple[str, ...],
    pod_name: str,
    pod_ip: str,
    xds: Address | None,
    xds_token: Address | None,
    relay: Address | None,
    probes: Address | None,
    metrics: Address | None,
    admin: Address | None,
    log_level: str | None,
) -> None:
    """Run the controller until SIGTERM.

    \b
    Examples:
      # Run in a pod with the default settings
      edgefast-controller run
      # Run with a configuration file and debug lines
      edgefast-controller run --config edge-gateway.yaml --log-level debug
      # Run outside the cluster, with the certificates in a folder
      edgefast-controller run --context test --certs certs --admin 127.0.0.1:19000
    """
    # The components log these errors better than gRPC's own threads.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    options = Options(
        config=config,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        name=name,
        cluster_domain=cluster_domain,
        certs=certs,
        proxy_image=proxy_image,
        proxy_pull_policy=proxy_pull_policy,
        proxy_pull_secrets=proxy_pull_secret,
        pod_name=pod_name,
        pod_ip=pod_ip,
        xds=xds,
        xds_token=xds_token,
        relay=relay,
        probes=probes,
        metrics=metrics,
        admin=admin,
    )
    try:
        from controller.serve import serve
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed: pip install 'edgefast[controller]'"
        ) from None
    sys.exit(serve(options, log_level))


if __name__ == "__main__":
    main()
