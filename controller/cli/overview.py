"""overview: what the statuses in a cluster say, as lines for people and plain values for programs.

In: GatewayClasses, Gateways and HTTPRoutes as the API server has them. Out: rows of a table, and every condition that is bad
news with its text. It reads the entries of all controllers: whose they are is in the row. Pure.
Must never: judge anew; it shows what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from controller.status.shape import is_bad

Json = dict[str, Any]

#: What the CRDs put into a status before anybody has looked at the object.
_PENDING = ("Unknown", "Pending")


class Problem(msgspec.Struct, frozen=True):
    """One condition that says that something is wrong."""

    object: str  # "Gateway default/gw listener http"
    type: str
    reason: str
    message: str


class Overview(msgspec.Struct, frozen=True):
    """Rows by kind; problems in the order of the objects."""

    classes: tuple[tuple[str, ...], ...]  # name, controller, accepted
    gateways: tuple[tuple[str, ...], ...]  # name, class, addresses, accepted, programmed
    listeners: tuple[tuple[str, ...], ...]  # Gateway, listener, port, hostname, routes, programmed
    routes: tuple[tuple[str, ...], ...]  # name, hostnames, parent, accepted, resolved
    problems: tuple[Problem, ...]


CLASS_HEADER = ("CLASS", "CONTROLLER", "ACCEPTED")
GATEWAY_HEADER = ("GATEWAY", "CLASS", "ADDRESSES", "ACCEPTED", "PROGRAMMED")
LISTENER_HEADER = ("GATEWAY", "LISTENER", "PORT", "PROTOCOL", "HOSTNAME", "ROUTES", "PROGRAMMED")
ROUTE_HEADER = ("ROUTE", "HOSTNAMES", "PARENT", "ACCEPTED", "REFERENCES")
PROBLEM_HEADER = ("PROBLEM", "CONDITION", "REASON", "MESSAGE")


def make_overview(
    classes: Sequence[Json], gateways: Sequence[Json], routes: Sequence[Json]
) -> Overview:
    """Return the overview; objects in the order given."""
    return Overview(
        classes=tuple(
            (_name(one), one["spec"]["controllerName"], _state(_conditions(one), "Accepted"))
            for one in classes
        ),
        gateways=tuple(map(_gateway_row, gateways)),
        listeners=tuple(row for one in gateways for row in _listener_rows(one)),
        routes=tuple(row for one in routes for row in _route_rows(one)),
        problems=tuple(
            problem
            for kind, objects in (
                ("GatewayClass", classes),
                ("Gateway", gateways),
                ("HTTPRoute", routes),
            )
            for one in objects
            for problem in _problems(kind, one)
        ),
    )


def _name(one: Json) -> str:
    meta = one["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _conditions(one: Json) -> list[Json]:
    return list((one.get("status") or {}).get("conditions") or ())


def _state(conditions: Sequence[Json], type_: str) -> str:
    """Return "True", "False", "Unknown", or "-" where nobody has said anything."""
    found = next((one for one in conditions if one["type"] == type_), None)
    if found is None or (found["status"], found["reason"]) == _PENDING:
        return "-"
    return str(found["status"])


def _gateway_row(one: Json) -> tuple[str, ...]:
    addresses = [address["value"] for address in (one.get("status") or {}).get("addresses") or ()]
    conditions = _conditions(one)
    return (
        _name(one),
        one["spec"]["gatewayClassName"],
        ",".join(addresses) or "-",
        _state(conditions, "Accepted"),
        _state(conditions, "Programmed"),
    )


def _listener_rows(one: Json) -> Iterator[tuple[str, ...]]:
    said = {row["name"]: row for row in (one.get("status") or {}).get("listeners") or ()}
    for listener in one["spec"].get("listeners") or ():
        status = said.get(listener["name"], {})
        yield (
            _name(one),
            listener["name"],
            str(listener["port"]),
            listener["protocol"],
            listener.get("hostname") or "*",
            str(status.get("attachedRoutes", "-")),
            _state(status.get("conditions") or (), "Programmed"),
        )


def _route_rows(one: Json) -> Iterator[tuple[str, ...]]:
    hostnames = ",".join(one["spec"].get("hostnames") or ()) or "*"
    entries = (one.get("status") or {}).get("parents") or ()
    for entry in entries:
        conditions = entry["conditions"]
        yield (
            _name(one),
            hostnames,
            _parent(entry["parentRef"]),
            _state(conditions, "Accepted"),
            _state(conditions, "ResolvedRefs"),
        )
    if not entries:
        yield (_name(one), hostnames, "-", "-", "-")


def _parent(ref: Json) -> str:
    where = f"{ref['namespace']}/" if ref.get("namespace") else ""
    section = f"#{ref['sectionName']}" if ref.get("sectionName") else ""
    port = f":{ref['port']}" if ref.get("port") else ""
    return f"{where}{ref['name']}{section}{port}"


def _problems(kind: str, one: Json) -> Iterator[Problem]:
    name = f"{kind} {_name(one)}"
    status = one.get("status") or {}
    yield from _bad(name, status.get("conditions") or ())
    for listener in status.get("listeners") or ():
        yield from _bad(f"{name} listener {listener['name']}", listener.get("conditions") or ())
    for entry in status.get("parents") or ():
        yield from _bad(f"{name} at {_parent(entry['parentRef'])}", entry["conditions"])


def _bad(name: str, conditions: Sequence[Json]) -> Iterator[Problem]:
    for one in conditions:
        if is_bad(one):
            yield Problem(name, one["type"], one["reason"], one.get("message", ""))
