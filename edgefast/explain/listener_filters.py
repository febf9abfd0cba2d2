"""Listener filters: the result of a listener's filters for a request before routing.

In: the served table, the listener, the request's head.
Out: `ListenerFilterResult`: each filter with its result, in their order, and the answer of the
first that refuses. It also lists the authorization services that are called, and has the head as
rules see it. The twin of core/policy/listenerfilters.pyx.
Must never: call a service, or predict its decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from edgefast import ir
from edgefast.explain.explanation import Answer, UnitPart
from edgefast.explain.head import Head
from edgefast.explain.policy_checks import answer_broken, ask_service, drop_names, names_set_by
from edgefast.explain.served_fleet import Served

__all__ = ["ListenerFilterResult", "evaluate_listener_filters", "list_filter_units"]


class ListenerFilterResult(msgspec.Struct, frozen=True):
    """The decisions of a listener's filters for one request, before it is routed."""

    head: Head
    parts: tuple[UnitPart, ...] = ()
    answer: Answer | None = None  # None: nobody refuses, as far as can be known without asking
    asks: tuple[str, ...] = ()  # clusters of services, in order
    says: tuple[str, ...] = ()  # names of headers that rules hear from them alone

    def settle(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """Return the answers of what comes after the filters, if they let the request pass."""
        if not self.asks:
            return tuple(answers)
        return tuple(msgspec.structs.replace(one, asks=(*self.asks, *one.asks)) for one in answers)

    def notes(self) -> Iterator[str]:
        """Say what rules may see that nobody knows before it was asked."""
        if self.says:
            yield (
                f"rules match {', '.join(self.says)} as filters of the listener set them, not "
                "as the client sent them; this can change the matching rule"
            )


def list_filter_units(served: Served, listener: ir.Listener) -> tuple[ir.PolicyUnit, ...]:
    """Return the filters of a listener, in their order; one that is not there is closed."""
    return served.units(listener.filters) if listener.filters else ()


def evaluate_listener_filters(
    served: Served, listener: ir.Listener, head: Head
) -> ListenerFilterResult:
    """Ask the filters of a listener as a worker does: where one is broken, nobody."""
    units = list_filter_units(served, listener)
    if not units:
        return ListenerFilterResult(head)
    services = [one.ext_auth for one in units if not one.status and one.ext_auth is not None]
    names = names_set_by(services)
    seen = drop_names(head, names)
    place = served.origin.listener(listener.name)
    broken = next((one for one in units if one.status or one.ext_auth is None), None)
    answer: Answer | None = answer_broken(broken) if broken is not None else None
    parts: list[UnitPart] = []
    asks: tuple[str, ...] = ()
    for unit in units:
        if unit is broken:
            parts.append(UnitPart(name=unit.name, verdict="broken", why=unit.reason, place=place))
            continue
        if answer is not None or unit.ext_auth is None:
            message = "an earlier filter has answered"
            parts.append(UnitPart(name=unit.name, verdict="not_asked", why=message, place=place))
            continue
        requested = ask_service(served, unit.ext_auth, seen, services)
        parts.append(
            UnitPart(
                name=unit.name,
                verdict=requested.verdict,
                why=requested.why,
                about=requested.about,
                place=place,
            )
        )
        asks += requested.asks
        if requested.answer is not None:
            answer = msgspec.structs.replace(requested.answer, asks=asks)
    says = dict.fromkeys(name for one in services for name in one.to_backend)
    return ListenerFilterResult(seen, tuple(parts), answer, asks, tuple(says))
