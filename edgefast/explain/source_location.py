"""Source location: where a listener, rule, match or backend is written in the user's files.

In: a translation with its snapshot (files, or a cluster's objects), or nothing (the table of a
running proxy). Out: `Place`s. Of a table only the rule is known: its number, and the file or
generation that it carries.
Must never: guess; an unknown place is left empty.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast import ir
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.grpcroute import GRPCBackendRef, GRPCRoute, Route
from edgefast.api.gateway.httproute import HTTPBackendRef, HTTPRoute
from edgefast.api.gateway.layer4_route import TCPRoute, TLSRoute, UDPRoute
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.model.fail_closed import is_closed
from edgefast.api.model.origin import place_of
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.route_name import key_of, ref_of_name
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.explain.explanation import Place
from edgefast.translate.match.precedence import Age, age_order
from edgefast.translate.route.outcome import RouteOutcome
from edgefast.translate.translation import Translation


class Origin:
    """Finds the file and line, or the object, that a listener, rule, match or backend comes from."""

    def __init__(
        self, translation: Translation | None = None, problems: Iterable[Problem] = ()
    ) -> None:
        """`problems` are those of decoding: of objects that the translation has never seen."""
        self._translation = translation
        self.problems = tuple(problems)
        self._snapshot = translation.memo.world.snapshot if translation else Snapshot()

    @property
    def translation(self) -> Translation | None:
        """What is known beside the table."""
        return self._translation

    @property
    def snapshot(self) -> Snapshot:
        """The objects; none of a running proxy's table."""
        return self._snapshot

    def listener(self, name: str) -> Place:
        """Return the place of a listener: "namespace/gateway/listener", or with a ListenerSet's between the last two."""
        namespace, gateway, *of_set, section = name.split("/")
        ref = ObjectRef("Gateway", namespace, gateway, GATEWAY_GROUP)
        if len(of_set) == 2:
            ref = ObjectRef("ListenerSet", of_set[0], of_set[1], GATEWAY_GROUP)
        found = self._snapshot.get(ref)
        path = ""
        if isinstance(found, Gateway | ListenerSet):
            named = (at for at, one in enumerate(found.spec.listeners) if one.name == section)
            path = f"spec.listeners[{next(named, 0)}]"
        return self.place(ref, path)

    def rule(self, rule: ir.Rule) -> Place:
        """Return the place of a rule."""
        return self.rule_place(rule, f"spec.rules[{rule.index}]")

    def rule_place(self, rule: ir.Rule, path: str) -> Place:
        """Return the place of a field of a rule's route."""
        place = self.place(self.route_ref(rule.route), path)
        return place if place.source else msgspec.structs.replace(place, source=rule.source)

    def match(self, rule: ir.Rule, match: ir.Match) -> Place:
        """Return the place of one of a rule's matches; of the rule when the match cannot be told."""
        path = f"spec.rules[{rule.index}]"
        outcome = self._outcome(rule.route)
        for _, _, part in outcome.hosts if outcome else ():
            for _, index, at, one in part.candidates:
                if index == rule.index and one == match:
                    return self.rule_place(rule, f"{path}.matches[{at}]")
        return self.rule_place(rule, path)

    def backend(self, rule: ir.Rule, share: int) -> Place:
        """Return the place of a rule's share: backendRefs without weight have none."""
        path = f"spec.rules[{rule.index}].backendRefs"
        route = self.route(rule.route)
        if route is None:
            return self.rule_place(rule, path)
        refs: tuple[HTTPBackendRef | GRPCBackendRef, ...] = route.spec.rules[
            rule.index
        ].backend_refs
        weighty = [at for at, one in enumerate(refs) if one.weight > 0]
        return self.rule_place(rule, f"{path}[{weighty[share]}]" if share < len(weighty) else path)

    def stream_place(self, route: ir.StreamRoute, path: str) -> Place:
        """Return the place of a field of a route of layer 4."""
        if not route.route:
            return Place()
        place = self.place(self.route_ref(route.route), path)
        return place if place.source else msgspec.structs.replace(place, source=route.source)

    def stream_backend(self, route: ir.StreamRoute, share: int) -> Place:
        """Return the place of a share: backendRefs of all rules, without those that have no weight."""
        found = self._snapshot.get(self.route_ref(route.route)) if route.route else None
        if isinstance(found, TLSRoute | TCPRoute | UDPRoute):
            weighty = [
                f"spec.rules[{index}].backendRefs[{at}]"
                for index, rule in enumerate(found.spec.rules)
                for at, one in enumerate(rule.backend_refs)
                if one.weight > 0
            ]
            if share < len(weighty):
                return self.stream_place(route, weighty[share])
        return self.stream_place(route, f"spec.rules[{route.index}].backendRefs")

    def route(self, name: str) -> Route | None:
        """Return the object of a route by its name among all routes."""
        found = self._snapshot.get(ref_of_name(name))
        return found if isinstance(found, HTTPRoute | GRPCRoute) else None

    def route_ref(self, name: str) -> ObjectRef:
        """Return the reference to a route by its name among all routes."""
        return ref_of_name(name)

    def route_place(self, name: str, path: str = "") -> Place:
        """Return the place of a field of a route."""
        return self.place(self.route_ref(name), path)

    def is_refused(self, ref: ObjectRef) -> bool:
        """Tell whether mistakes keep an object of a file out."""
        return (ref.kind, ref.namespace, ref.name) in self._snapshot.refused

    def is_closed(self, ref: ObjectRef) -> bool:
        """Tell whether a route only keeps the place of one with a mistake."""
        return is_closed(self._snapshot.get(ref))

    def refusal_of(self, ref: ObjectRef) -> Problem | None:
        """Return the first mistake that keeps an object of a file out, None when it is not kept out."""
        if not self.is_refused(ref):
            return None
        name = str(ref)
        return next((one for one in self.problems if str(one.object) == name), None)

    def age(self, name: str) -> Age | None:
        """Return a route's place in the order of ages, None when it is not known."""
        route = self.route(name)
        return age_order(route.metadata) if route is not None else None

    def place(self, ref: ObjectRef, path: str) -> Place:
        """Return the place of a field of an object; of one that serves an Ingress the place in the Ingress."""
        ref, path = self._find_origin(ref, path)
        source = self._snapshot.source_of(ref, path)
        if source is None:
            found = self._snapshot.get(ref)
            generation = found.metadata.generation if found is not None else 0
            return Place(
                object=str(ref), path=path, source=f"generation {generation}" if generation else ""
            )
        return Place(object=str(ref), path=path, source=str(source))

    def _find_origin(self, ref: ObjectRef, path: str) -> tuple[ObjectRef, str]:
        origins = self._translation.memo.expansion.origins if self._translation else {}
        origin = origins.get((ref.kind, ref.namespace, ref.name))
        if origin is None:
            return ref, path
        found, field = place_of(origin, path)
        return (ref, path) if found is None else (found, field)

    def problem_at(self, place: Place) -> Problem | None:
        """Return the first error of a translation at a field, None without one."""
        found = self._translation.problems if self._translation is not None else ()
        return next(
            (
                one
                for one in found
                if one.severity == "error"
                and one.path == place.path
                and str(one.object) == place.object
            ),
            None,
        )

    def mistake(self, ref: ObjectRef) -> Place:
        """Return the place of the first mistake of an object of a file that was not taken."""
        for one in self.problems:
            if one.object == ref and one.severity == "error":
                return Place(object=str(ref), path=one.path, source=str(one.source or ""))
        # A foreign policy that decides access has no error of its own.
        policies = (one for one in self.snapshot.foreign_policies if one.ref == ref)
        source = next((one.source for one in policies), None)
        return Place(object=str(ref), path="spec", source=str(source or ""))

    def _outcome(self, name: str) -> RouteOutcome | None:
        return self._translation.memo.routes.get(key_of(name)) if self._translation else None
