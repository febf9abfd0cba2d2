"""Adopted classes: runs files that were written for another controller as they are (`--adopt`).

In: the world. Out: every GatewayClass as one of edgefast's, including those that Gateways name and
no file has. It also gives the parameter references of other projects, and one problem that reports
the adoption.
Must never: run without the flag, or ignore a reference to an EdgeProxy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgefast.api.gateway.gatewayclass import GatewayClass, GatewayClassSpec
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import LocalParametersReference, ParametersReference
from edgefast.diagnostics.problem import Problem
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.settings import Settings

#: Names that the line has of each list.
_SHOWN = 4


def find_classes(world: World) -> Mapping[str, GatewayClass]:
    """Return the GatewayClasses of ours by name; with `--adopt` all of them."""
    settings = world.settings
    found = {key[1]: one for key, one in world.snapshot.gateway_classes.items()}
    if not settings.adopt:
        ours = settings.controller_name
        return {name: one for name, one in found.items() if one.spec.controller_name == ours}
    for gateway in world.snapshot.gateways.values():
        name = gateway.spec.gateway_class_name
        if name not in found:
            spec = GatewayClassSpec(controller_name=settings.controller_name)
            found[name] = GatewayClass(metadata=ObjectMeta(name=name), spec=spec)
    return found


def is_ignored_reference(
    ref: ParametersReference | LocalParametersReference | None, settings: Settings
) -> bool:
    """Tell whether a reference to parameters is another project's, and is to be passed over."""
    return settings.adopt and ref is not None and ref.group != EDGE_GROUP


def report_adopted(world: World) -> Iterator[Problem]:
    """Say in one line what was accepted, and what was ignored."""
    if not world.settings.adopt:
        return
    ours, snapshot = world.settings.controller_name, world.snapshot
    taken = [
        f"{key[1]} of {one.spec.controller_name}"
        for key, one in snapshot.gateway_classes.items()
        if one.spec.controller_name != ours
    ]
    there = {key[1] for key in snapshot.gateway_classes}
    named = {one.spec.gateway_class_name for one in snapshot.gateways.values()}
    taken += [f"{name}, which is in no file" for name in sorted(named - there)]
    aside = [
        f"{ref.kind} {ref.name}"
        for one in snapshot.gateway_classes.values()
        for ref in (one.spec.parameters_ref,)
        if ref is not None and is_ignored_reference(ref, world.settings)
    ]
    for gateway in snapshot.gateways.values():
        infrastructure = gateway.spec.infrastructure
        own = infrastructure.parameters_ref if infrastructure else None
        if own is not None and is_ignored_reference(own, world.settings):
            aside.append(f"{own.kind} {own.name}")
    if taken or aside:
        text = f"GatewayClass {_list(taken)} accepted" if taken else ""
        left = f"parametersRef to {_list(aside)} ignored" if aside else ""
        message = "; ".join(part for part in (text, left) if part)
        yield Problem(None, "", "Adopted", f"{message} (--adopt)", severity="warning")


def _list(words: list[str]) -> str:
    once = list(dict.fromkeys(words))
    more = f" and {len(once) - _SHOWN} more" if len(once) > _SHOWN else ""
    return ", ".join(once[:_SHOWN]) + more
