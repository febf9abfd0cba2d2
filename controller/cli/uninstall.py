"""`edgefast uninstall`: removes what `edgefast install` has applied.

In: a release, a kubeconfig. Out: one line. CRDs stay, because objects of users would go with them; certificates stay unless
`--purge` says so, because proxies that still run trust them; so does the namespace.
Must never: remove what is not labelled as the release's.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from controller.cli.install import make_release, release_options
from controller.manifests.naming import Release


@click.command()
@release_options
@click.option("--purge", is_flag=True, help="The certificate authority and the certificate too.")
@click.pass_context
def uninstall(
    ctx: click.Context,
    release_name: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    purge: bool,
) -> None:
    """Remove the controller from a cluster; Gateways and CRDs stay."""
    try:
        from controller.cli.rollout import Refused
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error}: pip install 'edgefast[controller]'") from None
    release = make_release(release_name, namespace)
    try:
        gone = asyncio.run(_uninstall(release, kubeconfig, context, purge))
    except Refused as error:
        click.echo(f"edgefast uninstall: {error}", err=True)
        ctx.exit(1)
    click.echo(f"removed: {gone} objects of release {release.name}")


async def _uninstall(
    release: Release, kubeconfig: Path | None, context: str | None, purge: bool
) -> int:
    from controller.cli.rollout import check_helm, opened, remove
    from controller.kube.apis import api_of

    async with opened(kubeconfig, context) as kube:
        await check_helm(kube, release)
        gone = await remove(kube, release)
        if purge:
            secret = api_of("v1", "Secret")
            for name in (release.base, release.authority):
                gone += await kube.delete(secret.path(release.namespace, name))
        return gone
