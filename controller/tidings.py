"""Tidings: what is told by Events, and beside which object.

What is bad has a condition, and an Event with it. A warning about a field (it is not available yet, or passed over) has none.

In: what has gone wrong, as the rooms know it. Out: Events about the objects of those who can do something about it: a status's
object, the Gateways of a fleet, the ConfigMap of the configuration. Must never: decide that something is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from controller.config import ConfigFile
from controller.events import About, Events
from controller.infra.claim import Claim
from controller.kube.cache import Cache
from controller.pipeline import Outcome
from controller.status.board import Ref
from controller.status.news import find_news
from controller.status.shape import SHAPES, Json
from edgefast.problem import ObjectRef, Problem
from edgefast.resources.kinds import KINDS

__all__ = ["Tidings"]

_GATEWAY = "gateway.networking.k8s.io/v1"
_LOOK = 2.0  # seconds between looks at the configuration, which has no callback for what it refuses
_WARNINGS = (
    10  # of objects, the first ones; the console has all, and Events are for what is bad, too
)
#: Warnings that statuses tell by conditions.
_CONDITIONS = frozenset({"EndpointsNotFound", "RouteRulesOverlap", "Shadowed"})
_MOST = (
    10  # Gateways of a merged fleet that are told of it by an Event; the statuses of all have it
)


class Tidings:
    """See the module's text."""

    def __init__(self, events: Events, cache: Cache, config_map: tuple[str, str]) -> None:
        """`config_map`: namespace and name of the one that the configuration is mounted from."""
        self._events = events
        self._cache = cache
        self._config = About("v1", "ConfigMap", *config_map)

    def on_written(self, ref: Ref, before: Json, fields: Json) -> None:
        """A status has been written: tell what has become bad with it."""
        kind, namespace, name = ref
        shape = SHAPES[kind]
        for reason, text in find_news(before, fields):
            uid = self._uid_of(ObjectRef(kind, namespace, name, shape.group))
            version = f"{shape.group}/{shape.version}"
            self._events.warn(About(version, kind, namespace, name, uid), reason, text)

    def on_trouble(self, outcome: Outcome | None, fleet: str, text: str) -> None:
        """There is trouble with a fleet ("namespace/name")."""
        for infra in outcome.translation.infra if outcome else ():
            if f"{infra.namespace}/{infra.name}" == fleet:
                for gateway in infra.gateways:
                    namespace, _, name = gateway.partition("/")
                    about = About(_GATEWAY, "Gateway", namespace, name)
                    self._events.warn(about, "FleetFailed", text)

    def on_claim(self, fleet: str, claim: Claim) -> None:
        """A fleet ("namespace/name") stays that nobody answers for; where no Gateway of it is seen, the configuration's fault."""
        said = claim.tell(fleet)
        gateways = [About(_GATEWAY, "Gateway", *key) for key in claim.gateways[:_MOST]]
        for about in gateways or [self._config]:
            self._events.warn(about, "FleetKept", said)

    def on_outcome(self, outcome: Outcome) -> None:
        """Tell of fields that are not served as written although their objects are."""
        warnings = (one for one in outcome.translation.problems if _is_about_a_field(one))
        for _, one in zip(range(_WARNINGS), warnings, strict=False):
            assert one.object is not None
            ref = one.object
            info = KINDS.get((ref.group, ref.kind))
            if info is not None:
                version = info.api_versions[0]
                about = About(version, ref.kind, ref.namespace, ref.name, self._uid_of(ref))
                self._events.warn(about, one.reason, one.text())

    def _uid_of(self, ref: ObjectRef) -> str:
        present = self._cache.present(ref)
        return present.uid if present is not None else ""

    async def follow(self, file: ConfigFile, outcome: Callable[[], Outcome | None]) -> None:
        """Tell of a configuration that was refused, and of warnings of the last outcome, until cancelled."""
        seen = file.refusals
        while True:
            await asyncio.sleep(_LOOK)
            if (last := outcome()) is not None:
                self.on_outcome(last)
            if file.refusals != seen:
                seen = file.refusals
                said = "; ".join(one.line() for one in file.problems)
                told = f"the one before stays: {said}"
                self._events.warn(self._config, "ConfigurationRefused", told)


def _is_about_a_field(problem: Problem) -> bool:
    return (
        problem.severity == "warning"
        and problem.object is not None
        and bool(problem.path)
        and problem.reason not in _CONDITIONS
    )
