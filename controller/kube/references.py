"""References: the Secrets, ConfigMaps and ClusterTrustBundles that must be read, because a managed object refers to them.

In: a snapshot and the settings.
Out: their names. References come from Gateways of the controller's classes in watched namespaces
(listener certificates, client certificate, authorities), their ListenerSets, BackendTLSPolicies,
Backends, XBackends, HTTPRouteFilters (response bodies), SecurityPolicies (client keys, passwords,
key sets), BackendTrafficPolicies (response bodies), and rateLimit of the configuration. Those of
Ingresses are found by ingress_references.py. A reference
into another namespace counts only with a ReferenceGrant; otherwise the object is not read. Pure.
Must never: follow a reference of another controller's Gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.kube.fetch import Reference
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.listener import Listener
from edgefast.api.gateway.xbackend import XBackend
from edgefast.api.model.reference import (
    LocalObjectReference,
    ObjectReference,
    SecretObjectReference,
)
from edgefast.api.snapshot import Snapshot
from edgefast.translate.deps.authority import CLUSTER_KIND, authority_of
from edgefast.translate.deps.referencegrant import Grants, index_grants, is_granted
from edgefast.translate.gateway.listenerset import parent_of
from edgefast.translate.settings import Settings

__all__ = ["READ", "referenced"]

#: Tables of a snapshot that are looked at.
READ = (
    "gateway_classes",
    "gateways",
    "listener_sets",
    "reference_grants",
    "backend_tls_policies",
    "backends",
    "x_backends",
    "http_route_filters",
    "security_policies",
    "backend_traffic_policies",
    "namespaces",
)


def referenced(snapshot: Snapshot, settings: Settings) -> frozenset[Reference]:
    """Return (kind, namespace, name) of every Secret, ConfigMap and ClusterTrustBundle that translation would look at."""
    found = set(_of_configuration(settings))
    grants = index_grants(snapshot)
    for (namespace, _), gateway in snapshot.gateways.items():
        if _is_ours(gateway, namespace, snapshot, settings):
            found.update(_granted(_refs_of(gateway), "Gateway", namespace, grants))
    for (namespace, _), one in snapshot.listener_sets.items():
        parent = parent_of(one)
        gateway_of = snapshot.gateways.get(parent) if parent else None
        if gateway_of is None or not _is_watched(namespace, snapshot, settings):
            continue
        if parent and _is_ours(gateway_of, parent[0], snapshot, settings):
            found.update(
                _granted(_refs_of_listeners(one.spec.listeners), "ListenerSet", namespace, grants)
            )
    for (namespace, _), policy in snapshot.backend_tls_policies.items():
        found.update(_local(policy.spec.validation.ca_certificate_refs, namespace))
    for (namespace, _), answers in snapshot.http_route_filters.items():
        direct = answers.spec.direct_response
        body = direct.body if direct else None
        if body is not None and body.value_ref is not None:
            found.update(_map(body.value_ref, namespace))
    for (namespace, _), guard in snapshot.security_policies.items():
        if _is_watched(namespace, snapshot, settings):
            found.update(_granted(_refs_of_guard(guard), "SecurityPolicy", namespace, grants))
            found.update(_key_sets(guard, namespace))
    for (namespace, _), treated in snapshot.backend_traffic_policies.items():
        if _is_watched(namespace, snapshot, settings):
            for override in treated.spec.response_override or ():
                text = override.response.body if override.response is not None else None
                if text is not None and text.value_ref is not None:
                    found.update(_map(text.value_ref, namespace))
    if settings.enable_backend:
        for (namespace, _), backend in snapshot.backends.items():
            tls = backend.spec.tls
            if tls is not None:
                found.update(_local(tls.ca_certificate_refs, namespace))
                ref = tls.client_certificate_ref
                if ref is not None and ref.namespace in (None, namespace):
                    found.update(_named(ref.group, ref.kind, namespace, ref.name))
    if settings.enable_x_backend:
        for (namespace, _), target in snapshot.x_backends.items():
            found.update(_of_x_backend(target, namespace))
    return frozenset(found)


def _of_x_backend(target: XBackend, namespace: str) -> Iterator[Reference]:
    tls = target.spec.tls
    if tls is None:
        return
    if tls.validation is not None:
        yield from _local(tls.validation.ca_certificate_refs, namespace)
    ref = tls.client_certificate_ref
    if ref is not None and ref.namespace in (None, namespace):
        yield from _named(ref.group, ref.kind, namespace, ref.name)


def _is_ours(gateway: Gateway, namespace: str, snapshot: Snapshot, settings: Settings) -> bool:
    gateway_class = snapshot.gateway_classes.get(("", gateway.spec.gateway_class_name))
    if gateway_class is None or gateway_class.spec.controller_name != settings.controller_name:
        return False
    return _is_watched(namespace, snapshot, settings)


def _is_watched(namespace: str, snapshot: Snapshot, settings: Settings) -> bool:
    found = snapshot.namespaces.get(("", namespace))
    return settings.watches(namespace, found.metadata.labels if found else {})


def _granted(
    refs: Iterable[SecretObjectReference | ObjectReference],
    kind: str,
    namespace: str,
    grants: Grants,
) -> Iterator[Reference]:
    for ref in refs:
        target = ref.namespace or namespace
        found = authority_of(ref.group, ref.kind)
        if found == CLUSTER_KIND:
            yield (found, "", ref.name)
        elif not found:
            continue
        elif target == namespace or is_granted(
            grants.get(target, ()),
            kind=kind,
            namespace=namespace,
            to_group="",
            to_kind=found,
            to_name=ref.name,
        ):
            yield (found, target, ref.name)


def _refs_of(gateway: Gateway) -> Iterator[SecretObjectReference | ObjectReference]:
    yield from _refs_of_listeners(gateway.spec.listeners)
    tls = gateway.spec.tls
    if tls is None:
        return
    if tls.backend is not None and tls.backend.client_certificate_ref is not None:
        yield tls.backend.client_certificate_ref
    if tls.frontend is not None:
        for one in (tls.frontend.default, *(port.tls for port in tls.frontend.per_port)):
            if one.validation is not None:
                yield from one.validation.ca_certificate_refs


def _refs_of_listeners(listeners: Iterable[Listener]) -> Iterator[SecretObjectReference]:
    for listener in listeners:
        if listener.tls is not None:
            yield from listener.tls.certificate_refs


def _refs_of_guard(policy: SecurityPolicy) -> Iterator[SecretObjectReference]:
    keys, passwords = policy.spec.api_key_auth, policy.spec.basic_auth
    if keys is not None:
        yield from (ref for ref in keys.credential_refs if ref.kind == "Secret")
    if passwords is not None and passwords.users.kind == "Secret":
        yield passwords.users
    if policy.spec.oidc is not None:
        for ref in (policy.spec.oidc.client_secret, policy.spec.oidc.client_id_ref):
            if ref is not None and ref.kind == "Secret":
                yield ref


def _key_sets(policy: SecurityPolicy, namespace: str) -> Iterator[Reference]:
    for one in policy.spec.jwt.providers if policy.spec.jwt is not None else ():
        if one.local_jwks is not None and one.local_jwks.value_ref is not None:
            yield from _map(one.local_jwks.value_ref, namespace)


def _of_configuration(settings: Settings) -> Iterator[Reference]:
    redis = settings.rate_limit.backend.redis if settings.rate_limit.backend else None
    if redis is None:
        return
    tls = redis.tls
    for ref in (
        redis.url_ref,
        redis.password_ref,
        tls.ca_certificate_ref if tls else None,
        tls.client_certificate_ref if tls else None,
    ):
        if ref is not None:
            yield ("Secret", ref.namespace or settings.namespace, ref.name)


def _local(refs: Iterable[LocalObjectReference], namespace: str) -> Iterator[Reference]:
    for ref in refs:
        yield from _named(ref.group, ref.kind, namespace, ref.name)


def _map(ref: LocalObjectReference, namespace: str) -> Iterator[Reference]:
    if (ref.group, ref.kind) == ("", "ConfigMap"):
        yield ("ConfigMap", namespace, ref.name)


def _named(group: str, kind: str, namespace: str, name: str) -> Iterator[Reference]:
    if found := authority_of(group, kind):
        yield (found, "" if found == CLUSTER_KIND else namespace, name)
