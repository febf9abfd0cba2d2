"""Listener filter: `filters.requests` of a listener -> policy units that apply to every request before routing.

In: drafts of listeners, what is known of clusters, the previous outcomes, the changed facts.
Out: for each listener with filters, its units and their problems. A listener without changes in
what it read keeps its outcome. A filter with a mistake or an invalid reference becomes a unit that
answers 500. A type that is not served has closed its listener (gateway/listener.py).
Source: Gateway API Listener.filters, GEP-5224 (reasons of conditions).
Must never: differ from a result without a previous one, or omit a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from edgefast import ir
from edgefast.api.gateway.listener import ListenerFilters as Given
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import Problem
from edgefast.translate.deps.cluster_ref import ClusterRef, ClusterState
from edgefast.translate.deps.dependency_facts import Fact, Reader, World, is_read
from edgefast.translate.filter.external_auth import translate_external_auth
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.policy.outcome import UnitOutcome
from edgefast.translate.report.report import Report

__all__ = ["FilterOutcome", "ListenerFilters", "translate_listener_filters"]


class FilterOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """The filters of one listener."""

    given: Given
    gateway: Key
    place: tuple[str, ...]  # what else they depend on beside facts
    units: tuple[UnitOutcome, ...]
    reads: tuple[Fact, ...]
    clusters: tuple[ClusterRef, ...]  # all that were looked at
    refused: tuple[Problem, ...]  # Accepted
    unresolved: tuple[Problem, ...]  # ResolvedRefs
    problems: tuple[Problem, ...]

    @property
    def broken(self) -> tuple[Problem, ...]:
        """Why all requests of the listener are answered 500; nothing: they are not."""
        return (*self.refused, *self.unresolved)


FilterChange = tuple[FilterOutcome | None, FilterOutcome | None]


class ListenerFilters(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """Those of all listeners; never changed after it was made."""

    outcomes: Mapping[str, FilterOutcome] = {}  # by name of the listener
    units: Mapping[str, UnitOutcome] = {}
    changes: tuple[FilterChange, ...] = ()  # since the translation before
    touched: frozenset[str] = frozenset()  # units that differ from the translation before
    made: int = 0

    def users_of(self, service: Key) -> set[Key]:
        """Return the Gateways at which filters ask a Service, or would if it were there."""
        return {
            one.gateway
            for one in self.outcomes.values()
            if any(
                (ref.kind, ref.namespace, ref.name) == ("service", *service) for ref in one.clusters
            )
            or ("Service", *service) in one.reads
        }


_NONE = ListenerFilters()


def translate_listener_filters(
    gateways: Iterable[GatewayDraft],
    world: World,
    states: Callable[[ClusterRef], ClusterState],
    previous: ListenerFilters,
    changed: set[Fact],
) -> ListenerFilters:
    """Translate what changed; without filters nothing is done."""
    outcomes: dict[str, FilterOutcome] = {}
    made = 0
    for gateway in gateways:
        certificate = (
            gateway.certificate.name.removeprefix("secret/") if gateway.certificate else ""
        )
        for one in gateway.listeners:
            names, given = one.filters, one.spec.filters
            if not names or given is None:
                continue
            owner = one.report.object
            place = (certificate, owner.kind, owner.namespace, owner.name, one.path)
            old = previous.outcomes.get(one.name)
            if (
                old is not None
                and (old.given is given or old.given == given)
                and old.place == place
                and not is_read(changed, old.reads)
            ):
                outcomes[one.name] = old
                continue
            made += 1
            reader = Reader(world, states)
            outcomes[one.name] = _translate(one, gateway.key, given, place, reader, old)
    if not outcomes and not previous.outcomes:
        return _NONE
    changes: list[FilterChange] = [
        (old, new)
        for name in sorted(outcomes.keys() | previous.outcomes.keys())
        for old, new in [(previous.outcomes.get(name), outcomes.get(name))]
        if old is not new
    ]
    if not changes:  # the very same
        return msgspec.structs.replace(previous, changes=(), touched=frozenset(), made=0)
    units = {unit.unit.name: unit for one in outcomes.values() for unit in one.units}
    touched = {
        name
        for name in units.keys() | previous.units.keys()
        if units.get(name) is not previous.units.get(name)
    }
    return ListenerFilters(
        outcomes=outcomes,
        units=units,
        changes=tuple(changes),
        touched=frozenset(touched),
        made=made,
    )


def _translate(
    draft: ListenerDraft,
    gateway: Key,
    given: Given,
    place: tuple[str, ...],
    reader: Reader,
    before: FilterOutcome | None,
) -> FilterOutcome:
    report = Report(draft.report.object)
    known = {one.unit.name: one for one in before.units} if before else {}
    units = []
    for at, (name, one) in enumerate(zip(draft.filters, given.requests, strict=True)):
        where, counts = f"{draft.path}.filters.requests[{at}]", _count(report)
        made = None
        if one.external_auth is None:
            message = f"with type {one.type}"
            report.refuse(f"{where}.externalAuth", "Required", message)
        else:
            certificate, kind, namespace, *_ = place
            path = f"{where}.externalAuth"
            made = translate_external_auth(
                one.external_auth, namespace, certificate, reader, report, path, kind
            )
        if made is None:
            unit = UnitOutcome(ir.PolicyUnit(name=name, status=500, reason=_after(report, counts)))
        else:
            unit = UnitOutcome(ir.PolicyUnit(name=name, ext_auth=made[0]), (made[1],))
        units.append(known[name] if known.get(name) == unit else unit)
    requested = (ref for one in units for ref in one.clusters)
    return FilterOutcome(
        given=given,
        gateway=gateway,
        place=place,
        units=tuple(units),
        reads=reader.noted(),
        clusters=tuple(sorted(reader.clusters.union(requested))),
        refused=tuple(
            msgspec.structs.replace(one, condition="InvalidListenerFilter")
            for one in report.refused
        ),
        unresolved=tuple(map(_reason, report.unresolved)),
        problems=report.problems,
    )


def _reason(problem: Problem) -> Problem:
    """Return the problem under the word that the API has for references of filters."""
    if problem.reason == "RefNotPermitted":
        return problem
    return msgspec.structs.replace(problem, condition="InvalidListenerFilterRef")


def _count(report: Report) -> tuple[int, int]:
    return len(report.refused), len(report.unresolved)


def _after(report: Report, counts: tuple[int, int]) -> str:
    """Return what was wrong first since then."""
    found = (*report.refused[counts[0] :], *report.unresolved[counts[1] :])
    return found[0].text()
