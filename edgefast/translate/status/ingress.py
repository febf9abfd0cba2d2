"""Ingress: statuses of Ingresses: the addresses of the Service that serves them.

In: the Ingresses that are served, the fleets as the controller observes them, the previous statuses. Out: an `IngressStatus` for
each Ingress; all of them are the same object. Standalone has no such statuses. `ingress.publishStatus: false` disables them.
Source: Kubernetes API reference, IngressStatus v1; ingress-nginx internal/ingress/status.
Must never: name an Ingress that is not served, because another controller may write its status.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast.api.ingress.ingress import Ingress
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import EMPTY, SortedMap, find_unlike
from edgefast.netaddr import read_address
from edgefast.translate.conditions.status import (
    IngressAddress,
    IngressLoadBalancerStatus,
    IngressStatus,
)
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.settings import Settings
from edgefast.translate.status.gateway import MAX_ADDRESSES


class IngressStatuses(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all Ingresses, with what they depend on."""

    status: IngressStatus = IngressStatus()
    served: SortedMap[Key, Ingress] = EMPTY
    statuses: SortedMap[Key, IngressStatus] = EMPTY


def compute_ingress_statuses(
    served: SortedMap[Key, Ingress],
    gateways: Iterable[GatewayDraft],
    settings: Settings,
    previous: IngressStatuses,
) -> IngressStatuses:
    """Return the statuses; only those of other Ingresses are made, unless the addresses changed."""
    if settings.standalone or not settings.ingress.publish:
        return IngressStatuses()
    status = _compute(gateways, settings)
    if status == previous.status:
        status = previous.status
        gone, come = find_unlike(previous.served, served)
        draft = previous.statuses.edit()
    else:
        gone, come, draft = {}, dict(served.items()), SortedMap[Key, IngressStatus]().edit()
    for key in gone.keys() - come.keys():
        draft.pop(key, None)
    for key in come:
        draft[key] = status
    return IngressStatuses(status=status, served=served, statuses=draft.done())


def _compute(gateways: Iterable[GatewayDraft], settings: Settings) -> IngressStatus:
    fleets = {one.fleet for one in gateways if one.made}
    found = (
        address
        for state in settings.fleets
        if state.name in fleets and state.namespace in ("", settings.namespace)
        for address in state.addresses
    )
    addresses = [
        IngressAddress(ip=one) if read_address(one) else IngressAddress(hostname=one)
        for one in list(dict.fromkeys(found))[:MAX_ADDRESSES]
    ]
    # As ingress-nginx orders them, so that both controllers write the same.
    addresses.sort(key=lambda one: (one.hostname, one.ip))
    return IngressStatus(load_balancer=IngressLoadBalancerStatus(ingress=tuple(addresses)))
