"""Frontend: classes, Gateways, listeners and their conflicts, which most changes leave as they are.

In: the world, the keyring, and the previous frontend.
Out: a `Frontend`; the identical one when nothing that it depends on differs. It depends on tables
by identity, the settings, and which certificates have expired; not on routes, Services and
endpoints.
Must never: see a route, or change after it was made; its drafts are finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from edgefast.api.snapshot import Key, Snapshot
from edgefast.translate.deps.dependency_facts import GatewayView, World
from edgefast.translate.fleet.merge import merge_gateways
from edgefast.translate.gateway.gateway import GatewayDraft, translate_gateways
from edgefast.translate.gateway.gatewayclass import GatewayClassOutcome, translate_gateway_classes
from edgefast.translate.settings import Settings
from edgefast.translate.tls.keyring import Keyring

#: Tables of a snapshot that no Gateway, class, EdgeProxy or certificate reference leads to. A table that is not named here is
#: looked at: one too many costs time, one too few would be a wrong answer.
ASIDE = frozenset(
    {
        "http_routes",
        "grpc_routes",
        "tls_routes",
        "tcp_routes",
        "udp_routes",
        "services",
        "endpoint_slices",
        "slices_by_service",
        "backend_tls_policies",
        "security_policies",
        "backend_traffic_policies",
        "x_backend_traffic_policies",
        "http_route_filters",
        "rate_limit_filters",
        "backends",
        "x_backends",
        "pods",
        "ingresses",
        "ingress_classes",
    }
)
_TABLES = tuple(name for name in Snapshot.__struct_fields__ if name not in ASIDE)


class Frontend(msgspec.Struct, frozen=True, eq=False):
    """Classes, Gateways, listeners and conflicts of all fleets, kept while their inputs are unchanged.

    `late`: what is wrong with the times of the certificates that were known.
    """

    settings: Settings  # without observations
    addresses: tuple[str, ...]
    retained: tuple[str, ...]
    late: tuple[str, ...]
    classes: dict[str, GatewayClassOutcome]
    gateways: Sequence[GatewayDraft]  # oldest first
    views: Mapping[Key, GatewayView | None]  # None: it exists, but is not ours


def translate_frontend(
    world: World, keyring: Keyring, before: tuple[World, Frontend] | None = None
) -> Frontend:
    """Translate classes and Gateways; `before` is the previous world with its front."""
    settings = world.settings
    if before is not None:
        old, frontend = before
        if (
            _has_same_tables(old.snapshot, world.snapshot)
            and frontend.addresses == settings.addresses
            and frontend.retained == settings.retained
            and frontend.settings == settings.core()
            and frontend.late == keyring.late(settings.now)
        ):
            return frontend
    classes = translate_gateway_classes(world)
    gateways = translate_gateways(world, classes, keyring)
    merge_gateways(gateways, settings)
    views: dict[Key, GatewayView | None] = dict.fromkeys(world.snapshot.gateways)
    views.update((draft.key, draft.view()) for draft in gateways)
    return Frontend(
        settings=settings.core(),
        addresses=settings.addresses,
        retained=settings.retained,
        late=keyring.late(settings.now),
        classes=classes,
        gateways=gateways,
        views=views,
    )


def _has_same_tables(one: Snapshot, other: Snapshot) -> bool:
    return all(getattr(one, name) is getattr(other, name) for name in _TABLES)
