"""EdgeGateway: the configuration file of the controller, and of standalone with `--config`.

In: one `config.gateway.edge.io/v1alpha1` document. Out: `EdgeGateway`; it is no API object, so it
has no metadata and no spec. `provider.kubernetes` and `provider.orchestrator` are two names of
the same settings. Source: spec section 2 (EdgeGateway configuration).
Must never: carry a password; `passwordRef` and `urlRef` name Secrets.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.config.edgegateway_rate_limit import GatewayRateLimit
from edgefast.api.model.fields import (
    AS_SET,
    CIDR,
    DNSLabel,
    DNSSubdomain,
    Duration,
    Element,
    GatewayController,
    Kind,
    Namespace,
    PortNumber,
    by_keys,
    expects,
)
from edgefast.api.model.meta import LabelSelector

CONFIG_API_VERSION = "config.gateway.edge.io/v1alpha1"
#: Entries of `releaseKinds`: more than there are kinds with CRDs.
RELEASED_KINDS = 32
#: Entries of `certificates.revoked`: more than fleets that are compromised at once.
REVOCATIONS = 256
#: Entries of `codeNamespaces`.
CODE_NAMESPACES = 256
#: Entries of `podMetadataDomains`.
POD_DOMAINS = 64
#: Entries of `ingress.adoptClasses`.
ADOPTED_CLASSES = 16
DEFAULT_CONTROLLER_NAME = "gateway.edge.io/gatewayclass-controller"
DEFAULT_INGRESS_CONTROLLER = "gateway.edge.io/ingress-controller"


class GatewayIdentity(Element, frozen=True, kw_only=True):
    """Which GatewayClasses this controller serves."""

    controller_name: Annotated[
        GatewayController,
        Meta(
            description="Value of `spec.controllerName` of the GatewayClasses served; unique "
            "per controller."
        ),
    ] = DEFAULT_CONTROLLER_NAME


class FleetRevocation(Element, frozen=True, kw_only=True):
    """A fleet with revoked certificates."""

    fleet: Annotated[
        DNSLabel,
        Meta(description="Name of the fleet, which is the name of its Deployment or DaemonSet."),
    ]
    issued_before: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z",
            description="The controller refuses certificates that were issued before this time (RFC 3339, UTC, such as "
            "2026-11-29T12:00:00Z), and issues a new one.",
            extra=expects("a time such as 2026-11-29T12:00:00Z"),
        ),
    ]


class FleetCertificates(Element, frozen=True, kw_only=True):
    """Client certificates that the controller issues to fleets, with deploy type ControllerNamespace."""

    lifetime: Annotated[
        Duration,
        Meta(
            description="How long a certificate is valid, 1h to 2160h. The controller renews it after two thirds of that time. If "
            "it expires while no controller runs, the proxy keeps its last table."
        ),
    ] = "72h"
    revoked: Annotated[
        tuple[FleetRevocation, ...],
        Meta(
            max_length=REVOCATIONS,
            description="Fleets with revoked certificates, for example after one of their pods was compromised.",
            extra=by_keys("fleet"),
        ),
    ] = ()


class ProviderDeploy(Element, frozen=True, kw_only=True):
    """Where proxies are created."""

    type: Annotated[
        Literal["ControllerNamespace", "GatewayNamespace"],
        Meta(description="Namespace of proxies: the controller's, or that of each Gateway."),
    ] = "ControllerNamespace"
    certificates: Annotated[
        FleetCertificates,
        Meta(description="Client certificates of fleets. Only with type ControllerNamespace."),
    ] = FleetCertificates()
    code_namespaces: Annotated[
        tuple[DNSLabel, ...],
        Meta(
            max_length=CODE_NAMESPACES,
            description="Namespaces that may decide which code runs in their proxies' pods. Their EdgeProxies and Gateways may set "
            "`deployment.image`, `deployment.env`, and all labels and annotations. For type ControllerNamespace, "
            "where these pods run beside the controller. The EdgeProxy of a GatewayClass and the controller's own namespace always may.",
        ),
    ] = ()
    pod_metadata_domains: Annotated[
        tuple[DNSSubdomain, ...],
        Meta(
            max_length=POD_DOMAINS,
            description="Domains of labels and annotations, such as team.example.com, that all EdgeProxies and Gateways may set on their "
            "proxies' pods. edgefast sets no other labels there, because a Service of others may select pods by them, and no annotations of "
            "other domains, because an injector or a container runtime may read them. For type ControllerNamespace. Annotations of these "
            "domains are always allowed: app.kubernetes.io, external-dns.alpha.kubernetes.io, helm.sh, prometheus.io, "
            "service.beta.kubernetes.io. A domain does not include its subdomains.",
        ),
    ] = ()


class ProviderWatch(Element, frozen=True, kw_only=True):
    """Which namespaces are watched."""

    type: Annotated[
        Literal["Namespaces", "NamespaceSelector"],
        Meta(description="Selects namespaces by name or by label."),
    ]
    namespaces: Annotated[
        tuple[DNSLabel, ...], Meta(description="Names of namespaces. Only with type Namespaces.")
    ] = ()
    namespace_selector: Annotated[
        LabelSelector | None,
        Meta(description="Labels of namespaces. Only with type NamespaceSelector."),
    ] = None


class ClusterProvider(Element, frozen=True, kw_only=True):
    """Settings of the cluster provider."""

    deploy: Annotated[ProviderDeploy, Meta(description="Where proxies are created.")] = (
        ProviderDeploy()
    )
    watch: Annotated[
        ProviderWatch | None,
        Meta(description="Namespaces that the controller watches. Absent: all."),
    ] = None
    release_kinds: Annotated[
        tuple[Kind, ...],
        Meta(
            max_length=RELEASED_KINDS,
            description="Kinds that the controller drops when their CRD is deleted. Objects of other kinds stay in force as "
            "last seen until you install the CRD and the objects again, or the controller restarts. "
            "Releasing a SecurityPolicy opens the routes that it protects.",
        ),
    ] = ()


class GatewayProvider(Element, frozen=True, kw_only=True):
    """Source of objects; read the settings with `cluster`."""

    type: Annotated[
        Literal["Kubernetes", "Orchestrator"],
        Meta(description="The provider of objects. Both values mean Kubernetes."),
    ] = "Kubernetes"
    kubernetes: Annotated[
        ClusterProvider | None, Meta(description="Settings of the cluster provider.")
    ] = None
    orchestrator: Annotated[
        ClusterProvider | None,
        Meta(description="Other name of `kubernetes`. Set only one of the two."),
    ] = None

    @property
    def cluster(self) -> ClusterProvider:
        """The settings, whichever name they were given under."""
        return self.orchestrator or self.kubernetes or ClusterProvider()


class ExtensionApis(Element, frozen=True, kw_only=True):
    """Kinds that a cluster operator must allow."""

    enable_backend: Annotated[
        bool, Meta(description="Allows routes to refer to Backends in a cluster.")
    ] = False
    enable_x_backend: Annotated[
        bool,
        Meta(
            description="Allows routes to refer to XBackends (Gateway API, experimental) in a cluster. The controller then follows the "
            "Pods that they select."
        ),
    ] = False


class BackendAddresses(Element, frozen=True, kw_only=True):
    """Reserved addresses that backends in a cluster may have."""

    allowed_cidrs: Annotated[
        tuple[CIDR, ...],
        Meta(
            max_length=64,
            extra=AS_SET,
            description="Ranges of loopback, link-local, multicast or metadata addresses that backends may use. They apply to endpoints, "
            "resolved names, authorization services, JWKS and mirrors.",
        ),
    ] = field(default=(), name="allowedCIDRs")
    allow_unix_sockets: Annotated[
        bool, Meta(description="Allows Backends that are unix sockets of the proxy's machine.")
    ] = False


class GatewayLogging(Element, frozen=True, kw_only=True):
    """The controller's own log."""

    level: Annotated[
        Literal["debug", "info", "warn", "error"],
        Meta(description="Lowest severity that is logged."),
    ] = "info"


class LeaderElection(Element, frozen=True, kw_only=True):
    """Election of the replica that writes statuses and fleets."""

    disable: Annotated[
        bool, Meta(description="Disables leader election. Allowed only with one replica.")
    ] = False
    lease_duration: Annotated[
        Duration,
        Meta(description="Time after which another replica replaces a leader that does not renew."),
    ] = "15s"
    renew_deadline: Annotated[
        Duration, Meta(description="Time a leader tries to renew before it stops leading.")
    ] = "10s"
    retry_period: Annotated[Duration, Meta(description="Time between attempts.")] = "2s"


class AdminAddress(Element, frozen=True, kw_only=True):
    """Address of the admin server."""

    host: Annotated[str, Meta(min_length=1, max_length=253, description="Address.")] = "127.0.0.1"
    port: Annotated[PortNumber, Meta(description="TCP port.")] = 19000


class GatewayAdmin(Element, frozen=True, kw_only=True):
    """The controller's admin server."""

    address: Annotated[AdminAddress, Meta(description="Address of the admin server.")] = (
        AdminAddress()
    )
    console: Annotated[bool, Meta(description="Serves the web console at `/console/`.")] = True


class IngressPorts(Element, frozen=True, kw_only=True):
    """Ports of the Service that serves Ingresses."""

    http: Annotated[PortNumber, Meta(description="Port of HTTP.")] = 80
    https: Annotated[
        PortNumber,
        Meta(
            description="Port of HTTPS. It is open if an Ingress, or `certificate`, has a certificate."
        ),
    ] = 443


class IngressConfigMap(Element, frozen=True, kw_only=True):
    """A ConfigMap."""

    namespace: Annotated[Namespace, Meta(description="Namespace of the ConfigMap.")]
    name: Annotated[DNSSubdomain, Meta(description="Name of the ConfigMap.")]


class IngressCertificate(Element, frozen=True, kw_only=True):
    """A Secret with a certificate."""

    namespace: Annotated[Namespace, Meta(description="Namespace of the Secret.")]
    name: Annotated[DNSSubdomain, Meta(description="Name of the Secret.")]


class GatewayIngress(Element, frozen=True, kw_only=True):
    """Ingresses in a cluster."""

    enabled: Annotated[
        bool,
        Meta(
            description="Serves Ingresses. One fleet in the controller's namespace serves all of them. If false, the controller neither "
            "reads nor watches Ingresses."
        ),
    ] = False
    controller_name: Annotated[
        GatewayController,
        Meta(
            description="Value of `spec.controller` of the IngressClasses served; unique per controller."
        ),
    ] = DEFAULT_INGRESS_CONTROLLER
    adopt_classes: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=250)], ...],
        Meta(
            max_length=ADOPTED_CLASSES,
            extra=AS_SET,
            description="Classes that are served besides those of `controllerName`. An entry with a "
            "slash, such as `k8s.io/ingress-nginx`, is the `spec.controller` of IngressClasses. Another entry, such as `nginx`, is the "
            "name of a class, with or without an IngressClass.",
        ),
    ] = ()
    ports: Annotated[
        IngressPorts, Meta(description="Ports of the Service that serves Ingresses.")
    ] = IngressPorts()
    config_map: Annotated[
        IngressConfigMap | None,
        Meta(
            description="ConfigMap with the settings of ingress-nginx. All locations answer 503 while it is missing. Absent: the "
            "defaults of ingress-nginx."
        ),
    ] = None
    certificate: Annotated[
        IngressCertificate | None,
        Meta(
            description="Secret with the certificate for hosts without one. Absent: TLS handshakes for these hosts fail."
        ),
    ] = None
    additional_certificate: Annotated[
        IngressCertificate | None,
        Meta(
            description="Secret with a second certificate for hosts without one, with another key type (ECDSA beside RSA). Each client "
            "gets the certificate that it supports."
        ),
    ] = None
    edge_proxy: Annotated[
        DNSSubdomain | None,
        Meta(
            description="EdgeProxy in the controller's namespace with the settings of the fleet, such as the type and the annotations "
            "of its Service. While it is missing, its defaults apply."
        ),
    ] = None
    publish_status: Annotated[
        bool,
        Meta(
            description="Writes the addresses of the Service to `status.loadBalancer` of the Ingresses served. Set it to false while "
            "another controller serves the same classes."
        ),
    ] = True


class EdgeGateway(Element, frozen=True, kw_only=True):
    """Configuration of the controller."""

    api_version: Annotated[
        Literal["config.gateway.edge.io/v1alpha1"],
        Meta(description="Version of this format."),
    ] = "config.gateway.edge.io/v1alpha1"
    kind: Annotated[Literal["EdgeGateway"], Meta(description="Always EdgeGateway.")] = "EdgeGateway"
    gateway: Annotated[
        GatewayIdentity, Meta(description="Selects the GatewayClasses that the controller serves.")
    ] = GatewayIdentity()
    provider: Annotated[GatewayProvider, Meta(description="Source of objects.")] = GatewayProvider()
    rate_limit: Annotated[
        GatewayRateLimit | None,
        Meta(description="Store of rate-limit counters. Absent: same as an empty object."),
    ] = None
    extension_apis: Annotated[
        ExtensionApis, Meta(description="Optional kinds that routes can refer to.")
    ] = ExtensionApis()
    backends: Annotated[
        BackendAddresses | None,
        Meta(
            description="Reserved addresses that backends may use. Absent: in a cluster none, in standalone all."
        ),
    ] = None
    ingress: Annotated[GatewayIngress, Meta(description="Ingresses in a cluster.")] = (
        GatewayIngress()
    )
    logging: Annotated[GatewayLogging, Meta(description="The controller's own log.")] = (
        GatewayLogging()
    )
    leader_election: Annotated[
        LeaderElection, Meta(description="Leader election between replicas.")
    ] = LeaderElection()
    admin: Annotated[GatewayAdmin, Meta(description="The admin server.")] = GatewayAdmin()
