"""`python -m cluster.tools [NAME...]`: build and fetch what the cluster tests need and what is not there yet.

In: names of programs, none for all that cluster tests need. Out: nothing when all is there; progress otherwise.
Must never: need the network, or Go, once everything is there.
"""

from __future__ import annotations

import sys

import click

from cluster.tools.api_fields import CHANNELS, RELEASES
from cluster.tools.build import PROGRAMS, build
from cluster.tools.cert_manager_crds import cert_manager_crds
from cluster.tools.crds import gateway_api_crds
from cluster.tools.examples import gateway_api_examples
from cluster.tools.ingress_files import ingress_files
from cluster.tools.missing import MissingTool
from cluster.tools.versions import OLDER_GATEWAY_API
from cluster.world.box import build_box

#: The conformance suites and Envoy Gateway have commands of their own; tests of logins build Hydra when they need it.
_LATER = ("conformance", "conformance-newest", "envoy-gateway", "hydra")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*PROGRAMS]))
def main(names: tuple[str, ...]) -> None:
    """Build NAMES, or all that every test needs."""
    try:
        build(names or [name for name in PROGRAMS if name not in _LATER], click.echo)
        for release in RELEASES:
            gateway_api_examples(release)
            for channel in CHANNELS:
                gateway_api_crds(channel, release)
        gateway_api_crds("standard", OLDER_GATEWAY_API)
        ingress_files()
        cert_manager_crds()
        build_box()
    except (MissingTool, RuntimeError) as error:
        click.echo(f"cluster tools: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
