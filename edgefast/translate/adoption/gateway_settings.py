"""Gateway settings: adopted ClientTrafficPolicies as the EdgeProxy, the client certificates and the TLS options of their Gateways.

In: a snapshot, the EdgeProxies that stand for ClientTrafficPolicies. Out: Gateways, EdgeProxies, problems, and policies that close
listeners. An EdgeProxy is for all listeners of a Gateway and its ListenerSets: a listener whose own policy, or lack of one, decides
access in another way is closed.
Must never: serve a listener without the client certificates that its policy requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from edgefast.api.edge.edgeproxy import EdgeProxy, EdgeProxySpec
from edgefast.api.gateway.gateway import (
    FrontendTLSConfig,
    FrontendTLSValidation,
    Gateway,
    GatewayInfrastructure,
    GatewayTLSConfig,
    TLSConfig,
    TLSPortConfig,
)
from edgefast.api.gateway.listener import Listener
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.kinds import EDGE_GROUP, Object
from edgefast.api.migration.adoption.adopted_document import ENVOY_GROUP
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.migration.target import Target
from edgefast.api.model.adopted import AdoptedClient
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.policy_target import PolicyTarget
from edgefast.api.model.reference import GATEWAY_GROUP, LocalParametersReference
from edgefast.api.snapshot import Key, Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem, Source
from edgefast.translate.adoption.route_rules import MARK
from edgefast.translate.adoption.targets import select_names
from edgefast.translate.gateway.listenerset import allows_sets, parent_of

__all__ = ["GatewayEditor", "ref_of_client"]

_PROXY = "EnvoyProxy"
_NOWHERE = Source("", 0)
#: The option that names a Secret of the policy's namespace, if it has no slash.
_CLIENT_CA = "gateway.edge.io/client-ca"

_TO_GATEWAY = "target the Gateway, or put the listener on a Gateway of its own"
#: Settings of an EdgeProxy that decide access, by their fields of a ClientTrafficPolicy: which address, certificate and path policies see.
_DECIDING: dict[str, Callable[[EdgeProxySpec], object]] = {
    "clientIPDetection, proxyProtocol": lambda spec: spec.client_address,
    "headers.xForwardedClientCert": lambda spec: (
        spec.headers.x_forwarded_client_cert if spec.headers is not None else None
    ),
    "headers.withUnderscoresAction": lambda spec: (
        spec.http.underscores if spec.http is not None else None
    ),
    "path.escapedSlashesAction": lambda spec: (
        spec.http.escaped_slashes if spec.http is not None else None
    ),
}

_HTTP = ("HTTP", "HTTPS")
_OF_CONNECTIONS = ("clientIPDetection, proxyProtocol",)


def ref_of_client(client: AdoptedClient, namespace: str) -> ObjectRef:
    """Return the reference to a ClientTrafficPolicy."""
    return ObjectRef("ClientTrafficPolicy", namespace, client.name, ENVOY_GROUP)


class _Client(msgspec.Struct, frozen=True, eq=False):
    """One ClientTrafficPolicy."""

    proxy: EdgeProxy
    client: AdoptedClient

    @property
    def ref(self) -> ObjectRef:
        """The policy."""
        return ref_of_client(self.client, self.proxy.metadata.namespace)


class _Place(msgspec.Struct, frozen=True, eq=False):
    """One listener of a Gateway, or of a ListenerSet of it, and the policy that applies to it."""

    kind: str
    key: Key
    listener: Listener
    one: _Client | None

    def __str__(self) -> str:
        return f"listener {self.listener.name} of {self.kind} {self.key[0]}/{self.key[1]}"


class GatewayEditor:
    """Places settings of ClientTrafficPolicies on Gateways."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.objects: list[Object] = []
        self.removed: list[ObjectRef] = []
        self.problems: list[Problem] = []
        self.closing: list[ForeignPolicy] = []
        self.origins: dict[tuple[str, str, str], ObjectRef] = {}

    def edit_all(self) -> None:
        """Edit every Gateway with a ClientTrafficPolicy or an adopted EnvoyProxy."""
        found: dict[str, dict[Key, dict[str, _Client]]] = {"Gateway": {}, "ListenerSet": {}}
        for one in sorted(self._find_clients(), key=_age):
            self.removed.append(_ref(one.proxy))
            for target in one.client.targets:
                self._place(one, target, found)
        sets: dict[Key, list[tuple[Key, ListenerSet]]] = {}
        for key, listener_set in self._snapshot.listener_sets.items():
            parent = parent_of(listener_set)
            if parent is not None:
                sets.setdefault(parent, []).append((key, listener_set))
        for key, gateway in self._snapshot.gateways.items():
            if gateway.closed is not None:
                continue
            whole, places = found["Gateway"].get(key, {}), []
            for listener in gateway.spec.listeners:
                one_of = whole.get(listener.name) or whole.get("")
                places.append(_Place("Gateway", key, listener, one_of))
            for name, listener_set in sets.get(key, ()):
                if not allows_sets(gateway, name[0], self._snapshot):
                    continue
                own = found["ListenerSet"].get(name, {})
                for listener in listener_set.spec.listeners:
                    one_of = own.get(listener.name) or own.get("") or whole.get("")
                    places.append(_Place("ListenerSet", name, listener, one_of))
            self._edit(self._rename_parameters(gateway), whole.get(""), places)
        self._rename_classes()

    def _find_clients(self) -> Iterator[_Client]:
        for proxy in self._snapshot.edge_proxies.values():
            if proxy.adopted is not None:
                yield _Client(proxy, proxy.adopted)

    def _place(
        self, one: _Client, target: PolicyTarget, found: dict[str, dict[Key, dict[str, _Client]]]
    ) -> None:
        namespace = one.proxy.metadata.namespace
        path = ".".join(str(part) for part in target.path[:2])
        if target.kind != "Gateway":
            message = f"targets of kind {target.kind} are not supported (supported: Gateway)"
            if target.kind == "ListenerSet":
                for name in select_names(target, namespace, self._snapshot):
                    there = found["ListenerSet"].setdefault((namespace, name), {})
                    there.setdefault(target.section, one)
            elif _decides(one):
                for name in select_names(target, namespace, self._snapshot):
                    key = namespace, name
                    self._close(one, target.kind, key, target.section, "spec", message)
                return
            self._warn(one, path, message, "target the Gateway")
            return
        for name in select_names(target, namespace, self._snapshot):
            gateway = self._snapshot.gateways.get((namespace, name))
            if gateway is None:
                message = f"Gateway {namespace}/{name} not found"
                self._warn(one, path, message, reason="NotFound")
                continue
            if target.section and target.section not in {
                listener.name for listener in gateway.spec.listeners
            }:
                message = f"Gateway {namespace}/{name} has no listener {target.section}"
                self._warn(one, path, message, reason="NotFound")
                continue
            there = found["Gateway"].setdefault((namespace, name), {})
            first = there.setdefault(target.section, one)
            if first is not one:
                message = f"not applied: {first.ref} has the same target and is older"
                self._warn(one, path, message, "merge the two policies", "Conflicted")

    # --- one Gateway ---

    def _edit(self, gateway: Gateway, whole: _Client | None, places: list[_Place]) -> None:
        if any(place.one is not None for place in places):
            gateway = self._edit_listeners(gateway, places)
            gateway = self._edit_frontend(gateway, whole, places)
            gateway = self._edit_proxy(gateway, whole, places)
        if gateway is not self._snapshot.gateways[_key(gateway)]:
            self.objects.append(gateway)

    def _edit_listeners(self, gateway: Gateway, places: list[_Place]) -> Gateway:
        """Give listeners their options of TLS."""
        found: dict[tuple[str, Key], list[Listener]] = {}
        for place in places:
            listener, one = place.listener, place.one
            options = _find_options(listener, one) if one is not None else {}
            if place.kind != "Gateway" and _CLIENT_CA in options:
                message = f"not applied to {place}: a ListenerSet does not have this client CA"
                self._close_place(place, "tls.clientValidation", message, _TO_GATEWAY)
            elif options and listener.tls is not None:
                tls = msgspec.structs.replace(
                    listener.tls, options={**listener.tls.options, **options}
                )
                listener = msgspec.structs.replace(listener, tls=tls)
            found.setdefault((place.kind, place.key), []).append(listener)
        for (kind, key), listeners in found.items():
            if kind == "ListenerSet":
                old = self._snapshot.listener_sets[key]
                if tuple(listeners) != old.spec.listeners:
                    spec = msgspec.structs.replace(old.spec, listeners=tuple(listeners))
                    self.objects.append(msgspec.structs.replace(old, spec=spec))
        own = found.get(("Gateway", _key(gateway)), [])
        return msgspec.structs.replace(
            gateway, spec=msgspec.structs.replace(gateway.spec, listeners=tuple(own))
        )

    def _edit_frontend(
        self, gateway: Gateway, whole: _Client | None, places: list[_Place]
    ) -> Gateway:
        """Set the client certificates of each port; a listener that needs others is closed."""
        default = _validation(whole)
        wanted: dict[int, list[_Place]] = {}
        for place in places:
            if place.listener.protocol == "HTTPS":
                wanted.setdefault(place.listener.port, []).append(place)
        own = gateway.spec.tls.frontend if gateway.spec.tls is not None else None
        ports: dict[int, FrontendTLSValidation | None] = {}
        for port, there in wanted.items():
            values = [_validation(place.one) for place in there]
            if own is not None:
                self._close_strict(there, None, "the Gateway has its own spec.tls.frontend")
            elif all(value == values[0] for value in values):
                if values[0] != default:
                    ports[port] = values[0]
            else:
                self._close_strict(there, default, f"port {port} has other client certificates")
        if own is None and (ports or default is not None):
            tls = _with_frontend(gateway.spec.tls, default, ports)
            spec = msgspec.structs.replace(gateway.spec, tls=tls)
            return msgspec.structs.replace(gateway, spec=spec)
        return gateway

    def _close_strict(
        self, places: list[_Place], given: FrontendTLSValidation | None, why: str
    ) -> None:
        """Close listeners that need other client certificates than their port has."""
        for place in places:
            value = _validation(place.one)
            optional = place.one is not None and _CLIENT_CA in place.one.client.options
            if value not in (None, given) or (optional and given is not None):
                message = f"not applied to {place}: {why}"
                hint = "use another port, or one policy for all listeners of the port"
                self._close_place(place, "tls.clientValidation", message, hint)
            elif value != given and place.one is not None:
                message = f"{place} needs a client certificate, because its port does"
                self._warn(place.one, "spec.tls", message, "use another port")

    def _edit_proxy(self, gateway: Gateway, whole: _Client | None, places: list[_Place]) -> Gateway:
        used = {id(place.one): place.one for place in places}
        if whole is None and len(used) == 1:
            whole = next(iter(used.values()))  # one policy for each listener
        other = whole.proxy.spec if whole is not None else EdgeProxySpec()
        warned: set[int] = set()
        for place in places:
            one = place.one
            if one is None or one is whole:
                continue
            spec = one.proxy.spec
            deciding = _DECIDING if place.listener.protocol in _HTTP else _OF_CONNECTIONS
            names = [name for name in deciding if _DECIDING[name](spec) != _DECIDING[name](other)]
            if names:
                message = f"{', '.join(names)} would be those of the Gateway for {place}"
                self._close_place(place, ", ".join(names), message, _TO_GATEWAY)
            elif spec != other and place.kind == "Gateway" and id(one) not in warned:
                warned.add(id(one))
                message = "settings of one listener are not applied, because listeners of a Gateway share them"
                self._warn(one, "spec.targetRefs", message, "target the Gateway")
        if whole is None or whole.proxy.spec == EdgeProxySpec():
            return gateway
        infrastructure = gateway.spec.infrastructure or GatewayInfrastructure()
        ref = infrastructure.parameters_ref
        namespace = gateway.metadata.namespace
        base = EdgeProxySpec()
        if ref is not None and (ref.group, ref.kind) == (EDGE_GROUP, "EdgeProxy"):
            found = self._snapshot.edge_proxies.get((namespace, ref.name))
            if found is None:
                return gateway  # it is reported, and nothing of the Gateway is served
            base = found.spec
        name = f"{gateway.metadata.name}{MARK}"
        self.origins["EdgeProxy", namespace, name] = whole.ref
        spec = _merge(base, whole.proxy.spec)
        self.objects.append(
            EdgeProxy(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)
        )
        return _with_parameters(gateway, infrastructure, name)

    # --- EnvoyProxy ---

    def _rename_parameters(self, gateway: Gateway) -> Gateway:
        """Return a Gateway whose EnvoyProxy, if a file has it, is an EdgeProxy."""
        infrastructure = gateway.spec.infrastructure
        ref = infrastructure.parameters_ref if infrastructure is not None else None
        if infrastructure is None or ref is None or (ref.group, ref.kind) != (ENVOY_GROUP, _PROXY):
            return gateway
        if not self._has_proxy(gateway.metadata.namespace, ref.name):
            return gateway
        return _with_parameters(gateway, infrastructure, ref.name)

    def _has_proxy(self, namespace: str, name: str) -> bool:
        """Tell whether a file has an EnvoyProxy; a Gateway of one with an error is not served, as with such an EdgeProxy."""
        if (namespace, name) in self._snapshot.edge_proxies:
            return True
        return (_PROXY, namespace, name) in self._snapshot.refused

    def _rename_classes(self) -> None:
        for one in self._snapshot.gateway_classes.values():
            ref = one.spec.parameters_ref
            if ref is None or (ref.group, ref.kind) != (ENVOY_GROUP, _PROXY):
                continue
            if self._has_proxy(ref.namespace or "", ref.name):
                ours = msgspec.structs.replace(ref, group=EDGE_GROUP, kind="EdgeProxy")
                spec = msgspec.structs.replace(one.spec, parameters_ref=ours)
                self.objects.append(msgspec.structs.replace(one, spec=spec))

    # --- problems ---

    def _warn(
        self,
        one: _Client,
        path: str,
        message: str,
        hint: str = "",
        reason: Any = "NotSupported",
    ) -> None:
        problem = Problem(one.ref, path, reason, message, hint, severity="warning")
        source = self._snapshot.source_of(_ref(one.proxy), path)
        self.problems.append(msgspec.structs.replace(problem, source=source))

    def _close_place(self, place: _Place, what: str, message: str, hint: str) -> None:
        if place.one is not None:
            section = place.listener.name
            self._close(place.one, place.kind, place.key, section, what, message, hint)

    def _close(
        self,
        one: _Client,
        kind: str,
        key: Key,
        section: str,
        what: str,
        message: str,
        hint: str = "target the Gateway",
    ) -> None:
        """Close a target, and report why."""
        source = self._snapshot.source_of(_ref(one.proxy)) or _NOWHERE
        problem = Problem(one.ref, "spec.targetRefs", "NotSupported", message, hint, source)
        self.problems.append(problem)
        target = Target(("spec", "targetRefs"), GATEWAY_GROUP, kind, *key, section=section)
        self.closing.append(
            ForeignPolicy(
                ref=one.ref,
                targets=((target, source),),
                fields=(),
                source=source,
                access_policies=(what,),
            )
        )


def _decides(one: _Client) -> bool:
    """Tell whether a policy decides access: client certificates, or trust in client addresses."""
    client = one.client
    return bool(
        client.validation is not None
        or _CLIENT_CA in client.options
        or any(read(one.proxy.spec) is not None for read in _DECIDING.values())
    )


def _age(one: _Client) -> tuple[str, str, str]:
    meta = one.proxy.metadata
    return meta.creation_timestamp or "9", meta.namespace, meta.name


def _key(gateway: Gateway) -> Key:
    return gateway.metadata.namespace, gateway.metadata.name


def _ref(proxy: EdgeProxy) -> ObjectRef:
    return ObjectRef("EdgeProxy", proxy.metadata.namespace, proxy.metadata.name, EDGE_GROUP)


def _validation(one: _Client | None) -> FrontendTLSValidation | None:
    found = one.client.validation if one is not None else None
    assert found is None or isinstance(found, FrontendTLSValidation)
    return found


def _find_options(listener: Listener, one: _Client) -> dict[str, str]:
    """Return the options of TLS that a listener gets, none if it does not end TLS."""
    mode = listener.tls.mode if listener.tls is not None else "Terminate"
    if listener.protocol not in ("HTTPS", "TLS") or mode != "Terminate":
        return {}
    options = dict(one.client.options)
    validation = _validation(one)
    if validation is not None and listener.protocol != "HTTPS":
        # A listener without HTTP cannot check client certificates: this option refuses it.
        options[_CLIENT_CA] = validation.ca_certificate_refs[0].name
    if "/" not in options.get(_CLIENT_CA, "/"):
        options[_CLIENT_CA] = f"{one.proxy.metadata.namespace}/{options[_CLIENT_CA]}"
    return options


def _with_frontend(
    tls: GatewayTLSConfig | None,
    default: FrontendTLSValidation | None,
    ports: dict[int, FrontendTLSValidation | None],
) -> GatewayTLSConfig:
    per_port = tuple(
        TLSPortConfig(port=port, tls=TLSConfig(validation=one)) for port, one in ports.items()
    )
    frontend = FrontendTLSConfig(default=TLSConfig(validation=default), per_port=per_port)
    return msgspec.structs.replace(tls or GatewayTLSConfig(), frontend=frontend)


def _with_parameters(gateway: Gateway, infrastructure: GatewayInfrastructure, name: str) -> Gateway:
    ref = LocalParametersReference(group=EDGE_GROUP, kind="EdgeProxy", name=name)
    own = msgspec.structs.replace(infrastructure, parameters_ref=ref)
    spec = msgspec.structs.replace(gateway.spec, infrastructure=own)
    return msgspec.structs.replace(gateway, spec=spec)


def _merge(base: EdgeProxySpec, over: EdgeProxySpec) -> EdgeProxySpec:
    """Return the settings of both; those of `over` win field by field."""
    value = msgspec.to_builtins(base)
    _put_all(value, msgspec.to_builtins(over))
    return msgspec.convert(value, EdgeProxySpec)


def _put_all(target: dict[str, Any], over: dict[str, Any]) -> None:
    for name, value in over.items():
        there = target.get(name)
        if isinstance(value, dict) and isinstance(there, dict):
            _put_all(there, value)
        else:
            target[name] = value
