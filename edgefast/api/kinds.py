"""Kinds: every kind of object that edgefast reads, with its Struct, versions and scope.

In: nothing. Out: `KINDS[(group, kind)]`. A new kind needs one line here. EdgeGateway is not among
them: it is a configuration file, no API object (`decode_config`).
Must never: list a version with other fields than the Struct's.
"""

from __future__ import annotations

import msgspec

from edgefast.api.core.clustertrustbundle import (
    CERTIFICATES_GROUP,
    ClusterTrustBundle,
)
from edgefast.api.core.configmap import ConfigMap
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.namespace import Namespace
from edgefast.api.core.secret import Secret
from edgefast.api.core.service import Service
from edgefast.api.edge.backend import Backend
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.httproutefilter import HTTPRouteFilter
from edgefast.api.edge.ratelimitfilter import RateLimitFilter
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.gatewayclass import GatewayClass
from edgefast.api.gateway.grpcroute import GRPCRoute
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.gateway.layer4_route import TCPRoute, TLSRoute, UDPRoute
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.gateway.referencegrant import ReferenceGrant
from edgefast.api.gateway.xbackend import XBackend
from edgefast.api.gateway.xbackendtrafficpolicy import XBackendTrafficPolicy
from edgefast.api.ingress.ingress import NETWORKING_GROUP, Ingress
from edgefast.api.ingress.ingressclass import IngressClass
from edgefast.api.model.fields import Resource
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import ObjectRef

EDGE_GROUP = "gateway.edge.io"
#: Of what the Gateway API tries out.
EXPERIMENTAL_GROUP = "gateway.networking.x-k8s.io"

#: Any object of a supported kind.
Object = (
    GatewayClass
    | Gateway
    | HTTPRoute
    | GRPCRoute
    | TLSRoute
    | TCPRoute
    | UDPRoute
    | ListenerSet
    | ReferenceGrant
    | BackendTLSPolicy
    | Service
    | EndpointSlice
    | Secret
    | ConfigMap
    | ClusterTrustBundle
    | Namespace
    | EdgeProxy
    | RateLimitFilter
    | Backend
    | SecurityPolicy
    | BackendTrafficPolicy
    | XBackend
    | XBackendTrafficPolicy
    | HTTPRouteFilter
    | Ingress
    | IngressClass
)


class KindInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One kind; `versions` newest first, `plural` as in API paths."""

    group: str
    kind: str
    struct: type[Resource]
    versions: tuple[str, ...]
    namespaced: bool
    plural: str

    @property
    def api_versions(self) -> tuple[str, ...]:
        """The `apiVersion` texts accepted for this kind."""
        prefix = f"{self.group}/" if self.group else ""
        return tuple(f"{prefix}{version}" for version in self.versions)


def _kind(
    group: str,
    struct: type[Resource],
    plural: str,
    *versions: str,
    namespaced: bool = True,
) -> KindInfo:
    return KindInfo(
        group=group,
        kind=struct.__name__,
        struct=struct,
        versions=versions,
        namespaced=namespaced,
        plural=plural,
    )


_ALL = (
    _kind(GATEWAY_GROUP, GatewayClass, "gatewayclasses", "v1", "v1beta1", namespaced=False),
    _kind(GATEWAY_GROUP, Gateway, "gateways", "v1", "v1beta1"),
    _kind(GATEWAY_GROUP, HTTPRoute, "httproutes", "v1", "v1beta1"),
    _kind(GATEWAY_GROUP, GRPCRoute, "grpcroutes", "v1", "v1alpha2"),
    _kind(GATEWAY_GROUP, TLSRoute, "tlsroutes", "v1", "v1alpha3", "v1alpha2"),
    _kind(GATEWAY_GROUP, TCPRoute, "tcproutes", "v1", "v1alpha2"),
    _kind(GATEWAY_GROUP, UDPRoute, "udproutes", "v1", "v1alpha2"),
    _kind(GATEWAY_GROUP, ListenerSet, "listenersets", "v1"),
    _kind(GATEWAY_GROUP, ReferenceGrant, "referencegrants", "v1", "v1beta1"),
    _kind(GATEWAY_GROUP, BackendTLSPolicy, "backendtlspolicies", "v1", "v1alpha3"),
    _kind("", Service, "services", "v1"),
    _kind("discovery.k8s.io", EndpointSlice, "endpointslices", "v1"),
    _kind("", Secret, "secrets", "v1"),
    _kind("", ConfigMap, "configmaps", "v1"),
    _kind(
        CERTIFICATES_GROUP,
        ClusterTrustBundle,
        "clustertrustbundles",
        "v1",
        "v1beta1",
        namespaced=False,
    ),
    _kind("", Namespace, "namespaces", "v1", namespaced=False),
    _kind(EDGE_GROUP, EdgeProxy, "edgeproxies", "v1alpha1"),
    _kind(EDGE_GROUP, RateLimitFilter, "ratelimitfilters", "v1alpha1"),
    _kind(EDGE_GROUP, Backend, "backends", "v1alpha1"),
    _kind(EDGE_GROUP, SecurityPolicy, "securitypolicies", "v1alpha1"),
    _kind(EDGE_GROUP, BackendTrafficPolicy, "backendtrafficpolicies", "v1alpha1"),
    _kind(EDGE_GROUP, HTTPRouteFilter, "httproutefilters", "v1alpha1"),
    _kind(NETWORKING_GROUP, Ingress, "ingresses", "v1"),
    _kind(NETWORKING_GROUP, IngressClass, "ingressclasses", "v1", namespaced=False),
    _kind(EXPERIMENTAL_GROUP, XBackend, "xbackends", "v1alpha1"),
    _kind(EXPERIMENTAL_GROUP, XBackendTrafficPolicy, "xbackendtrafficpolicies", "v1alpha1"),
)

KINDS: dict[tuple[str, str], KindInfo] = {(info.group, info.kind): info for info in _ALL}

_INFO_OF: dict[type, KindInfo] = {info.struct: info for info in _ALL}


def info_of(obj: Object) -> KindInfo:
    """Return the kind of an object; KeyError when it is none of KINDS."""
    return _INFO_OF[type(obj)]


def ref_of(obj: Object) -> ObjectRef:
    """Return the reference that names an object in problems and statuses."""
    info = _INFO_OF[type(obj)]
    meta = obj.metadata
    return ObjectRef(
        kind=info.kind,
        namespace=meta.namespace if info.namespaced else "",
        name=meta.name,
        group=info.group,
    )
