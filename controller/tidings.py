"""Tidings: what is told by Events, and beside which object.

In: what has gone wrong, as the rooms know it. Out: Events about the objects of those who can do something about it: a status's
object, the Gateways of a fleet, the ConfigMap of the configuration. Must never: decide that something is wrong.
"""

from __future__ import annotations

import asyncio

from controller.config import ConfigFile
from controller.events import About, Events
from controller.infra.claim import Claim
from controller.kube.cache import Cache
from controller.pipeline import Outcome
from controller.status.board import Ref
from controller.status.news import find_news
from controller.status.shape import SHAPES, Json
from edgefast.problem import ObjectRef

__all__ = ["Tidings"]

_GATEWAY = "gateway.networking.k8s.io/v1"
_LOOK = 2.0  # seconds between looks at the configuration, which has no callback for what it refuses
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
            present = self._cache.present(ObjectRef(kind, namespace, name, shape.group))
            uid = present.uid if present is not None else ""
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

    async def follow(self, file: ConfigFile) -> None:
        """Tell of a configuration that was refused, until cancelled."""
        seen = file.refusals
        while True:
            await asyncio.sleep(_LOOK)
            if file.refusals != seen:
                seen = file.refusals
                said = "; ".join(one.line() for one in file.problems)
                told = f"the one before stays: {said}"
                self._events.warn(self._config, "ConfigurationRefused", told)
