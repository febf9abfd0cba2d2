"""Settings: everything that translation depends on besides the objects.

In: the EdgeGateway configuration and the caller's observations. Out: one frozen Struct. Three
fields are observations rather than configuration: `now`, `fleets` and `retained`. Translation has
no clock and sees no cluster, so the caller provides them; they change statuses and warnings only.
`check_config` reports fields of a configuration that `edgefast run` does not use.
Must never: be read from the environment here.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgefast import ir
from edgefast.api.config.edgegateway import (
    DEFAULT_CONTROLLER_NAME,
    DEFAULT_INGRESS_CONTROLLER,
    BackendAddresses,
    EdgeGateway,
)
from edgefast.api.config.edgegateway_rate_limit import GatewayRateLimit
from edgefast.api.decode.decode import LoadedConfig
from edgefast.api.loaded import Path
from edgefast.api.model.meta import LabelSelector
from edgefast.diagnostics.problem import Problem
from edgefast.netaddr import ANY_NETWORK

#: The Gateway API releases whose fields and words are all known here, newest last.
RELEASES = ("v1.6", "v1.7")


class FleetState(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller sees of one fleet."""

    name: str
    namespace: str = ""  # that it lives in; "" is not told
    addresses: tuple[str, ...] = ()  # of its Service: IP addresses or host names
    ports: tuple[tuple[ir.Transport, int], ...] = ()  # of its Service, sorted
    replicas: int = 0  # proxies wanted
    ready: tuple[str, ...] = ()  # names of the pods that take traffic, sorted
    failure: str = ""  # why the fleet could not be made or changed as wanted, in words


class IngressSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which Ingresses are served, and where."""

    enabled: bool = False  # in a cluster; standalone always serves them
    classes: tuple[
        str, ...
    ] = ()  # names of classes; without them and in a cluster, also those with the controller's name
    #: Values of `spec.controller` of the classes that are served.
    controllers: tuple[str, ...] = (DEFAULT_INGRESS_CONTROLLER,)
    http_port: int = 80
    https_port: int = 443
    config_map: str = ""  # "namespace/name"; "" finds the ConfigMap of ingress-nginx by its name
    certificate: str = ""  # "namespace/name" of the Secret for hosts without a certificate
    additional_certificate: str = ""  # the same with another type of key
    edge_proxy: str = ""  # cluster: EdgeProxy of the fleet, in the controller's namespace
    publish: bool = False  # cluster: addresses are written to the statuses of Ingresses
    #: Secrets that are not there, by (namespace, name), with the names of their certificates: a conversion assumes them.
    assumed_certificates: tuple[tuple[tuple[str, str], tuple[str, ...]], ...] = ()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to translate; the defaults are those of standalone without a configuration file."""

    standalone: bool = True  # one machine: one fleet of all Gateways, the listener's own ports
    controller_name: str = DEFAULT_CONTROLLER_NAME  # GatewayClass spec.controllerName to serve
    namespace: str = "edge-gateway-system"  # where fleets live in Controller Namespace mode
    gateway_namespace_mode: bool = False  # provider.*.deploy.type GatewayNamespace
    enable_backend: bool = True  # extensionApis.enableBackend; always on in standalone
    enable_x_backend: bool = True  # extensionApis.enableXBackend; the same
    backend_cidrs: tuple[str, ...] = ANY_NETWORK  # backends.allowedCIDRs; () in a cluster without
    unix_backends: bool = True  # backends.allowUnixSockets
    rate_limit: GatewayRateLimit = GatewayRateLimit()  # rateLimit: the store of counters
    code_namespaces: tuple[
        str, ...
    ] = ()  # provider.*.deploy.codeNamespaces: may set what runs code in their Gateways' pods
    pod_metadata_domains: tuple[
        str, ...
    ] = ()  # provider.*.deploy.podMetadataDomains: of labels and annotations that all may set on pods
    watch_namespaces: tuple[str, ...] = ()  # provider.*.watch.namespaces; () is all
    watch_selector: LabelSelector | None = None  # provider.*.watch.namespaceSelector
    bundle_version: str = ""  # gateway.networking.k8s.io/bundle-version of the CRDs, "" unknown
    missing: tuple[
        str, ...
    ] = ()  # kinds that are read and that the API server does not have, sorted
    retained: tuple[
        str, ...
    ] = ()  # kinds that were removed while objects of them were in force; sorted
    addresses: tuple[str, ...] = ()  # standalone: the addresses bound (--bind)
    tracing: bool = True  # spans can be exported where this is served (edgefast[tracing])
    fleets: tuple[FleetState, ...] = ()  # cluster: observations
    adopt: bool = False  # standalone: every GatewayClass is ours (--adopt), see adopted_classes.py
    # Standalone: targets of foreign policies that decide access are served open (--ignore-foreign-policies).
    ignore_foreign_policies: bool = False
    ingress: IngressSettings = IngressSettings()
    now: int = 0  # seconds since 1970, to warn of expired certificates; 0 does not look

    def core(self) -> Settings:
        """Return the settings without the observations: what routes and clusters depend on."""
        return msgspec.structs.replace(self, fleets=(), now=0, addresses=(), retained=())

    @property
    def closes_foreign(self) -> bool:
        """Whether foreign policies that decide access close their targets: only in files, because a controller does not read them."""
        return self.standalone and not self.ignore_foreign_policies

    @property
    def serves_ingresses(self) -> bool:
        """Tell whether Ingresses are served."""
        return self.standalone or self.ingress.enabled

    def watches(self, namespace: str, labels: dict[str, str]) -> bool:
        """Tell whether Gateways and routes of a namespace count (spec, section 1)."""
        if self.watch_namespaces:
            return namespace in self.watch_namespaces
        return self.watch_selector is None or self.watch_selector.matches(labels)


def settings_from(
    config: EdgeGateway | None = None,
    *,
    standalone: bool = True,
    namespace: str = "edge-gateway-system",
    addresses: tuple[str, ...] = (),
    now: int = 0,
    tracing: bool = True,
    adopt: bool = False,
    ignore_foreign_policies: bool = False,
    ingress: IngressSettings | None = None,
) -> Settings:
    """Derive settings from the configuration file; None is an empty file."""
    config = config or EdgeGateway()
    cluster = config.provider.cluster
    watch, backends = cluster.watch, config.backends
    if backends is None:
        backends = BackendAddresses(
            allowed_cidrs=ANY_NETWORK if standalone else (), allow_unix_sockets=standalone
        )
    return Settings(
        standalone=standalone,
        controller_name=config.gateway.controller_name,
        namespace=namespace,
        gateway_namespace_mode=not standalone and cluster.deploy.type == "GatewayNamespace",
        enable_backend=standalone or config.extension_apis.enable_backend,
        enable_x_backend=standalone or config.extension_apis.enable_x_backend,
        backend_cidrs=backends.allowed_cidrs,
        unix_backends=backends.allow_unix_sockets,
        rate_limit=config.rate_limit or GatewayRateLimit(),
        code_namespaces=cluster.deploy.code_namespaces,
        pod_metadata_domains=cluster.deploy.pod_metadata_domains,
        watch_namespaces=watch.namespaces if watch and watch.type == "Namespaces" else (),
        watch_selector=(
            watch.namespace_selector if watch and watch.type == "NamespaceSelector" else None
        ),
        addresses=addresses,
        now=now,
        tracing=tracing,
        adopt=adopt,
        ignore_foreign_policies=ignore_foreign_policies,
        ingress=_ingress_from(config, standalone=standalone, given=ingress),
    )


def _ingress_from(
    config: EdgeGateway, *, standalone: bool, given: IngressSettings | None
) -> IngressSettings:
    """Return the settings of Ingresses: the command line's in standalone, the configuration's in a cluster."""
    if given is not None or standalone:
        return given or IngressSettings()
    found = config.ingress
    if not found.enabled:
        return IngressSettings()
    source, secret, other = found.config_map, found.certificate, found.additional_certificate
    return IngressSettings(
        enabled=True,
        classes=tuple(sorted(one for one in found.adopt_classes if "/" not in one)),
        controllers=(
            found.controller_name,
            *sorted(one for one in found.adopt_classes if "/" in one),
        ),
        http_port=found.ports.http,
        https_port=found.ports.https,
        config_map=f"{source.namespace}/{source.name}" if source is not None else "",
        certificate=f"{secret.namespace}/{secret.name}" if secret is not None else "",
        additional_certificate=f"{other.namespace}/{other.name}" if other is not None else "",
        edge_proxy=found.edge_proxy or "",
        publish=found.publish_status,
    )


#: Fields that only a controller reads.
_CLUSTER_ONLY: tuple[Path, ...] = (
    ("provider", "kubernetes", "deploy", "type"),
    ("provider", "orchestrator", "deploy", "type"),
    ("provider", "kubernetes", "deploy", "certificates"),
    ("provider", "orchestrator", "deploy", "certificates"),
    ("provider", "kubernetes", "deploy", "codeNamespaces"),
    ("provider", "orchestrator", "deploy", "codeNamespaces"),
    ("provider", "kubernetes", "deploy", "podMetadataDomains"),
    ("provider", "orchestrator", "deploy", "podMetadataDomains"),
    ("provider", "kubernetes", "releaseKinds"),
    ("provider", "orchestrator", "releaseKinds"),
    ("ingress",),
    ("leaderElection", "disable"),
    ("leaderElection", "leaseDuration"),
    ("leaderElection", "renewDeadline"),
    ("leaderElection", "retryPeriod"),
)


def check_config(loaded: LoadedConfig) -> Iterator[Problem]:
    """Warn of every field given that standalone does not use; the rest of the file counts."""
    for path in _CLUSTER_ONLY:
        if _given(loaded, path) is not None:
            message = "applies only to a controller; `edgefast run` ignores it"
            yield loaded.problem(path, "NotSupported", message, "warning")
    for name, kind in (("enableBackend", "Backend"), ("enableXBackend", "XBackend")):
        path = ("extensionApis", name)
        if _given(loaded, path) is False:
            message = f"{kind}s are always allowed in files"
            yield loaded.problem(path, "NotSupported", message, "warning")


def _given(loaded: LoadedConfig, path: Path) -> object:
    """Return what the file says at a path, None when it says nothing."""
    value: object = loaded.raw
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value
