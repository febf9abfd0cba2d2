"""Gateway: placeholders for Gateways and ListenerSets with an error, which reserve the hostnames of their listeners.

In: the plain value of a document, or of an API server's object, and its errors. Out: an object that
serves nothing (`closed`). It has its class or parent, and the listeners with a readable port and
hostname (readable.py). A listener without them reserves nothing, and `lost` records it, because all
other hosts of a port belong to other listeners. Valid fields that decide about the fleet stay.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import msgspec

from edgefast.api.decode.fail_closed.readable import (
    NAMELESS,
    build,
    field_of,
    is_strange,
    items_of,
    note_closed,
    read_hostnames,
    read_meta,
    read_spec,
)
from edgefast.api.gateway.gateway import (
    AllowedListeners,
    Gateway,
    GatewayInfrastructure,
    GatewaySpec,
    GatewaySpecAddress,
    ListenerNamespaces,
)
from edgefast.api.gateway.listener import (
    AllowedRoutes,
    Listener,
    RouteNamespaces,
)
from edgefast.api.gateway.listenerset import ListenerSet, ListenerSetSpec
from edgefast.api.limits import MAX_CLOSED_PARTS
from edgefast.api.loaded import Path
from edgefast.api.model.reference import ParentGatewayReference
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["close_gateway", "close_listener_set"]

_NAMELESS_PROTOCOLS = ("TCP", "UDP")  # a hostname means nothing in them: the port is the place
_PROTOCOLS = ("HTTP", "HTTPS", *_NAMELESS_PROTOCOLS)
#: Every route may attach: its status then reports the error of the Gateway.
_ANY_ROUTES = AllowedRoutes(namespaces=RouteNamespaces(from_="All"))


def close_gateway(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> Gateway:
    """Return the closed Gateway of an object; without `gateway_class_name` its places cannot be told."""
    spec = read_spec(raw)
    name = field_of(spec, "gatewayClassName", GatewaySpec)
    listeners, lost = _read_listeners(spec, GatewaySpec, repeated)
    addresses = (build(GatewaySpecAddress, one) for one in items_of(spec.get("addresses")))
    allowed, doubtful = _read_allowed(field_of(spec, "allowedListeners", GatewaySpec))
    lost = lost or doubtful
    made = GatewaySpec(
        gateway_class_name=name if isinstance(name, str) else "",
        listeners=listeners,
        addresses=tuple(one for one in addresses if one is not None),
        infrastructure=build(GatewayInfrastructure, spec.get("infrastructure") or {}),
        allowed_listeners=allowed,
    )
    closed = note_closed(first, lost=lost or not made.gateway_class_name)
    return Gateway(metadata=read_meta(raw.get("metadata"), ref), spec=made, closed=closed)


def close_listener_set(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> ListenerSet:
    """Return the closed ListenerSet of an object; with a parent "" its places cannot be told."""
    spec = read_spec(raw)
    given = field_of(spec, "parentRef", ListenerSetSpec)
    given = next(items_of(given), None)
    given = {"name": given} if isinstance(given, str) else given
    parent = build(ParentGatewayReference, given) if isinstance(given, dict) else None
    listeners, lost = _read_listeners(spec, ListenerSetSpec, repeated)
    made = ListenerSetSpec(
        parent_ref=parent or ParentGatewayReference(name=""), listeners=listeners
    )
    closed = note_closed(first, lost=lost or parent is None)
    return ListenerSet(metadata=read_meta(raw.get("metadata"), ref), spec=made, closed=closed)


def _read_allowed(raw: Any) -> tuple[AllowedListeners | None, bool]:
    """Return which sets may attach, and whether that is unreadable: then those of its namespace may, and are not served either."""
    made = None if raw is None else build(AllowedListeners, raw)
    if raw is None or made is not None:
        return made, False
    return AllowedListeners(namespaces=ListenerNamespaces(from_="Same")), True


def _read_listeners(
    spec: dict[str, Any], struct: type[GatewaySpec | ListenerSetSpec], repeated: Collection[Path]
) -> tuple[tuple[Listener, ...], bool]:
    """Return the listeners, and whether the place of one cannot be told."""
    raw = field_of(spec, "listeners", struct)
    items = list(items_of(raw))
    twice = any(path[:2] in (("spec",), ("spec", "listeners")) for path in repeated)
    lost = twice or not items or len(items) > MAX_CLOSED_PARTS
    found: list[Listener] = []
    names: set[str] = set()
    for at, one in enumerate(items[:MAX_CLOSED_PARTS]):
        if len(found) > MAX_CLOSED_PARTS:
            break
        made = list(_read_listener(one, at)) if isinstance(one, dict) else []
        lost = lost or not made
        for listener in made:
            # Each place is kept under a name of its own, also where names are the mistake.
            name = (
                listener.name
                if listener.name not in names
                else f"{listener.name}{NAMELESS}{len(found)}"
            )
            names.add(name)
            found.append(msgspec.structs.replace(listener, name=name))
    return tuple(found[:MAX_CLOSED_PARTS]), lost or len(found) > MAX_CLOSED_PARTS


def _read_listener(raw: dict[str, Any], at: int) -> Iterator[Listener]:
    """Give the listener, once for each of its hostnames; none when its port or hostname is unreadable."""
    port = field_of(raw, "port", Listener)
    if isinstance(port, str) and port.strip().isdecimal():
        port = int(port.strip()[:6])
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
        return
    protocol = str(raw.get("protocol")).upper()
    if protocol not in _PROTOCOLS:
        protocol = "HTTPS" if raw.get("tls") is not None else "HTTP"
    hostnames: tuple[str, ...] = ()
    if protocol not in _NAMELESS_PROTOCOLS:
        hostname = field_of(raw, "hostname", Listener)
        hostnames, _ = read_hostnames(hostname)
        missing = hostname in (None, "") and not is_strange(raw, Listener)
        if not hostnames and not missing:
            return
    name = raw.get("name")
    named = name if isinstance(name, str) and _is_name(name) else f"{at}"
    plain = Listener(
        name=named,
        port=port,
        protocol=protocol,
        allowed_routes=_ANY_ROUTES,
    )
    if not hostnames:
        yield plain
    for number, one in enumerate(islice(hostnames, MAX_CLOSED_PARTS)):
        other = f"{named}-{number}" if number else named
        yield msgspec.structs.replace(plain, name=other, hostname=one)


def _is_name(name: str) -> bool:
    """Tell whether a listener's name is sound."""
    return build(Listener, {"name": name, "port": 1, "protocol": "HTTP"}) is not None
