"""LeftoverFleets: the fleets of an installation that will be removed.

In: an API server, a release, its controllerName.
Out: two lists. The first contains the fleets without a responsible controller: their Gateway or
class is gone, or the class has another controllerName. A controller keeps these
(controller/fleets/ownership.py), and without a controller they would stay forever, so they are
removed. The second contains the fleets that still serve a Gateway.
Must never: remove an object that this installation did not create, or a fleet that its Gateways
need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from controller.fleets.fleet_owner import Owner, owner_of
from controller.fleets.managed_objects import is_ours
from controller.fleets.object_ref import APPLIED, WORKLOADS, ObjectRef
from controller.fleets.placement import Placement
from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.manifests.naming import CONFIG_KEY, Release
from edgefast.api.decode.decode import decode_config
from edgefast.translate.fleet.fleet import label_value

__all__ = ["LeftoverFleets", "find_leftover_fleets", "owners_of", "remove_fleets"]

_GATEWAY = "gateway.networking.k8s.io/v1"


class LeftoverFleets(msgspec.Struct, frozen=True):
    """Fleets by "namespace/name", with the objects that each is made of and their uids."""

    unanswered: Mapping[str, Mapping[ObjectRef, str]]
    serving: Mapping[str, Mapping[ObjectRef, str]]
    owners: Mapping[str, Owner] = {}  # of all of them


async def find_leftover_fleets(kube: Kube, release: Release) -> LeftoverFleets:
    """Look; before the release's ConfigMap is removed, which has the controllerName."""
    place = Placement(image="", ca="", namespace=release.namespace, name=release.base)
    fleets: dict[str, dict[ObjectRef, str]] = {}
    owners: dict[str, Owner] = {}
    for kind in APPLIED:
        for one in await kube.list_all(APIS[kind], label_selector=place.selector):
            if not is_ours(one, place.identity):
                continue
            meta = one["metadata"]
            ref = ObjectRef(kind[1], meta["namespace"], meta["name"])
            fleets.setdefault(ref.fleet, {})[ref] = meta["uid"]
            owners[ref.fleet] = owner_of(meta.get("labels") or {})
    if not fleets:
        return LeftoverFleets({}, {})
    served = find_served(
        await _read_name(kube, release),
        await _list(kube, "GatewayClass"),
        await _list(kube, "Gateway"),
    )
    return LeftoverFleets(
        {fleet: refs for fleet, refs in fleets.items() if owners[fleet] not in served},
        {fleet: refs for fleet, refs in fleets.items() if owners[fleet] in served},
        owners,
    )


def find_served(
    controller: str, classes: Sequence[Mapping[str, Any]], gateways: Sequence[Mapping[str, Any]]
) -> set[Owner]:
    """Return whose fleets are answered for under a controllerName; with "" (nobody knows it), all whose owner is there."""
    ours = {
        one["metadata"]["name"]
        for one in classes
        if controller in ("", one["spec"]["controllerName"])
    }
    served: set[Owner] = set()
    for one in gateways:
        if one["spec"]["gatewayClassName"] in ours:
            served |= owners_of(one)
    return served


def owners_of(gateway: Mapping[str, Any]) -> set[Owner]:
    """Return what fleets that serve a Gateway may say of whose they are: its own, or one of its class."""
    namespace = gateway["metadata"]["namespace"]
    gateway_class = label_value(gateway["spec"]["gatewayClassName"])
    return {
        Owner(namespace, label_value(gateway["metadata"]["name"])),
        Owner("", "", gateway_class),
        Owner(namespace, "", gateway_class),
    }


async def remove_fleets(kube: Kube, fleets: Mapping[str, Mapping[ObjectRef, str]]) -> int:
    """Remove fleets, workloads first; return how many objects there were."""
    gone = 0
    for refs in fleets.values():
        for ref in sorted(refs, key=lambda one: (one.kind not in WORKLOADS, one.order)):
            version = next(version for version, kind in APPLIED if kind == ref.kind)
            path = APIS[version, ref.kind].path(ref.namespace, ref.name)
            gone += await kube.delete(path, uid=refs[ref])
    return gone


async def _read_name(kube: Kube, release: Release) -> str:
    path = APIS["v1", "ConfigMap"].path(release.namespace, release.config)
    try:
        found = await kube.get(path)
    except ApiError as error:
        if error.not_found:
            return ""
        raise
    config, _ = decode_config((found.get("data") or {}).get(CONFIG_KEY, "").encode(), path)
    return config.gateway.controller_name if config is not None else ""


async def _list(kube: Kube, kind: str) -> Sequence[Mapping[str, Any]]:
    try:
        return await kube.list_all(APIS[_GATEWAY, kind])
    except ApiError as error:
        if error.not_found:
            return ()  # there is no such kind, so there are none of it
        raise
