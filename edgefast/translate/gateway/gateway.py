"""Gateway: Gateways of edgefast's classes, with EdgeProxy, addresses, client certificate and listeners.

In: the world, the GatewayClasses and the keyring. Out: a `GatewayDraft` for each Gateway of
edgefast, oldest first. fleet/merge.py completes the drafts, status/gateway.py makes statuses of
them.
Source: Gateway API Gateway. It is cheap, so it runs each time; parsed keys are cached.
Must never: let a broken Gateway disturb another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from edgefast import ir
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.kinds import ref_of
from edgefast.api.model.origin import is_made
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import Problem, supported_text
from edgefast.translate.deps.dependency_facts import GatewayView, World
from edgefast.translate.edgeproxy.edgeproxy import (
    check_edge_proxy,
    resolve_parameters,
)
from edgefast.translate.edgeproxy.parameters import DEFAULTS, Parameters, join_parameters
from edgefast.translate.gateway.address import check_addresses, has_no_address
from edgefast.translate.gateway.adopted_classes import is_ignored_reference
from edgefast.translate.gateway.allowed_namespaces import check_namespaces
from edgefast.translate.gateway.gatewayclass import GatewayClassOutcome
from edgefast.translate.gateway.listener import (
    NAMESPACES,
    ListenerDraft,
    PortKey,
    translate_listener,
)
from edgefast.translate.gateway.listenerset import (
    ListenerSetDraft,
    check_allowed,
    index_listener_sets,
)
from edgefast.translate.gateway.restrictions import (
    check_requested_labels,
    check_restrictions,
    grant_spec,
)
from edgefast.translate.match.precedence import Age, age_order
from edgefast.translate.report.foreign_annotations import report_annotations
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import (
    SHUT,
    closing_problems,
    refuse_unserved,
    warn_unserved,
)
from edgefast.translate.tls.keyring import Keyring
from edgefast.translate.tls.tls import resolve_certificate

VALIDATION_MODES = ("AllowValidOnly", "AllowInsecureFallback")


class GatewayDraft:
    """A Gateway while it is translated."""

    def __init__(self, gateway: Gateway, gateway_class: GatewayClassOutcome) -> None:
        self.gateway = gateway
        self.gateway_class = gateway_class
        self.key: Key = (gateway.metadata.namespace, gateway.metadata.name)
        self.made = is_made(gateway.metadata.name)  # it serves Ingresses
        self.age: Age = age_order(gateway.metadata)
        self.report = Report(ref_of(gateway))
        self.closed: tuple[
            Problem, ...
        ] = ()  # fields of it that are not served: no listener of it is
        self.closed_by: list[
            Problem
        ] = []  # the same of its class or an EdgeProxy, which tell of it
        self.unusable: tuple[Problem, ...] = ()  # requested addresses that cannot be had
        self.fleet = ""
        self.parameters = DEFAULTS
        self.checked: tuple[Problem, ...] = ()  # of its own EdgeProxy
        # Where an older Gateway decides, by transport and port.
        self.http_of_port: dict[PortKey, ir.HttpSettings] = {}
        self.stream_of_port: dict[PortKey, ir.StreamSettings] = {}
        self.sets: list[ListenerSetDraft] = []  # that name it, allowed or not
        self.listeners: list[ListenerDraft] = []  # its own, then those of its sets
        self.certificate: ir.Secret | None = None

    @property
    def accepted(self) -> bool:
        """Tell whether the Gateway gets a fleet: one listener at least is accepted."""
        return not self.report.refused and any(one.accepted for one in self.listeners)

    @property
    def own_listeners(self) -> list[ListenerDraft]:
        """Those of its `spec.listeners`."""
        return [one for one in self.listeners if one.set is None]

    def view(self) -> GatewayView:
        """Return what routes see."""
        served = self.accepted
        certificate = self.certificate.name.removeprefix("secret/") if self.certificate else ""
        return GatewayView(
            namespace=self.key[0],
            name=self.key[1],
            certificate=certificate,
            proxy_protocol=self.parameters.proxy_protocol,
            listeners=tuple(one.view(gateway_served=served) for one in self.listeners),
            closed=self.gateway.closed is not None,
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems of the Gateway, its listeners and its own EdgeProxy."""
        own = [*self.report.problems, *self.unusable, *self.closed]
        for one in self.listeners:
            own += [*one.report.problems, *one.conflicts, *one.closed]
        for one_set in self.sets:
            own += one_set.report.problems
            own += (problem for one in one_set.listeners if one.tls for problem in one.tls.hidden)
        return tuple(dict.fromkeys((*own, *self.checked)))


def translate_gateways(
    world: World, classes: dict[str, GatewayClassOutcome], keyring: Keyring
) -> list[GatewayDraft]:
    """Check every watched Gateway of our classes; oldest first."""
    drafts = []
    # By class: of Gateways that have no EdgeProxy of their own.
    inherited: dict[str, Parameters] = {}
    sets = index_listener_sets(world)
    for (namespace, name), gateway in world.snapshot.gateways.items():
        gateway_class = classes.get(gateway.spec.gateway_class_name)
        made = is_made(name)
        if gateway_class is None or not (made or _is_watched(world, namespace)):
            continue
        if is_made(gateway.spec.gateway_class_name) is not made:
            continue  # the class of the Gateways that serve Ingresses has no other Gateways
        draft = GatewayDraft(gateway, gateway_class)
        draft.sets = sets.get((namespace, name), [])
        _translate(draft, world, keyring, inherited)
        drafts.append(draft)
    drafts.sort(key=lambda draft: draft.age)
    return drafts


def _is_watched(world: World, namespace: str) -> bool:
    found = world.snapshot.namespaces.get(("", namespace))
    return world.settings.watches(namespace, found.metadata.labels if found else {})


def _translate(
    draft: GatewayDraft, world: World, keyring: Keyring, inherited: dict[str, Parameters]
) -> None:
    gateway = draft.gateway
    if not draft.gateway_class.accepted:
        name = gateway.spec.gateway_class_name
        message = f"GatewayClass {name} is not accepted"
        path = "spec.gatewayClassName"
        draft.report.follow(draft.report.refuse(path, "InvalidParameters", message))
    _close_by(draft, "spec.gatewayClassName", draft.gateway_class.closed)
    if gateway.closed is not None:
        message = f"the Gateway has an error: {gateway.closed.said}"
        draft.closed_by.append(Problem(draft.report.object, "", "Invalid", message))
    _translate_parameters(draft, world, inherited)
    draft.unusable = check_addresses(draft.gateway, draft.report, world.settings)
    _translate_client_certificate(draft, world, keyring)
    check_requested_labels(gateway, draft.report, world.settings)
    if gateway.spec.default_scope not in (None, "None"):
        message = "default Gateways are not supported; routes must set parentRefs"
        draft.report.warn("spec.defaultScope", "NotSupported", message)
    if gateway.spec.allowed_listeners is not None:
        where, namespaces = (
            "spec.allowedListeners.namespaces",
            gateway.spec.allowed_listeners.namespaces,
        )
        check_namespaces(namespaces, (*NAMESPACES, "None"), draft.report, where)
    draft.listeners = [
        translate_listener(gateway, index, world, keyring)
        for index in range(len(gateway.spec.listeners))
    ]
    for one in draft.sets:
        check_allowed(gateway, one, world)
        if one.allowed:
            one.listeners = [
                translate_listener(gateway, index, world, keyring, one.listener_set)
                for index in range(len(one.listener_set.spec.listeners))
            ]
            draft.listeners += one.listeners
    unbound = has_no_address(gateway, world.settings)
    for listener in draft.listeners:
        listener.unbound = unbound
    if gateway.metadata.annotations and draft.accepted:
        report_annotations(gateway.metadata, draft.report, world.settings)
    _close(draft)


def _translate_parameters(
    draft: GatewayDraft, world: World, inherited: dict[str, Parameters]
) -> None:
    class_proxy = draft.gateway_class.proxy
    class_spec = class_proxy.spec if class_proxy else None
    infrastructure, own = draft.gateway.spec.infrastructure, None
    ref = infrastructure.parameters_ref if infrastructure else None
    if ref is not None and not is_ignored_reference(ref, world.settings):
        proxy = world.snapshot.edge_proxies.get((draft.key[0], ref.name))
        wrong = resolve_parameters(ref.group, ref.kind, draft.key[0], ref.name, proxy)
        if wrong:
            path = "spec.infrastructure.parametersRef"
            draft.report.refuse(path, "InvalidParameters", wrong)
        elif proxy is not None:
            own = grant_spec(proxy, world.settings)
            checked = check_edge_proxy(
                proxy,
                of_gateway=True,
                standalone=world.settings.standalone,
                tracing=world.settings.tracing,
                allowed=world.settings.backend_cidrs,
                class_spec=class_spec,
            ).problems
            wished = check_restrictions(proxy, world.settings, of_gateway=True)
            closed = closing_problems(proxy, SHUT, "UnsupportedValue")
            _close_by(draft, "spec.infrastructure.parametersRef", closed)
            draft.checked = (*checked, *wished, *closed)
    known = inherited.get(draft.gateway.spec.gateway_class_name) if own is None else None
    if known is None:
        known = join_parameters(
            class_spec,
            own,
            tracing=world.settings.tracing,
            allowed=world.settings.backend_cidrs,
        )
        if own is None:
            inherited[draft.gateway.spec.gateway_class_name] = known
    draft.parameters = known


def _close(draft: GatewayDraft) -> None:
    """Shut all listeners where a field of the Gateway, of its class or of an EdgeProxy is not served."""
    report = Report(draft.report.object)
    refuse_unserved(draft.gateway, report, SHUT, condition="Invalid")
    for path, mode in _validation_modes(draft.gateway):
        if mode not in VALIDATION_MODES:
            message = f"{supported_text(mode, VALIDATION_MODES)}; {SHUT}"
            report.refuse(path, "UnsupportedValue", message, condition="Invalid")
    draft.closed = tuple(map(_address_word, report.refused))
    warn_unserved(draft.gateway, draft.report)
    for one in draft.listeners if draft.closed or draft.closed_by else ():
        one.shut = True


def _validation_modes(gateway: Gateway) -> Iterator[tuple[str, str]]:
    """Give the field path and the word of each mode in which clients are verified."""
    frontend = gateway.spec.tls.frontend if gateway.spec.tls else None
    if frontend is None:
        return
    if frontend.default.validation is not None:
        yield "spec.tls.frontend.default.validation.mode", frontend.default.validation.mode
    for at, one in enumerate(frontend.per_port):
        if one.tls.validation is not None:
            yield f"spec.tls.frontend.perPort[{at}].tls.validation.mode", one.tls.validation.mode


def _address_word(one: Problem) -> Problem:
    """Return the problem under the word that the API has for addresses which cannot be had as they are asked for."""
    if not one.path.startswith("spec.addresses["):
        return one
    return msgspec.structs.replace(one, condition="UnsupportedAddress")


def _close_by(draft: GatewayDraft, path: str, why: Iterable[Problem]) -> None:
    """Close a Gateway for a field of an object that it depends on."""
    for one in why:
        problem = Problem(draft.report.object, path, "InvalidParameters", one.text())
        draft.closed_by.append(problem)


def _translate_client_certificate(draft: GatewayDraft, world: World, keyring: Keyring) -> None:
    tls = draft.gateway.spec.tls
    ref = tls.backend.client_certificate_ref if tls and tls.backend else None
    if ref is None:
        return
    path = "spec.tls.backend.clientCertificateRef"
    found = resolve_certificate(draft.gateway, ref, world, keyring)
    if isinstance(found, tuple):
        reason = found[0] or "InvalidClientCertificateRef"
        draft.report.unresolve(path, reason, found[1])
        return
    draft.certificate = found.secret
    late = found.pair.check_time(world.settings.now)
    if late:
        draft.report.warn(path, "Invalid", late)
