"""Unused object: objects in files that nothing serves, reported instead of ignored.

In: the world. Out: problems; in a cluster none, because there such objects belong to others.
Must never: report an object that another stage already reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgefast.api.core.endpointslice import SERVICE_NAME_LABEL
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.layer4_route import AnyRoute
from edgefast.api.kinds import ref_of
from edgefast.diagnostics.problem import Problem, did_you_mean
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.edgeproxy.edgeproxy import check_edge_proxy
from edgefast.translate.filter.route_filter import check_route_filter
from edgefast.translate.gateway.adopted_classes import report_adopted
from edgefast.translate.gateway.fail_closed import warn_closed
from edgefast.translate.gateway.gatewayclass import GatewayClassOutcome
from edgefast.translate.rate_limit.rate_limit import check_rate_limit
from edgefast.translate.report.report import Report

#: Of the letters of a controller's name, how many must agree for it to be a slip of the pen: other projects' are alike.
_SLIP = 0.9


def find_orphans(world: World, classes: Mapping[str, GatewayClassOutcome]) -> Iterator[Problem]:
    """Report, in standalone, what no controller will ever serve."""
    if not world.settings.standalone:
        return
    yield from _nothing(world)
    yield from report_adopted(world)
    if not world.settings.adopt:
        yield from _foreign_classes(world)
    yield from _classless_gateways(world, classes)
    yield from _unwatched(world)
    yield from _unused_proxies(world)
    yield from _homeless_slices(world)
    for limits in world.snapshot.rate_limit_filters.values():
        yield from check_rate_limit(limits).problems if limits.closed is None else ()
    for one in world.snapshot.http_route_filters.values():
        yield from check_route_filter(one).problems if one.closed is None else ()


def _nothing(world: World) -> Iterator[Problem]:
    """Say that there is nothing to serve; routes without their Gateway, Ingresses of other classes, and files that cannot be read have problems of their own."""
    snapshot = world.snapshot
    attached = any((*snapshot.routes, snapshot.listener_sets, snapshot.ingresses))
    if snapshot.gateways or attached or snapshot.refused or snapshot.unread:
        return
    message = "a Gateway and its GatewayClass; without them no traffic is served"
    yield Problem(None, "", "Required", message)


def _unwatched(world: World) -> Iterator[Problem]:
    """Name the Gateways and routes that the watched namespaces of the configuration leave out."""
    settings, snapshot = world.settings, world.snapshot
    if not settings.watch_namespaces and settings.watch_selector is None:
        return
    served: tuple[Gateway | AnyRoute, ...] = (
        *snapshot.gateways.values(),
        *(one for table in snapshot.routes for one in table.values()),
    )
    for found in served:
        name = found.metadata.namespace
        namespace = snapshot.namespaces.get(("", name))
        if not settings.watches(name, namespace.metadata.labels if namespace else {}):
            message = (
                f"{name} is not watched, so the object is not served (provider.kubernetes.watch)"
            )
            yield Report(ref_of(found)).refuse("metadata.namespace", "NotSupported", message)


def _unused_proxies(world: World) -> Iterator[Problem]:
    """Name the EdgeProxies that nothing refers to, with what would be wrong with them."""
    snapshot = world.snapshot
    if any(kind in ("GatewayClass", "Gateway") for kind, _, _ in snapshot.refused):
        return  # what has a mistake may be what refers to them
    refs = {
        (ref.namespace or "", ref.name)
        for one in snapshot.gateway_classes.values()
        for ref in (one.spec.parameters_ref,)
        if ref is not None
    }
    for (namespace, _), gateway in snapshot.gateways.items():
        infrastructure = gateway.spec.infrastructure
        if infrastructure and infrastructure.parameters_ref:
            refs.add((namespace, infrastructure.parameters_ref.name))
    for key, proxy in snapshot.edge_proxies.items():
        if key not in refs and ("", key[1]) not in refs:
            message = (
                "a GatewayClass or Gateway with a parametersRef to it; without one it has no effect"
            )
            yield Report(ref_of(proxy)).warn("", "Required", message)
            yield from check_edge_proxy(
                proxy, of_gateway=False, standalone=True, allowed=world.settings.backend_cidrs
            ).problems


def _homeless_slices(world: World) -> Iterator[Problem]:
    for one in world.snapshot.endpoint_slices.values():
        if not one.service_name:
            message = "the Service of the endpoints; without it no backend uses them"
            path = f"metadata.labels[{SERVICE_NAME_LABEL}]"
            yield Report(ref_of(one)).warn(path, "Required", message)


def _foreign_classes(world: World) -> Iterator[Problem]:
    ours = world.settings.controller_name
    for found in world.snapshot.gateway_classes.values():
        name = found.spec.controller_name
        if name != ours and (found.closed is None or name):
            report = Report(ref_of(found))
            message = f'"{name}" is served by another controller (this one is {ours})'
            hint = did_you_mean(name, [ours], alike=_SLIP) or "pass --adopt to try it"
            yield report.refuse("spec.controllerName", "NotSupported", message, hint)


def _classless_gateways(
    world: World, classes: Mapping[str, GatewayClassOutcome]
) -> Iterator[Problem]:
    if world.settings.adopt:
        return
    existing = {name for _, name in world.snapshot.gateway_classes}
    for found in world.snapshot.gateways.values():
        name = found.spec.gateway_class_name
        if found.closed is not None and not name:
            report = Report(ref_of(found))
            warn_closed(found, report)
            yield from report.problems
        elif name not in existing:
            message = f"GatewayClass {name} not found"
            hint = (
                did_you_mean(name, classes)
                or "write one, or pass --adopt to try the file without it"
            )
            yield Report(ref_of(found)).refuse("spec.gatewayClassName", "Invalid", message, hint)
