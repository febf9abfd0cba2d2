"""Gateway settings: adopted ClientTrafficPolicies as the EdgeProxy, the client certificates and the TLS options of their Gateways.

In: a snapshot, the EdgeProxies that stand for ClientTrafficPolicies. Out: Gateways, EdgeProxies, problems, and policies that close
listeners. An EdgeProxy is for all listeners of a Gateway: a listener whose client addresses would be read in another way is closed.
Must never: serve a listener without the client certificates that its policy requires.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from edgefast.api.gateway.listener import Listener, ListenerTLSConfig
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

__all__ = ["GatewayEditor", "ref_of_client"]

_PROXY = "EnvoyProxy"
_NOWHERE = Source("", 0)
#: The option that names a Secret of the policy's namespace, if it has no slash.
_CLIENT_CA = "gateway.edge.io/client-ca"


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
        found: dict[Key, dict[str, _Client]] = {}
        for one in sorted(self._find_clients(), key=_age):
            self.removed.append(_ref(one.proxy))
            for target in one.client.targets:
                self._place(one, target, found)
        for key, gateway in self._snapshot.gateways.items():
            if gateway.closed is None:
                self._edit(self._rename_parameters(gateway), found.get(key, {}))
        self._rename_classes()

    def _find_clients(self) -> Iterator[_Client]:
        for proxy in self._snapshot.edge_proxies.values():
            if proxy.adopted is not None:
                yield _Client(proxy, proxy.adopted)

    def _place(
        self, one: _Client, target: PolicyTarget, found: dict[Key, dict[str, _Client]]
    ) -> None:
        namespace = one.proxy.metadata.namespace
        path = ".".join(str(part) for part in target.path[:2])
        if target.kind != "Gateway":
            message = f"targets of kind {target.kind} are not supported (supported: Gateway)"
            self._warn(one, path, message, "target the Gateway")
            if _decides(one):
                for name in select_names(target, namespace, self._snapshot):
                    self._close(one, target.kind, (namespace, name), target.section)
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
            there = found.setdefault((namespace, name), {})
            first = there.setdefault(target.section, one)
            if first is not one:
                message = f"not applied: {first.ref} has the same target and is older"
                self._warn(one, path, message, "merge the two policies", "Conflicted")

    # --- one Gateway ---

    def _edit(self, gateway: Gateway, clients: dict[str, _Client]) -> None:
        if clients:
            gateway = self._edit_listeners(gateway, clients)
            gateway = self._edit_proxy(gateway, clients)
        if gateway is not self._snapshot.gateways[_key(gateway)]:
            self.objects.append(gateway)

    def _edit_listeners(self, gateway: Gateway, clients: dict[str, _Client]) -> Gateway:
        listeners = []
        wanted: dict[int, dict[str, FrontendTLSValidation | None]] = {}
        for listener in gateway.spec.listeners:
            one = clients.get(listener.name) or clients.get("")
            if one is not None and listener.tls is not None and _terminates(listener):
                listeners.append(_with_options(listener, listener.tls, one))
            else:
                listeners.append(listener)
            if listener.protocol == "HTTPS":
                there = wanted.setdefault(listener.port, {})
                there[listener.name] = _validation(one)
        spec = msgspec.structs.replace(gateway.spec, listeners=tuple(listeners))
        whole = _validation(clients.get(""))
        own = spec.tls.frontend if spec.tls is not None else None
        ports: dict[int, FrontendTLSValidation | None] = {}
        for port, named in wanted.items():
            values = [*named.values()]
            if own is None and all(value == values[0] for value in values):
                if values[0] != whole:
                    ports[port] = values[0]
                continue
            for name, value in named.items():
                one = clients.get(name) or clients.get("")
                if value is not None and one is not None:
                    self._close(one, "Gateway", _key(gateway), name, "tls.clientValidation")
        if own is None and (ports or whole is not None):
            spec = msgspec.structs.replace(spec, tls=_with_frontend(spec.tls, whole, ports))
        self._close_sets(gateway, clients.get(""))
        return msgspec.structs.replace(gateway, spec=spec)

    def _close_sets(self, gateway: Gateway, one: _Client | None) -> None:
        """Close ListenerSets of a Gateway whose policy has an option for client certificates: their listeners do not have it."""
        if one is None or _CLIENT_CA not in one.client.options:
            return
        for key, found in self._snapshot.listener_sets.items():
            ref = found.spec.parent_ref
            if (ref.namespace or key[0], ref.name) == _key(gateway):
                self._close(one, "ListenerSet", key, "", "tls.clientValidation.optional")

    def _edit_proxy(self, gateway: Gateway, clients: dict[str, _Client]) -> Gateway:
        names = [one.name for one in gateway.spec.listeners]
        whole = clients.get("")
        used = {id(clients.get(name) or whole): clients.get(name) or whole for name in names}
        if whole is None and len(used) == 1:
            whole = next(iter(used.values()))  # one policy for each listener
        for name, one in clients.items():
            if not name or one is whole:
                continue
            spec, other = one.proxy.spec, whole.proxy.spec if whole is not None else EdgeProxySpec()
            if spec.client_address != other.client_address:
                self._close(one, "Gateway", _key(gateway), name, "clientIPDetection, proxyProtocol")
            if msgspec.structs.replace(spec, client_address=None) != msgspec.structs.replace(
                other, client_address=None
            ):
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
        if (gateway.metadata.namespace, ref.name) not in self._snapshot.edge_proxies:
            return gateway
        return _with_parameters(gateway, infrastructure, ref.name)

    def _rename_classes(self) -> None:
        for one in self._snapshot.gateway_classes.values():
            ref = one.spec.parameters_ref
            if ref is None or (ref.group, ref.kind) != (ENVOY_GROUP, _PROXY):
                continue
            if (ref.namespace or "", ref.name) in self._snapshot.edge_proxies:
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

    def _close(self, one: _Client, kind: str, key: Key, section: str, what: str = "") -> None:
        source = self._snapshot.source_of(_ref(one.proxy)) or _NOWHERE
        target = Target(("spec", "targetRefs"), GATEWAY_GROUP, kind, *key, section=section)
        self.closing.append(
            ForeignPolicy(
                ref=one.ref,
                targets=((target, source),),
                fields=(),
                source=source,
                access_policies=(what or "spec",),
            )
        )


def _decides(one: _Client) -> bool:
    """Tell whether a policy decides access: client certificates, or trust in client addresses."""
    client = one.client
    return bool(
        client.validation is not None
        or _CLIENT_CA in client.options
        or one.proxy.spec.client_address is not None
    )


def _age(one: _Client) -> tuple[str, str, str]:
    meta = one.proxy.metadata
    return meta.creation_timestamp or "9", meta.namespace, meta.name


def _key(gateway: Gateway) -> Key:
    return gateway.metadata.namespace, gateway.metadata.name


def _ref(proxy: EdgeProxy) -> ObjectRef:
    return ObjectRef("EdgeProxy", proxy.metadata.namespace, proxy.metadata.name, EDGE_GROUP)


def _terminates(listener: Listener) -> bool:
    return listener.protocol in ("HTTPS", "TLS") and (
        listener.tls is not None and listener.tls.mode == "Terminate"
    )


def _validation(one: _Client | None) -> FrontendTLSValidation | None:
    found = one.client.validation if one is not None else None
    assert found is None or isinstance(found, FrontendTLSValidation)
    return found


def _with_options(listener: Listener, tls: ListenerTLSConfig, one: _Client) -> Listener:
    options = dict(one.client.options)
    validation = _validation(one)
    if validation is not None and listener.protocol != "HTTPS":
        # A listener without HTTP cannot check client certificates: this option refuses it.
        options[_CLIENT_CA] = validation.ca_certificate_refs[0].name
    if "/" not in options.get(_CLIENT_CA, "/"):
        options[_CLIENT_CA] = f"{one.proxy.metadata.namespace}/{options[_CLIENT_CA]}"
    merged = msgspec.structs.replace(tls, options={**tls.options, **options})
    return msgspec.structs.replace(listener, tls=merged)


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
