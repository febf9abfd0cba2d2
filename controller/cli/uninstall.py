"""`edgefast uninstall`: removes the objects that `edgefast install` applied.

In: a release, a kubeconfig.
Out: one or two lines. CRDs stay, because their removal would delete objects of users. Certificates
stay without `--purge`, because running proxies trust them. The namespace stays. The controller's
fleets without an owner are removed; fleets that serve Gateways stay and are listed. Statuses are
reset to Unknown.
Must never: remove an object without the release's label.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from controller.cli.install import make_release, release_options
from controller.manifests.naming import Release

_NAMED = 5  # fleets that serve on, by name


@click.command()
@release_options
@click.option(
    "--purge", is_flag=True, help="Delete the certificate authority and the certificate, too."
)
@click.pass_context
def uninstall(
    ctx: click.Context,
    release_name: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    purge: bool,
) -> None:
    """Remove the controller from a cluster; Gateways and CRDs stay.

    \b
    Examples:
      # Remove the controller
      edgefast uninstall
      # Remove its certificates, too
      edgefast uninstall --purge
      # Remove an installation with another name
      edgefast uninstall --release blue
    """
    try:
        from controller.cli.rollout import Refused
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error}: pip install 'edgefast[controller]'") from None
    release = make_release(release_name, namespace)
    try:
        gone, serving = asyncio.run(_uninstall(release, kubeconfig, context, purge))
    except Refused as error:
        click.echo(f"edgefast uninstall: {error}", err=True)
        ctx.exit(1)
    click.echo(f"removed: {gone} objects of release {release.name}")
    if serving:
        named = ", ".join(serving[:_NAMED]) + (" ..." if len(serving) > _NAMED else "")
        click.echo(
            f"{len(serving)} fleets still serve their last table, and no controller removes "
            f"them: {named} (delete Gateways before their controller, or delete the fleets by "
            "label app.kubernetes.io/managed-by=edge-gateway)"
        )


async def _uninstall(
    release: Release, kubeconfig: Path | None, context: str | None, purge: bool
) -> tuple[int, list[str]]:
    from controller.cli.leftover_fleets import find_leftover_fleets, remove_fleets
    from controller.cli.rollout import check_helm, opened, remove
    from controller.cli.status_cleanup import clean_up_statuses
    from controller.fleets.placement import Placement
    from controller.kube.apis import api_of
    from controller.kube.status_author import author_of
    from controller.status.api import SystemClock

    async with opened(kubeconfig, context) as kube:
        await check_helm(kube, release)
        fleets = await find_leftover_fleets(kube, release)
        gone = await remove(kube, release)
        gone += await remove_fleets(kube, fleets.unanswered)
        place = Placement(image="", ca="", namespace=release.namespace, name=release.base)
        await clean_up_statuses(kube, author_of(place.identity), fleets, SystemClock().stamp())
        if purge:
            secret = api_of("v1", "Secret")
            for name in (release.base, release.authority, release.tickets):
                gone += await kube.delete(secret.path(release.namespace, name))
        return gone, sorted(fleets.serving)
