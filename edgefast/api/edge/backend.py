"""Backend: endpoints without a Service: addresses, names and unix sockets.

In: `gateway.edge.io/v1alpha1` documents. Out: `Backend`. Always allowed in standalone; in a cluster
only when `extensionApis.enableBackend` is set.
Must never: resolve a name or open a socket.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.edge.edgeproxy_protocols import ProxyProtocol
from edgefast.api.edge.zone_aware import ZoneName
from edgefast.api.model.fields import Element, PortNumber, PreciseHostname, Resource, expects
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import LocalObjectReference, SecretObjectReference


class IPEndpoint(Element, frozen=True, kw_only=True):
    """An address and a port."""

    address: Annotated[
        Annotated[str, Meta(min_length=2, max_length=45)],
        Meta(description="IPv4 or IPv6 address."),
    ]
    port: Annotated[PortNumber, Meta(description="TCP port.")]


class FQDNEndpoint(Element, frozen=True, kw_only=True):
    """A DNS name, resolved again when its records expire, and a port."""

    hostname: Annotated[PreciseHostname, Meta(description="DNS name.")]
    port: Annotated[PortNumber, Meta(description="TCP port.")]


class UnixEndpoint(Element, frozen=True, kw_only=True):
    """A unix socket."""

    #: 108 bytes of sun_path (unix(7)) include the terminating zero.
    path: Annotated[
        Annotated[
            str,
            Meta(
                min_length=2,
                max_length=107,
                pattern=r"^/[^\x00]+\Z",
                extra=expects("an absolute path such as /run/app.sock"),
            ),
        ],
        Meta(description="Absolute path of the socket."),
    ]


class BackendEndpoint(Element, frozen=True, kw_only=True):
    """One endpoint: exactly one of the three."""

    ip: Annotated[IPEndpoint | None, Meta(description="An address and a port.")] = None
    fqdn: Annotated[FQDNEndpoint | None, Meta(description="A DNS name and a port.")] = None
    unix: Annotated[UnixEndpoint | None, Meta(description="A unix socket.")] = None
    zone: Annotated[
        ZoneName | None,
        Meta(
            description="Zone of the endpoint, for BackendTrafficPolicy spec.loadBalancer.zoneAware."
        ),
    ] = None


class BackendTLS(Element, frozen=True, kw_only=True):
    """TLS towards the endpoints."""

    hostname: Annotated[
        PreciseHostname | None,
        Meta(
            description="SNI, and the name that the certificate must contain. Absent: the name of the "
            "fqdn endpoints, which must all have the same. Required with other endpoints."
        ),
    ] = None
    ca_certificate_refs: Annotated[
        tuple[LocalObjectReference, ...],
        Meta(
            max_length=8,
            description="ConfigMaps or Secrets with key ca.crt, or ClusterTrustBundles. Absent: the "
            "system's authorities.",
        ),
    ] = ()
    client_certificate_ref: Annotated[
        SecretObjectReference | None,
        Meta(description="Secret (kubernetes.io/tls) shown to the endpoints."),
    ] = None
    insecure_skip_verify: Annotated[
        bool,
        Meta(
            description="Accepts every certificate of the endpoints. Anyone on the network path can then read and change requests; "
            "use it only for tests and migrations."
        ),
    ] = False


#: Protocols that a Backend can name, in the spelling of XBackend.
BackendProtocol = Literal["H2C"]


class BackendSpec(Element, frozen=True, kw_only=True):
    """`spec` of a Backend."""

    endpoints: Annotated[
        tuple[BackendEndpoint, ...],
        Meta(
            min_length=1,
            max_length=64,
            description="Endpoints that receive requests. All have the same weight.",
        ),
    ]
    tls: Annotated[BackendTLS | None, Meta(description="TLS settings. Absent: no TLS.")] = None
    protocol: Annotated[
        BackendProtocol | None,
        Meta(
            description="Protocol of requests of HTTPRoutes. H2C: HTTP/2 without TLS. Absent: HTTP/1.1; with "
            "tls, HTTP/2 if the endpoint supports it (ALPN). Requests of GRPCRoutes always use HTTP/2. "
            "edgefast refuses TCPRoutes, TLSRoutes and UDPRoutes to a Backend with a protocol."
        ),
    ] = None
    proxy_protocol: Annotated[
        ProxyProtocol | None,
        Meta(
            description="PROXY protocol version that TLSRoutes and TCPRoutes send to the endpoints. It "
            "overrides the EdgeProxy. Routes of other kinds to this Backend are refused."
        ),
    ] = None


class Backend(Resource, frozen=True, kw_only=True):
    """Endpoints for backendRefs without a Service."""

    metadata: ObjectMeta
    spec: BackendSpec
