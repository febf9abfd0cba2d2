"""GatewayClass: which classes are edgefast's, with which EdgeProxy, and their status.

In: the GatewayClasses of a snapshot. Out: a `GatewayClassOutcome` for each with edgefast's
controllerName. A class with invalid parameters is not accepted and its Gateways are not served.
Source: Gateway API GatewayClass; spec section 1 (several classes per controller).
Must never: touch a class of another controller.
"""

from __future__ import annotations

import msgspec

from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.gateway.gatewayclass import GatewayClass
from edgefast.api.kinds import EDGE_GROUP, KINDS, ref_of
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import Problem
from edgefast.translate.conditions.condition import Condition, condition_of, fails, holds
from edgefast.translate.conditions.status import GatewayClassStatus, SupportedFeature
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.edgeproxy.edgeproxy import check_edge_proxy, resolve_parameters
from edgefast.translate.gateway.adopted_classes import find_classes, is_ignored_reference
from edgefast.translate.gateway.features import supported_features
from edgefast.translate.gateway.restrictions import check_restrictions
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import SHUT, closing_problems
from edgefast.translate.settings import RELEASES, Settings


class GatewayClassOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A GatewayClass of ours."""

    gateway_class: GatewayClass
    accepted: bool
    closed: tuple[
        Problem, ...
    ]  # fields of it, or of its EdgeProxy, that are not served: its Gateways answer 404
    proxy: EdgeProxy | None
    status: GatewayClassStatus
    problems: tuple[Problem, ...]

    @property
    def merged(self) -> bool:
        """Tell whether all Gateways of the class share one fleet."""
        return bool(self.proxy and self.proxy.spec.merge_gateways)


def translate_gateway_classes(world: World) -> dict[str, GatewayClassOutcome]:
    """Translate every GatewayClass of ours; by name, sorted."""
    classes = find_classes(world)
    return {name: _translate(classes[name], world) for name in sorted(classes)}


def _translate(gateway_class: GatewayClass, world: World) -> GatewayClassOutcome:
    report, proxy = Report(ref_of(gateway_class)), None
    checked: tuple[Problem, ...] = ()
    if gateway_class.closed is not None:
        message = f"the GatewayClass has an error: {gateway_class.closed.said}"
        report.follow(report.refuse("", "Invalid", message, condition="InvalidParameters"))
    ref = gateway_class.spec.parameters_ref
    if is_ignored_reference(ref, world.settings):
        ref = None
    if ref is not None and (ref.group, ref.kind) == (EDGE_GROUP, "EdgeProxy") and not ref.namespace:
        path, message = "spec.parametersRef.namespace", "the namespace of the EdgeProxy"
        report.refuse(path, "Required", message, condition="InvalidParameters")
    elif ref is not None:
        proxy = world.snapshot.edge_proxies.get((ref.namespace or "", ref.name))
        wrong = resolve_parameters(ref.group, ref.kind, ref.namespace or "", ref.name, proxy)
        if wrong:
            proxy = None
            report.refuse("spec.parametersRef", "InvalidParameters", wrong)
        elif proxy is not None:
            checked = check_edge_proxy(
                proxy,
                of_gateway=False,
                standalone=world.settings.standalone,
                tracing=world.settings.tracing,
                allowed=world.settings.backend_cidrs,
            ).problems
            checked += check_restrictions(proxy, world.settings, of_gateway=False)
    closed = closing_problems(gateway_class, SHUT, "UnsupportedValue")
    if proxy is not None:
        closed += closing_problems(proxy, SHUT, "UnsupportedValue")
    generation = gateway_class.metadata.generation
    refused = [
        *report.refused,
        *(msgspec.structs.replace(one, condition="InvalidParameters") for one in closed),
    ]
    accepted = condition_of(
        "Accepted", refused, generation, reason="Accepted", message="Valid GatewayClass"
    )
    merged = bool(proxy and proxy.spec.merge_gateways)
    features = supported_features(
        in_gateway_namespace=world.settings.gateway_namespace_mode and not merged,
        release=_release_of(world.settings.bundle_version),
        missing=world.settings.missing,
    )
    return GatewayClassOutcome(
        gateway_class=gateway_class,
        accepted=not report.refused,
        closed=closed,
        proxy=proxy,
        status=GatewayClassStatus(
            conditions=(
                accepted,
                _supported_version(world.settings, generation),
                *_kinds_removed(world.settings, generation),
            ),
            supported_features=tuple(SupportedFeature(name=name) for name in features),
        ),
        problems=(*report.problems, *closed, *checked),
    )


def _kinds_removed(settings: Settings, generation: int) -> tuple[Condition, ...]:
    """Return the condition about kinds that were removed while objects of them were in force; () without such kinds."""
    if not settings.retained:
        return ()
    kinds = ", ".join(settings.retained)
    message = (
        f"the CRDs of kinds in use were removed: {kinds}; their objects stay in force as last seen; install the CRDs and the objects "
        "again, or release them (EdgeGateway provider.kubernetes.releaseKinds)"
    )
    return (fails(f"{EDGE_GROUP}/KindsInstalled", "KindRemoved", message, generation),)


def _release_of(version: str) -> str:
    """Return the release of a version: "v1.7" of "v1.7.0"."""
    return ".".join(version.split(".")[:2])


def _supported_version(settings: Settings, generation: int) -> Condition:
    version = settings.bundle_version
    lost = [
        kind
        for kind in settings.missing
        if ((GATEWAY_GROUP, kind) in KINDS or (EDGE_GROUP, kind) in KINDS)
        and kind not in settings.retained
    ]
    without = f"; kinds that are not installed and not served: {', '.join(lost)}"
    if version and _release_of(version) not in RELEASES:
        message = f"Gateway API CRDs are {version}, {' and '.join(RELEASES)} are supported"
        message += without if lost else ""
        return fails("SupportedVersion", "UnsupportedVersion", message, generation)
    message = f"Gateway API {version or ' and '.join(RELEASES)}{without if lost else ''}"
    return holds("SupportedVersion", "SupportedVersion", message, generation)
