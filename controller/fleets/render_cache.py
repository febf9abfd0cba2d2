"""RenderCache: manifests of all fleets, rendered again only when the fleet or the placement has changed.

In: the fleets of a translation, the placement, and the issuer of client certificates.
Out: manifests by fleet. An unchanged fleet keeps the identical sequence, so that the Applier finds
changes at once.
Must never: keep data of a removed fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from controller.fleets.metadata import adopt
from controller.fleets.placement import Manifest, Placement
from controller.fleets.render import render_fleet
from edgefast import ir

#: Makes the Secret of a client certificate: (namespace, fleet) -> manifest, the same one until it is renewed.
ClientSecret = Callable[[str, str], Manifest]


class RenderCache:
    """Keeps what was rendered last."""

    def __init__(self, client_secret: ClientSecret | None = None) -> None:
        """`client_secret`: None where proxies show tokens (Gateway Namespace mode)."""
        self._client_secret = client_secret
        self._before: dict[
            str, tuple[ir.Infra, Placement, Manifest | None, tuple[Manifest, ...]]
        ] = {}

    def render(
        self, fleets: Iterable[ir.Infra], place: Placement
    ) -> Mapping[str, tuple[Manifest, ...]]:
        """Return the manifests of each fleet, by "namespace/name"."""
        now = {}
        for infra in fleets:
            key = f"{infra.namespace}/{infra.name}"
            secret = (
                self._client_secret(infra.namespace, infra.name) if self._client_secret else None
            )
            before = self._before.get(key)
            if before is not None and before[:3] == (infra, place, secret):
                now[key] = before
                continue
            manifests = render_fleet(infra, place)
            if secret is not None:
                manifests = (adopt(secret, infra, place), *manifests)
            now[key] = (infra, place, secret, manifests)
        self._before = now
        return {key: one[3] for key, one in now.items()}
