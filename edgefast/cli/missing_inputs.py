"""Missing inputs: facts that `edgefast diff` cannot know, because files are missing on which requests depend.

In: the translations of OLD and NEW.
Out: sentences; none when all differences were compared. A route has no result before and after if
no given file contains its Gateway, Service or filter. This is an unknown result, and must never
appear as "no changes".
Must never: report objects that are equal on both sides; they change no request, even with missing
references.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from edgefast.api.gateway.layer4_route import AnyRoute
from edgefast.api.kinds import ref_of
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.diagnostics.missing_object import find_absent
from edgefast.translate.translation import Translation

#: Sentences about single objects; the rest are counted.
_SHOWN = 5


def find_unknown(old: Translation, new: Translation, *, changes: bool) -> list[str]:
    """Return what differs and could not be compared; `changes`: others were found, which say enough of backends and filters."""
    if not _serves(old) and not _serves(new):
        return ["neither OLD nor NEW has a listener, so no request can be compared", *_why(new)]
    reported = dict.fromkeys(
        f"{ref} differs and refers to {absent}, which neither OLD nor NEW has"
        for ref, absent in chain(_find_lost(old, new), () if changes else _find_absent(old, new))
    )
    shown = list(reported)[:_SHOWN]
    if len(reported) > _SHOWN:
        shown.append(f"and {len(reported) - _SHOWN} more")
    return shown


def _serves(one: Translation) -> bool:
    return any(fleet.listeners for fleet in one.ir.fleets)


def _why(one: Translation) -> Iterator[str]:
    errors = [problem.line() for problem in one.problems if problem.severity == "error"]
    yield from errors[:_SHOWN]


def _find_lost(old: Translation, new: Translation) -> Iterator[tuple[ObjectRef, ObjectRef]]:
    """Give each route that differs, with each Gateway of it that neither side serves."""
    sides = (old.memo.world, new.memo.world)
    for one in sides:
        routes: Iterator[AnyRoute] = chain(
            one.snapshot.http_routes.values(),
            one.snapshot.grpc_routes.values(),
            one.snapshot.tls_routes.values(),
            one.snapshot.tcp_routes.values(),
            one.snapshot.udp_routes.values(),
        )
        for route in routes:
            others = (side.snapshot.get(ref_of(route)) for side in sides)
            if all(other == route for other in others):
                continue
            for parent in route.spec.parent_refs:
                gateway = (parent.namespace or route.metadata.namespace, parent.name)
                served = any(side.gateways.get(gateway) is not None for side in sides)
                if parent.kind == "Gateway" and not served:
                    yield ref_of(route), ObjectRef("Gateway", *gateway, parent.group)


def _find_absent(old: Translation, new: Translation) -> Iterator[tuple[ObjectRef, ObjectRef]]:
    """Give each object that differs, with each that it names and neither side has."""
    sides = (old.memo.world.snapshot, new.memo.world.snapshot)
    for translation in (old, new):
        for problem in translation.problems:
            absent = find_absent(problem.message)
            if problem.object is None or absent is None:
                continue
            before, after = (side.get(problem.object) for side in sides)
            if before != after and all(side.get(absent) is None for side in sides):
                yield problem.object, ObjectRef(absent.kind, absent.namespace, absent.name)
