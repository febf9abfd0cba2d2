"""Orphans: objects in files that nothing here serves, said aloud instead of silently ignored.

In: the world. Out: problems; in a cluster none, because there such objects belong to others.
Must never: report an object that another stage judges already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgefast.problem import Problem, did_you_mean
from edgefast.resources.kinds import ref_of
from edgefast.translate.facts import World
from edgefast.translate.gatewayclass import GatewayClassOutcome
from edgefast.translate.ratelimit import check_rate_limit
from edgefast.translate.report import Report


def find_orphans(world: World, classes: Mapping[str, GatewayClassOutcome]) -> Iterator[Problem]:
    """Report, in standalone, what no controller will ever serve."""
    if not world.settings.standalone:
        return
    yield from _foreign_classes(world)
    yield from _classless_gateways(world, classes)
    for limits in world.snapshot.rate_limit_filters.values():
        yield from check_rate_limit(limits).problems


def _foreign_classes(world: World) -> Iterator[Problem]:
    ours = world.settings.controller_name
    for found in world.snapshot.gateway_classes.values():
        name = found.spec.controller_name
        if name != ours:
            report = Report(ref_of(found))
            said = f'"{name}" is served by another controller (this one is {ours})'
            yield report.warn(
                "spec.controllerName", "NotSupported", said, did_you_mean(name, [ours])
            )


def _classless_gateways(
    world: World, classes: Mapping[str, GatewayClassOutcome]
) -> Iterator[Problem]:
    existing = {name for _, name in world.snapshot.gateway_classes}
    for found in world.snapshot.gateways.values():
        name = found.spec.gateway_class_name
        if name not in existing:
            said = f"GatewayClass {name} not found"
            hint = did_you_mean(name, classes)
            yield Report(ref_of(found)).refuse("spec.gatewayClassName", "Invalid", said, hint)
