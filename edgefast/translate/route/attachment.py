"""Attachment: which listeners of a parent take a route, or why none does.

In: a route's parentRef and the Gateway or ListenerSet it names. Out: listeners with the route's
hostnames on each, or a reason. Reasons: NoMatchingParent (no such listener or port),
NotAllowedByListeners (namespace or kind), NoMatchingListenerHostname. A broken listener still takes
routes and counts them.
Source: Gateway API ParentReference, AllowedRoutes, HTTPRouteSpec.hostnames.
Must never: attach to a Gateway of another controller.
"""

from __future__ import annotations

import msgspec

from edgefast.api.gateway.layer4_route import AnyRoute
from edgefast.api.model.origin import is_made
from edgefast.api.model.reference import GATEWAY_GROUP, ParentReference
from edgefast.api.validation.hostname import check_hostname, check_hostnames
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.translate.deps.dependency_facts import GatewayView, ListenerView, Reader
from edgefast.translate.gateway.listenerset import parent_of
from edgefast.translate.match.hostname import matching_hostnames
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

_KINDS = ("Gateway", "ListenerSet")


class Attachment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One parentRef that names a Gateway of ours; without listeners it is not accepted."""

    parent: ParentReference
    gateway: GatewayView
    listeners: tuple[tuple[ListenerView, tuple[str, ...]], ...] = ()  # with hostnames
    refused: bool = (
        False  # hostnames of the route are none: it only keeps the place of the others closed
    )


def attach_route(
    route: AnyRoute, parent: ParentReference, reader: Reader, report: Report, path: str
) -> Attachment | None:
    """Attach to one parent; None when it is not ours to judge. Refusals go to the report."""
    namespace = parent.namespace or route.metadata.namespace
    if parent.group != GATEWAY_GROUP or parent.kind not in _KINDS:
        if reader.settings.standalone:
            _refuse_kind(parent, report, path)
        return None
    # Only routes that serve Ingresses attach to the Gateways that do.
    hidden = is_made(parent.name) and not is_made(route.metadata.name)
    gateway = None if hidden else _find_gateway(parent, namespace, reader)
    if gateway is None:
        if reader.settings.standalone and (hidden or not _exists(parent, namespace, reader)):
            message = f"{parent.kind} {namespace}/{parent.name} not found"
            report.refuse(f"{path}.name", "NoMatchingParent", message)
        return None
    attached = Attachment(parent=parent, gateway=gateway)
    if gateway.closed if parent.kind == "Gateway" else _is_closed_set(parent, namespace, reader):
        message = f"{parent.kind} {namespace}/{parent.name} has an error"
        report.follow(report.refuse(f"{path}.name", "NoMatchingParent", message))
        return attached
    set_ = (namespace, parent.name) if parent.kind == "ListenerSet" else None
    there = [one for one in gateway.listeners if one.set == set_]
    named = _named_listeners(parent, there)
    if not named:
        _refuse_name(parent, namespace, there, report, path)
        return attached
    kind = type(route).__name__
    allowed = [
        one for one in named if _allows(one, namespace, kind, route.metadata.namespace, reader)
    ]
    if not allowed:
        message = (
            f"no listener of {parent.kind} {namespace}/{parent.name} allows {kind}s of "
            f"namespace {route.metadata.namespace} ({_rules_text(named, kind)})"
        )
        report.refuse(path, "NotAllowedByListeners", message)
        return attached
    names = route.spec.hostnames
    if refuse_violations(check_hostnames(route.spec), report, "spec"):
        names = tuple(one for one in names if not check_hostname(one))
        attached = msgspec.structs.replace(attached, refused=True)
        if not names:
            return attached
    listeners = tuple(
        (one, hosts)
        for one in allowed
        for hosts in (matching_hostnames(one.hostname, names),)
        if hosts
    )
    if not listeners and not attached.refused:
        hosts = ", ".join(dict.fromkeys(one.hostname for one in allowed))
        message = f"{', '.join(route.spec.hostnames)} (the listeners have {hosts})"
        report.refuse("spec.hostnames", "NoMatchingListenerHostname", message)
    return msgspec.structs.replace(attached, listeners=listeners)


def _find_gateway(parent: ParentReference, namespace: str, reader: Reader) -> GatewayView | None:
    """Return the Gateway of ours whose listeners are meant, the ListenerSet's parent when one is named."""
    if parent.kind == "Gateway":
        return reader.gateway(namespace, parent.name)
    found = reader.listener_set(namespace, parent.name)
    gateway = parent_of(found) if found else None
    return reader.gateway(*gateway) if gateway else None


def _is_closed_set(parent: ParentReference, namespace: str, reader: Reader) -> bool:
    found = reader.listener_set(namespace, parent.name)
    return found is not None and found.closed is not None


def _exists(parent: ParentReference, namespace: str, reader: Reader) -> bool:
    if parent.kind == "Gateway":
        return reader.gateway_exists(namespace, parent.name)
    return reader.listener_set(namespace, parent.name) is not None


def _refuse_kind(parent: ParentReference, report: Report, path: str) -> None:
    """Say that nothing in a file will ever be this parent; in a cluster it may be another's."""
    if (parent.group, parent.kind) == ("", "Service"):
        report.refuse(f"{path}.kind", "NotSupported", supported_text("Service", _KINDS))
    elif parent.kind not in _KINDS:
        ours = parent.group == GATEWAY_GROUP
        hint = did_you_mean(parent.kind, _KINDS) if ours else ""
        report.refuse(f"{path}.kind", "NotSupported", supported_text(parent.kind, _KINDS), hint)
    else:
        message = supported_text(parent.group, (GATEWAY_GROUP,))
        hint = did_you_mean(parent.group, (GATEWAY_GROUP,))
        report.refuse(f"{path}.group", "NotSupported", message, hint)


def _named_listeners(parent: ParentReference, listeners: list[ListenerView]) -> list[ListenerView]:
    return [
        one
        for one in listeners
        if parent.section_name in (None, one.section) and parent.port in (None, one.port)
    ]


def _refuse_name(
    parent: ParentReference,
    namespace: str,
    listeners: list[ListenerView],
    report: Report,
    path: str,
) -> None:
    sections = [one.section for one in listeners]
    named = f"{parent.kind} {namespace}/{parent.name}"
    if not listeners:
        report.refuse(f"{path}.name", "NoMatchingParent", f"{named} is not attached to its Gateway")
        return
    if parent.section_name is not None and parent.section_name not in sections:
        report.refuse(
            f"{path}.sectionName",
            "NoMatchingParent",
            f'"{parent.section_name}" ({named} has {", ".join(sections)})',
            did_you_mean(parent.section_name, sections),
        )
        return
    ports = sorted({one.port for one in listeners})
    message = f"{parent.port} ({named} has {', '.join(str(port) for port in ports)})"
    report.refuse(f"{path}.port", "NoMatchingParent", message)


def _allows(listener: ListenerView, own: str, kind: str, namespace: str, reader: Reader) -> bool:
    """Tell whether a listener of an object in namespace `own` takes routes of a kind and namespace."""
    if kind not in listener.kinds:
        return False
    if listener.from_namespaces == "Same":
        return namespace == own
    if listener.from_namespaces == "Selector":
        if listener.selector is None:
            return False
        labels = reader.labels(namespace)
        return labels is not None and listener.selector.matches(labels)
    # Whatever else it says, perhaps to a newer API server, it did not say All.
    return listener.from_namespaces == "All"


def _rules_text(listeners: list[ListenerView], kind: str) -> str:
    """Say what each listener allows."""
    texts = (
        f"{one.section}: from {one.from_namespaces}"
        if kind in one.kinds
        else f"{one.section}: no {kind}"
        for one in listeners
    )
    return ", ".join(dict.fromkeys(texts))
