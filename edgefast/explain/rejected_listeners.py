"""Rejected listeners: listeners that would have taken a request, but are not served.

In: the origin's translation (none for a running proxy's table), a port, a hostname.
Out: the nearest `RejectedListener`, with the text of its condition and the place of its mistake.
Must never: name a listener that is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from edgefast import ir
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.diagnostics.problem import ObjectRef
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.explain.explanation import Place
from edgefast.explain.root_cause import correct, find_path
from edgefast.explain.served_fleet import Served
from edgefast.table.match import order_hostnames
from edgefast.translate.conditions.condition import Condition
from edgefast.translate.conditions.status import AnyStatus
from edgefast.translate.translation import Translation

#: Conditions of a listener, the one that says most first.
_TOLD = ("Accepted", "ResolvedRefs", "Programmed", "Conflicted")


class RejectedListener(msgspec.Struct, frozen=True):
    """One listener and why nobody listens for it."""

    name: str  # "default/edge/https"
    hostname: str  # "*" for any
    said: str  # "InvalidCertificateRef Secret default/shop not found"
    place: Place
    fix: str = ""  # what to do about it; only the one that is told of has it

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return words that have a page."""
        return name_reasons(self.said)


def find_rejected_listeners(
    served: Served, port: int, host: str, *, transport: ir.Transport = "TCP"
) -> RejectedListener | None:
    """Return the listener of the port whose hostname is nearest to the host, None when there is none."""
    translation = served.origin.translation
    if translation is None:
        return None
    rank = {name: at for at, name in enumerate(order_hostnames(host))}
    found = [
        one for one in _list_unserved(served, translation, port, transport) if one.hostname in rank
    ]
    nearest = min(found, key=lambda one: rank[one.hostname], default=None)
    if nearest is None:
        return None
    fix = correct(served.origin, nearest.place, nearest.said)
    return msgspec.structs.replace(nearest, fix=fix)


def _list_unserved(
    served: Served, translation: Translation, port: int, transport: ir.Transport
) -> Iterator[RejectedListener]:
    fleets = {one.name: one.gateways for one in translation.infra}
    # None: any. The fleet has nothing to serve, or there is one for all Gateways, accepted or not.
    standalone = translation.memo.world.settings.standalone
    gateways = None if standalone else fleets.get(served.fleet.name)
    for ref, status in translation.statuses.items():
        reported = {one.name: one.conditions for one in getattr(status, "listeners", ())}
        one = translation.memo.world.snapshot.get(ref)
        if not reported or not isinstance(one, Gateway | ListenerSet):
            continue
        whole = _describe_all(ref, status)
        for at, listener in enumerate(one.spec.listeners):
            message = whole or _write_message(ref, reported.get(listener.name, ()))
            gateway, name = _name(ref, one, listener.name)
            if (
                listener.port != port
                or ir.transport_of(listener) != transport
                or not message
                or _is_served(reported.get(listener.name, ()))
            ):
                continue
            if gateways is not None and gateway not in gateways:
                continue
            path = f"spec.listeners[{at}]"
            place = served.origin.place(ref, find_path(ref, message) or path)
            text = message.removeprefix(f"{ref} {place.path}: ")
            yield RejectedListener(name, (listener.hostname or "*").lower(), text, place)


def _is_served(conditions: Sequence[Condition]) -> bool:
    return any(one.type == "Programmed" and one.status == "True" for one in conditions)


def _name(ref: ObjectRef, one: Gateway | ListenerSet, section: str) -> tuple[str, str]:
    """Return the names of the Gateway and of its listener, as the IR has them."""
    own = f"{ref.namespace}/{ref.name}"
    if isinstance(one, Gateway):
        return own, f"{own}/{section}"
    parent = one.spec.parent_ref
    gateway = f"{parent.namespace or ref.namespace}/{parent.name}"
    return gateway, f"{gateway}/{own}/{section}"


def _write_message(ref: ObjectRef, conditions: Sequence[Condition]) -> str:
    """Return why a listener is not served; "" when it is."""
    by_type = {one.type: one for one in conditions}
    for name in _TOLD:
        one = by_type.get(name)
        if one is not None and (one.status == "False") == (name != "Conflicted"):
            first = one.message.partition(f"; {ref} ")[0]
            return first if name_reasons(first) else f"{one.reason} {first}"
    return ""


def _describe_all(ref: ObjectRef, status: AnyStatus) -> str:
    """Return why nothing of a Gateway is served; "" when that is up to its listeners."""
    for one in getattr(status, "conditions", ()):
        if one.type == "Accepted" and one.status == "False" and one.reason != "ListenersNotValid":
            return _write_message(ref, [one])
    return ""
