"""Event reports: errors that are written as Kubernetes Events, and the objects to which they belong.

In: errors that the components report.
Out: Events for objects of the users that can fix the error: the object of a status, the Gateways of
a fleet, the ConfigMap of the configuration. An error has a condition and an Event. An Ingress has no
conditions: Events report its errors and warnings.
Must never: decide that something is wrong.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from itertools import chain, islice, zip_longest

from controller.config import ConfigFile
from controller.events import AGAIN, About, Events
from controller.fleets.ownership import Ownership
from controller.kube.cache import Cache
from controller.kube.denials import Denials
from controller.parentless_routes import ParentlessRoutes
from controller.pipeline import Outcome
from controller.status.event_filter import select_events
from controller.status.shape import SHAPES, Json
from controller.status.tracker import Ref
from edgefast.api.kinds import KINDS
from edgefast.api.model.origin import is_made
from edgefast.diagnostics.problem import ObjectRef, Problem

__all__ = ["EventReports"]

log = logging.getLogger(__name__)

_GATEWAY = "gateway.networking.k8s.io/v1"
_LOOK = 2.0  # seconds between looks at the configuration, which has no callback for what it refuses
#: Of an outcome, by turns of the namespaces; the console has all, and Events are for what is bad, too.
_WARNINGS = 10
#: Warnings that statuses tell by conditions.
_CONDITIONS = frozenset(
    {
        "CertificateExpiring",
        "CertificateNotValid",
        "EndpointsNotFound",
        "PodsNotRead",
        "RouteRulesOverlap",
        "Shadowed",
    }
)
_INGRESS = "Ingress"
#: Problems of an Ingress that come and go with its Pods.
_PASSING = frozenset({"EndpointsNotFound", "PodsNotRead"})
_MOST = 10  # Gateways of a merged fleet that are told by an Event; the statuses of all have it


class EventReports:
    """Chooses the problems that become Events, and the objects of these Events."""

    def __init__(self, events: Events, cache: Cache, config_map: tuple[str, str]) -> None:
        """`config_map`: namespace and name of the one that the configuration is mounted from."""
        self._events = events
        self._cache = cache
        self._config = About("v1", "ConfigMap", *config_map)
        self.denials = Denials()
        self._parentless = ParentlessRoutes()
        self._more = False  # problems of Ingresses wait for their Events

    def on_written(self, ref: Ref, before: Json, fields: Json) -> None:
        """A status has been written: tell what has become bad with it."""
        kind, namespace, name = ref
        shape = SHAPES[kind]
        for reason, text in select_events(before, fields):
            uid = self._uid_of(ObjectRef(kind, namespace, name, shape.group))
            version = f"{shape.group}/{shape.version}"
            self._events.warn(About(version, kind, namespace, name, uid), reason, text)

    def on_trouble(self, outcome: Outcome | None, fleet: str, text: str) -> None:
        """There is trouble with a fleet ("namespace/name")."""
        for infra in outcome.translation.infra if outcome else ():
            if f"{infra.namespace}/{infra.name}" == fleet:
                for gateway in infra.gateways:
                    namespace, _, name = gateway.partition("/")
                    if is_made(name):  # it serves Ingresses, and the API server does not have it
                        self._events.warn(self._config, "FleetFailed", text)
                        return
                    about = About(_GATEWAY, "Gateway", namespace, name)
                    self._events.warn(about, "FleetFailed", text)

    def on_claim(self, fleet: str, claim: Ownership) -> None:
        """A fleet ("namespace/name") stays that nobody answers for; where no Gateway of it is seen, the configuration's fault."""
        message = claim.tell(fleet)
        gateways = [About(_GATEWAY, "Gateway", *key) for key in claim.gateways[:_MOST]]
        for about in gateways or [self._config]:
            self._events.warn(about, "FleetKept", message)

    def on_tickets(self, text: str) -> None:
        """There are no keys of session tickets that all replicas have, or they cannot be rotated."""
        self._events.warn(self._config, "TicketKeysNotKept", text)

    async def on_outcome(self, outcome: Outcome) -> None:
        """Tell of fields that are not served as written although their objects are."""
        # All problems are put together for this alone, of all objects: that takes its time.
        found, more = await asyncio.to_thread(self._choose, outcome)
        self._warn(found)
        self._more = more

    def _choose(self, outcome: Outcome) -> tuple[list[tuple[ObjectRef, Problem]], bool]:
        """Return the problems to report now, and whether more problems of Ingresses wait."""
        problems = outcome.translation.problems
        ingress = _choose_ingress(problems, self._is_due)
        return [*ingress, *_choose_warnings(problems)], len(ingress) == _WARNINGS

    def _is_due(self, ref: ObjectRef, problem: Problem) -> bool:
        about = self._about(ref)
        return about is not None and not self._events.is_reported(
            about, problem.reason, problem.text()
        )

    def _about(self, ref: ObjectRef) -> About | None:
        info = KINDS.get((ref.group, ref.kind))
        if info is None:
            return None
        return About(info.api_versions[0], ref.kind, ref.namespace, ref.name, self._uid_of(ref))

    def _warn(self, problems: Iterable[tuple[ObjectRef, Problem]]) -> None:
        for ref, one in problems:
            if (about := self._about(ref)) is not None:
                self._events.warn(about, one.reason, one.text())

    def _report_retained(self, kinds: Iterable[str]) -> None:
        # Without a count: it changes with each object, and each text would be another Event. The metric has it.
        for kind in sorted(kinds):
            text = (
                f"kind {kind}: its CRD was removed while objects of it were in force; they stay in force as last seen; install the "
                "CRD and the objects again, or release them (EdgeGateway provider.kubernetes.releaseKinds)"
            )
            self._events.warn(self._config, "KindRemoved", text)

    def _uid_of(self, ref: ObjectRef) -> str:
        present = self._cache.present(ref)
        return present.uid if present is not None else ""

    async def follow(self, file: ConfigFile, outcome: Callable[[], Outcome | None]) -> None:
        """Tell of a configuration that was refused, and of warnings of the last outcome, until cancelled."""
        seen = file.refusals
        retained: frozenset[str] = frozenset()
        refused: tuple[Problem, ...] = ()
        looked_at: Outcome | None = None
        again = 0.0
        while True:
            await asyncio.sleep(_LOOK)
            last, now = outcome(), time.monotonic()
            if (
                last is not None
                and self._events.written
                and (last is not looked_at or now >= again or self._more)
            ):
                looked_at, again = last, now + AGAIN
                try:
                    await self.on_outcome(last)
                except Exception:
                    log.exception(
                        "events: warnings about fields could not be reported; the console "
                        "shows them"
                    )
            if last is not None and self._events.written:
                try:
                    self._warn(await self._parentless.look(last))
                except Exception:
                    log.exception("events: routes without a Gateway not reported")
            if (kept := frozenset(self._cache.retained)) != retained and self._events.written:
                self._report_retained(kept - retained)
                retained = kept
            if (denied := self.denials.problems()) != refused and self._events.written:
                refused = denied
                for one in denied:
                    self._events.warn(self._config, one.reason, one.text())
            if file.refusals != seen:
                seen = file.refusals
                message = "; ".join(one.line() for one in file.problems)
                reported = f"the previous configuration stays in use: {message}"
                self._events.warn(self._config, "ConfigurationRefused", reported)


def _choose_warnings(problems: Iterable[Problem]) -> list[tuple[ObjectRef, Problem]]:
    """Return the warnings about objects with a status."""
    return _take_turns(
        (one.object, one)
        for one in problems
        if one.object is not None
        and one.object.kind != _INGRESS
        and not is_made(one.object.name)
        and one.path
        and one.severity == "warning"
        and one.reason not in _CONDITIONS
    )


def _choose_ingress(
    problems: Iterable[Problem], is_due: Callable[[ObjectRef, Problem], bool]
) -> list[tuple[ObjectRef, Problem]]:
    """Return the problems of Ingresses, errors first: no condition of a status has them."""
    found = [
        (one.object, one)
        for one in problems
        if one.object is not None
        and one.object.kind == _INGRESS
        and one.reason not in _PASSING
        and is_due(one.object, one)
    ]
    found.sort(key=lambda pair: pair[1].severity != "error")
    return _take_turns(found)


def _take_turns(
    found: Iterable[tuple[ObjectRef, Problem]],
) -> list[tuple[ObjectRef, Problem]]:
    """Return each namespace's first problem, then the second ones, so that none keeps another's out."""
    by_namespace: dict[str, list[tuple[ObjectRef, Problem]]] = {}
    for ref, one in found:
        by_namespace.setdefault(ref.namespace, []).append((ref, one))
    turns = chain.from_iterable(zip_longest(*by_namespace.values()))
    return list(islice(filter(None, turns), _WARNINGS))
