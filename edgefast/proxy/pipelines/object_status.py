"""Object status: the statuses that a controller would write for the objects of a standalone proxy, as /dump shows them for `status`.

In: a translation.
Out: plain values: classes with their controller, Gateways with their class, routes with their
Gateways, Ingresses with their class, and listeners that are not programmed. Such listeners may be in the table all the same, to
reserve their port and hostname. Conditions are "True", "False" or "Unknown". Computed on request.
Must never: report anything about an object that its status does not contain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.api.model.route_name import name_of, route_key
from edgefast.translate.conditions.condition import Condition
from edgefast.translate.conditions.status import RouteStatus
from edgefast.translate.ingress.classes import class_of
from edgefast.translate.translation import Translation

__all__ = ["list_objects"]


def list_objects(translation: Translation) -> dict[str, list[dict[str, str]]]:
    """Return the objects of ours."""
    statuses, snapshot = translation.statuses, translation.memo.world.snapshot
    classes = []
    for (_, name), of_class in statuses.gateway_classes.items():
        made = snapshot.gateway_classes.get(("", name))
        controller = made.spec.controller_name if made is not None else ""
        accepted = _find(of_class.conditions, "Accepted")
        classes.append({"name": name, "controller": controller, "accepted": accepted})
    gateways = []
    for key, of_gateway in statuses.gateways.items():
        gateway = snapshot.gateways.get(key)
        gateways.append(
            {
                "name": "/".join(key),
                "class": gateway.spec.gateway_class_name if gateway is not None else "",
                "accepted": _find(of_gateway.conditions, "Accepted"),
            }
        )
    return {
        "classes": classes,
        "gateways": gateways,
        "routes": list(_routes(translation)),
        "ingresses": [
            {"name": "/".join(key), "class": class_of(one.ingress) or ""}
            for key, one in translation.memo.expansion.sources.items()
        ],
        "closed": [{"name": name} for name in sorted(statuses.closed_listeners())],
    }


def _routes(translation: Translation) -> Iterator[dict[str, str]]:
    """Give each route once for each Gateway: the worst of what its listeners and ListenerSets tell it."""
    statuses = translation.statuses
    for route, status in statuses.items():
        if not isinstance(status, RouteStatus):
            continue
        kind, namespace, name = route.kind, route.namespace, route.name
        reported: dict[str, tuple[list[str], list[str]]] = {}
        for one in status.parents:
            ref = one.parent_ref
            key = (ref.namespace or namespace, ref.name)
            if ref.kind == "ListenerSet":
                key = statuses.parents.get(key, key)
            accepted, resolved = reported.setdefault("/".join(key), ([], []))
            accepted.append(_find(one.conditions, "Accepted"))
            resolved.append(_find(one.conditions, "ResolvedRefs"))
        for parent, (accepted, resolved) in reported.items():
            yield {
                "name": name_of(route_key(kind, namespace, name)),
                "parent": parent,
                "accepted": _worst(accepted),
                "resolved": _worst(resolved),
            }


def _find(conditions: Iterable[Condition], type_: str) -> str:
    return next((one.status for one in conditions if one.type == type_), "")


def _worst(found: list[str]) -> str:
    return min(found, key=("False", "Unknown", "", "True").index)
