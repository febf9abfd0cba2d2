"""Overview: the statuses of a cluster, as the rows of `edgefast status`.

In: GatewayClasses, Gateways, ListenerSets, routes and policies as the API server returns them.
Out: rows, and every condition that reports a problem, with its text. The entries of all controllers
are included, with the controller in the row. Pure. It also finds errors that no controller writes
into a status: references to a missing Gateway or class, and classes without a controller.
Must never: evaluate anything else; it shows the statuses as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from controller.status.shape import is_bad
from edgefast.api.ingress.ingress import CLASS_ANNOTATION
from edgefast.api.model.route_name import name_of, route_key
from edgefast.cli.status_model import (
    ClassRow,
    GatewayRow,
    IngressRow,
    ListenerRow,
    ListenerSetRow,
    ProblemRow,
    RouteRow,
)

Json = dict[str, Any]

#: What the CRDs put into a status before anybody has looked at the object.
_PENDING = ("Unknown", "Pending")


class Overview(msgspec.Struct, frozen=True):
    """Rows by kind; problems in the order of the objects."""

    classes: tuple[ClassRow, ...]
    gateways: tuple[GatewayRow, ...]
    listeners: tuple[ListenerRow, ...]  # of Gateways, then of ListenerSets
    listener_sets: tuple[ListenerSetRow, ...]
    routes: tuple[RouteRow, ...]  # one for each parent
    problems: tuple[ProblemRow, ...]


def make_overview(
    classes: Sequence[Json],
    gateways: Sequence[Json],
    routes: Sequence[Json],
    listener_sets: Sequence[Json] = (),
    policies: Sequence[Json] = (),
    others: Mapping[str, Sequence[Json]] = {},
    own: Mapping[str, Sequence[Json]] = {},
    *,
    namespace: str | None = None,
) -> Overview:
    """Return the overview; objects in the order given. `namespace`: that the objects are of, None is all.

    `policies`: BackendTLSPolicies, `others`: routes of other kinds, `own`: policies of our own, by kind.
    """
    return Overview(
        classes=tuple(
            ClassRow(
                name=_name(one),
                controller=one["spec"]["controllerName"],
                accepted=_state(_conditions(one), "Accepted"),
            )
            for one in classes
        ),
        gateways=tuple(map(_gateway_row, gateways)),
        listeners=(
            *(row for one in gateways for row in _listener_rows(one, _name(one), "")),
            *(
                row
                for one in listener_sets
                for row in _listener_rows(one, _gateway_of(one), f"{_name(one)}/")
            ),
        ),
        listener_sets=tuple(map(_listener_set_row, listener_sets)),
        routes=(
            *(row for one in routes for row in _route_rows("HTTPRoute", one)),
            *(row for kind in others for one in others[kind] for row in _route_rows(kind, one)),
        ),
        problems=tuple(
            problem
            for kind, objects in (
                ("GatewayClass", classes),
                ("Gateway", gateways),
                ("ListenerSet", listener_sets),
                ("HTTPRoute", routes),
                *others.items(),
                ("BackendTLSPolicy", policies),
                *own.items(),
            )
            for one in objects
            for problem in _problems(kind, one)
        )
        + (
            *_find_unanswered(classes),
            *_find_classless(gateways, classes),
            *_find_parentless({"HTTPRoute": routes, **others}, gateways, namespace),
        ),
    )


def _find_unanswered(classes: Sequence[Json]) -> Iterator[ProblemRow]:
    """Name the classes that no controller has accepted."""
    for one in classes:
        conditions = _conditions(one)
        if not _state(conditions, "Accepted") and not any(map(is_bad, conditions)):
            controller = one["spec"]["controllerName"]
            message = (
                f"spec.controllerName: no controller {controller} has accepted the class; its Gateways are not served; start that "
                "controller, or correct the name"
            )
            name = f"GatewayClass {_name(one)}"
            yield ProblemRow(object=name, condition="Accepted", reason="Pending", message=message)


def _find_classless(gateways: Sequence[Json], classes: Sequence[Json]) -> Iterator[ProblemRow]:
    """Name the Gateways with a missing class: no controller writes their status."""
    known = {_name(one) for one in classes}
    for one in gateways:
        wanted = one["spec"]["gatewayClassName"]
        if wanted not in known:
            message = (
                f"spec.gatewayClassName: GatewayClass {wanted} not found; the Gateway is not served"
            )
            name = f"Gateway {_name(one)}"
            yield ProblemRow(object=name, condition="Accepted", reason="NotFound", message=message)


def _find_parentless(
    routes: Mapping[str, Sequence[Json]], gateways: Sequence[Json], namespace: str | None
) -> Iterator[ProblemRow]:
    """Name the routes with a missing Gateway: no controller writes a status for that parent."""
    known = {_name(one) for one in gateways}
    for kind, objects in routes.items():
        for one in objects:
            for at, ref in enumerate(one["spec"].get("parentRefs") or ()):
                place = ref.get("namespace") or one["metadata"]["namespace"]
                seen = namespace is None or place == namespace  # Gateways of others are not listed
                wanted = f"{place}/{ref['name']}"
                if ref.get("kind", "Gateway") != "Gateway" or not seen or wanted in known:
                    continue
                message = f"spec.parentRefs[{at}]: Gateway {wanted} not found; no request reaches the route through it"
                name = f"{kind} {_name(one)}"
                yield ProblemRow(
                    object=name, condition="Accepted", reason="NotFound", message=message
                )


def _name(one: Json) -> str:
    meta = one["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _conditions(one: Json) -> list[Json]:
    return list((one.get("status") or {}).get("conditions") or ())


def _state(conditions: Sequence[Json], type_: str) -> str:
    """Return "True", "False", "Unknown", or "" where nobody has said anything.

    A controller that answers for an object no more says what the CRDs say too, and of which generation.
    """
    found = next((one for one in conditions if one["type"] == type_), None)
    if found is None:
        return ""
    if (found["status"], found["reason"]) == _PENDING and "observedGeneration" not in found:
        return ""
    return str(found["status"])


def _gateway_row(one: Json) -> GatewayRow:
    addresses = [address["value"] for address in (one.get("status") or {}).get("addresses") or ()]
    conditions = _conditions(one)
    return GatewayRow(
        name=_name(one),
        gateway_class=one["spec"]["gatewayClassName"],
        addresses=tuple(addresses),
        accepted=_state(conditions, "Accepted"),
        programmed=_state(conditions, "Programmed"),
    )


def make_ingress_rows(ingresses: Sequence[Json]) -> tuple[IngressRow, ...]:
    """Return a row for each Ingress, whichever controller serves it."""
    return tuple(map(_ingress_row, ingresses))


def _ingress_row(one: Json) -> IngressRow:
    spec = one["spec"]
    notes = one["metadata"].get("annotations") or {}
    addresses = ((one.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    hosts = [rule.get("host") or "*" for rule in spec.get("rules") or ()]
    if not hosts and spec.get("defaultBackend"):
        hosts = ["*"]
    return IngressRow(
        name=_name(one),
        ingress_class=spec.get("ingressClassName") or notes.get(CLASS_ANNOTATION, ""),
        hostnames=tuple(dict.fromkeys(hosts)),
        addresses=tuple(at.get("ip") or at.get("hostname", "") for at in addresses),
    )


def _gateway_of(listener_set: Json) -> str:
    ref = listener_set["spec"]["parentRef"]
    return f"{ref.get('namespace') or listener_set['metadata']['namespace']}/{ref['name']}"


def _listener_set_row(one: Json) -> ListenerSetRow:
    conditions = _conditions(one)
    return ListenerSetRow(
        name=_name(one),
        gateway=_gateway_of(one),
        accepted=_state(conditions, "Accepted"),
        programmed=_state(conditions, "Programmed"),
    )


def _listener_rows(one: Json, gateway: str, place: str) -> Iterator[ListenerRow]:
    """Give the listeners of a Gateway or of a ListenerSet, whose names have a `place` before them."""
    message = {row["name"]: row for row in (one.get("status") or {}).get("listeners") or ()}
    for listener in one["spec"].get("listeners") or ():
        status = message.get(listener["name"], {})
        yield ListenerRow(
            gateway=gateway,
            name=f"{place}{listener['name']}",
            port=listener["port"],
            protocol=listener["protocol"],
            hostname=listener.get("hostname") or "*",
            routes=status.get("attachedRoutes"),
            programmed=_state(status.get("conditions") or (), "Programmed"),
        )


def _route_rows(kind: str, one: Json) -> Iterator[RouteRow]:
    meta = one["metadata"]
    name = name_of(route_key(kind, meta["namespace"], meta["name"]))
    hostnames = tuple(one["spec"].get("hostnames") or ())
    entries = (one.get("status") or {}).get("parents") or ()
    for entry in entries:
        conditions = entry["conditions"]
        yield RouteRow(
            name=name,
            hostnames=hostnames,
            parent=_parent(entry["parentRef"]),
            accepted=_state(conditions, "Accepted"),
            resolved=_state(conditions, "ResolvedRefs"),
        )
    if not entries:
        yield RouteRow(name=name, hostnames=hostnames)


def _parent(ref: Json) -> str:
    where = f"{ref['namespace']}/" if ref.get("namespace") else ""
    section = f"#{ref['sectionName']}" if ref.get("sectionName") else ""
    port = f":{ref['port']}" if ref.get("port") else ""
    return f"{where}{ref['name']}{section}{port}"


def _problems(kind: str, one: Json) -> Iterator[ProblemRow]:
    name = f"{kind} {_name(one)}"
    status = one.get("status") or {}
    yield from _bad(name, status.get("conditions") or ())
    for listener in status.get("listeners") or ():
        yield from _bad(f"{name} listener {listener['name']}", listener.get("conditions") or ())
    for entry in status.get("parents") or ():
        yield from _bad(f"{name} at {_parent(entry['parentRef'])}", entry["conditions"])
    for entry in status.get("ancestors") or ():
        yield from _bad(f"{name} at {_parent(entry['ancestorRef'])}", entry["conditions"])


def _bad(name: str, conditions: Sequence[Json]) -> Iterator[ProblemRow]:
    for one in conditions:
        if is_bad(one):
            yield ProblemRow(
                object=name,
                condition=one["type"],
                reason=one["reason"],
                message=one.get("message", ""),
                severity="warning" if one["reason"] == "CertificateExpiring" else "error",
            )
