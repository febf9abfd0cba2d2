"""Status cleanup: resets the statuses of an installation that was removed.

In: an API server, the controllerName of its statuses, its fleets.
Out: Gateways, ListenerSets and GatewayClasses with this controller's status get Unknown for
Accepted and Programmed; addresses stay only while a fleet serves them. Ingresses lose the addresses
that this controller wrote, because their fleet is removed. No other component would
reset them. Readers of a Gateway's address (external-dns) would send requests to an address that
then belongs to another owner.
Source: Gateway API, defaults of `status.conditions`.
Must never: change the status of an object to which another controller has written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from controller.cli.leftover_fleets import LeftoverFleets, owners_of
from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.kube.status_author import find_own_entry
from controller.status.merge import merge_status
from controller.status.shape import Json
from controller.status.stale import mark_unknown

__all__ = ["find_stale_status", "clean_up_statuses"]

#: Condition types of each kind; an Ingress has none.
_TYPES: dict[str, tuple[str, ...]] = {
    "Gateway": ("Accepted", "Programmed"),
    "ListenerSet": ("Accepted", "Programmed"),
    "GatewayClass": ("Accepted",),
    "Ingress": (),
}
_VERSIONS = {"Ingress": "networking.k8s.io/v1"}
_GONE = "its controller has been uninstalled"
_GATEWAY = "gateway.networking.k8s.io/v1"
_TRIES = 3  # of one object that somebody writes at the same time


async def clean_up_statuses(kube: Kube, author: str, fleets: LeftoverFleets, now: str) -> int:
    """Write them; return how many objects had something else to say. The controller is gone, and so is what let it write."""
    message = 0
    for kind in _TYPES:
        api = APIS[_VERSIONS.get(kind, _GATEWAY), kind]
        try:
            listed = await kube.list_all(api)
        except ApiError as error:
            if error.not_found:
                continue  # there is no such kind
            raise
        for one in listed:
            message += await _write_message(kube, kind, one, author, fleets, now)
    return message


async def _write_message(
    kube: Kube, kind: str, found: Json, author: str, fleets: LeftoverFleets, now: str
) -> bool:
    meta = found["metadata"]
    path = APIS[_VERSIONS.get(kind, _GATEWAY), kind].path(meta.get("namespace", ""), meta["name"])
    for _ in range(_TRIES):
        fields = find_stale_status(kind, found, author, fleets, now)
        if fields is None:
            return False
        body = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
            "status": fields,
        }
        try:
            await kube.patch(f"{path}/status", body, query={"fieldManager": author})
            return True
        except ApiError as error:
            if error.not_found:
                return False
            if not error.conflict:
                raise
        found = await kube.get(path)
    return False


def find_stale_status(
    kind: str, found: Json, author: str, fleets: LeftoverFleets, now: str
) -> Json | None:
    """Return the fields of `status` to write, None when the status is not this controller's word, or says so already."""
    if find_own_entry(msgspec.json.encode(found), kind, author) != "ours":
        return None
    present = found.get("status") or {}
    if kind == "Ingress":
        there = (present.get("loadBalancer") or {}).get("ingress")
        return {"loadBalancer": {"ingress": []}} if there else None
    serving = sorted(_serving(found, fleets)) if kind == "Gateway" else []
    message = _GONE
    fields: dict[str, Any] = {}
    if kind == "Gateway":
        rest = "serves its last table" if serving else "this controller does not serve it"
        message += f"; fleet {', '.join(serving)} {rest}" if serving else f"; {rest}"
        fields["addresses"] = present.get("addresses") or [] if serving else []
    wanted = mark_unknown(message, found["metadata"].get("generation", 0), _TYPES[kind], **fields)
    return merge_status(
        kind, found["metadata"].get("namespace", ""), present, wanted, controller="", now=now
    )


def _serving(gateway: Mapping[str, Any], fleets: LeftoverFleets) -> Iterator[str]:
    """Give the fleets that serve a Gateway on."""
    owners = owners_of(gateway)
    return (name for name in fleets.serving if fleets.owners[name] in owners)
