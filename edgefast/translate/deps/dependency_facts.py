"""Dependency facts: the facts that routes, clusters and policies read, and a record of every reader.

In: the snapshot and the outcomes of earlier stages. Out: `Reader` answers look-ups and records each
as a `Fact`. An outcome stays valid while all its facts are unchanged (change.py). That record is
all of the dependency tracking: a read around it would make stale results.
Must never: give access to a whole table; then everything would depend on everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

import msgspec

from edgefast import ir
from edgefast.api.core.clustertrustbundle import ClusterTrustBundle
from edgefast.api.core.configmap import ConfigMap
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.namespace import NAME_LABEL
from edgefast.api.core.secret import Secret
from edgefast.api.core.selected_pod import SelectedPods
from edgefast.api.core.service import Service
from edgefast.api.edge.backend import Backend
from edgefast.api.edge.httproutefilter import HTTPRouteFilter
from edgefast.api.edge.ratelimitfilter import RateLimitFilter
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.gateway.xbackend import XBackend
from edgefast.api.model.meta import LabelSelector
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import EMPTY, SortedMap
from edgefast.translate.deps.cluster_ref import KIND_OF_CLUSTER, ClusterRef, ClusterState
from edgefast.translate.deps.intern import intern
from edgefast.translate.deps.policy_summary import Level, Target, TlsPolicyView
from edgefast.translate.deps.referencegrant import Grants, is_granted
from edgefast.translate.settings import Settings

#: (kind of fact, namespace, name); of what is known of a cluster, its name.
Fact = tuple[str, str, str] | ClusterRef
#: Facts that say by their names which clusters they are of, and kinds of those.
CLUSTER_OF = {
    "Service": "service",
    "Slices": "service",
    "Policy": "service",
    "ServicePolicies": "service",
    "Backend": "backend",
    "BackendPolicies": "backend",
    "XBackend": "xbackend",
    "XBackendPolicies": "xbackend",
}


_LIMIT_STORE = ("LimitStore", "", "")
_NOTHING: Mapping[str, Level] = {}
_NO_PODS = SelectedPods()


def implied_by(ref: ClusterRef) -> tuple[Fact, ...]:
    """Return what a route has read, too, that has read a cluster: its endpoints are not among it."""
    kind, namespace, name = ref[:3]
    if kind == "service":
        return (
            ("Service", namespace, name),
            ("Policy", namespace, name),
            ("ServicePolicies", namespace, name),
        )
    of = KIND_OF_CLUSTER[kind]
    return ((of, namespace, name), (f"{of}Policies", namespace, name))


def is_read(changed: Set[Fact], reads: Iterable[Fact]) -> bool:
    """Tell whether any of these facts was read, `reads` being of `Reader.noted`."""
    if not changed:
        return False
    for fact in reads:
        if fact in changed:
            return True
        if isinstance(fact, ClusterRef) and not changed.isdisjoint(implied_by(fact)):
            return True
    return False


class ListenerView(msgspec.Struct, frozen=True, kw_only=True):
    """What a route needs to know of a listener."""

    name: str  # "namespace/gateway/listener", as ir.Listener.name
    section: str  # its name inside the Gateway or ListenerSet
    set: Key | None = None  # the ListenerSet it is of
    port: int
    hostname: str  # "*" when none is given
    kinds: tuple[str, ...]  # of routes that it takes
    passes: bool = False  # it passes TLS on as it is
    from_namespaces: str  # allowedRoutes.namespaces.from
    selector: LabelSelector | None
    served: bool  # it is programmed: its virtual hosts exist
    policies: tuple[
        Level, ...
    ] = ()  # above its routes, outermost first; levels without any are left out


class GatewayView(msgspec.Struct, frozen=True, kw_only=True):
    """What a route needs to know of a Gateway of ours."""

    namespace: str
    name: str
    certificate: str  # client certificate for TLS backends, "namespace/secret" or ""
    proxy_protocol: ir.ProxyProtocol = ""  # of EdgeProxy: written to backends of TCP and TLS
    listeners: tuple[ListenerView, ...]
    closed: bool = False  # it has a mistake, and only keeps its places


class World(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything there is to read; later stages replace it with fuller ones."""

    snapshot: Snapshot
    settings: Settings
    grants: Grants
    unfollowed: Mapping[Key, str] = {}  # selections whose Pods are not followed, and why
    gateways: Mapping[Key, GatewayView | None] = {}  # None: it exists, but is not ours
    policies: Mapping[Key, tuple[TlsPolicyView, ...]] = {}  # by (namespace, Service)
    attached: SortedMap[Target, Level] = EMPTY  # SecurityPolicies and BackendTrafficPolicies
    why_no_limits: str = ""  # why no counters can be kept; "": they can


class Reader:
    """Looks things up for one outcome; `reads` is what it has seen."""

    __slots__ = ("_clusters", "_world", "clusters", "reads", "x_backends")

    def __init__(
        self, world: World, clusters: Callable[[ClusterRef], ClusterState] | None = None
    ) -> None:
        self._world = world
        self._clusters = clusters
        self.reads: set[Fact] = set()
        self.x_backends = False  # whether any of these is an XBackend
        self.clusters: set[ClusterRef] = set()

    @property
    def settings(self) -> Settings:
        """The settings; a change of them makes every outcome anew."""
        return self._world.settings

    def noted(self) -> tuple[Fact, ...]:
        """Return what has been read, in order; what goes without saying for who has read a cluster is left out."""
        message = self.reads.copy()
        for ref in self.clusters:
            message.difference_update(implied_by(ref))
        return tuple(sorted(message))

    def name_of(self, ref: ClusterRef) -> str:
        """Return the name of a cluster in the IR."""
        assert self._clusters is not None
        return self._clusters(ref).name

    def service(self, namespace: str, name: str) -> Service | None:
        """Return a Service."""
        self.reads.add(("Service", namespace, name))
        return self._world.snapshot.services.get((namespace, name))

    def slices(self, namespace: str, name: str) -> tuple[EndpointSlice, ...]:
        """Return a Service's EndpointSlices, by name."""
        self.reads.add(("Slices", namespace, name))
        return self._world.snapshot.slices_by_service.get((namespace, name), ())

    def backend(self, namespace: str, name: str) -> Backend | None:
        """Return a Backend."""
        self.reads.add(("Backend", namespace, name))
        return self._world.snapshot.backends.get((namespace, name))

    def x_backend(self, namespace: str, name: str) -> XBackend | None:
        """Return an XBackend."""
        self.x_backends = True
        self.reads.add(("XBackend", namespace, name))
        return self._world.snapshot.x_backends.get((namespace, name))

    def why_unfollowed(self, namespace: str, selector: str) -> str:
        """Return why the Pods of a selector are not followed, "" when they are: there may be so many selectors."""
        self.reads.add(("Unfollowed", namespace, selector))
        return self._world.unfollowed.get((namespace, selector), "")

    def pods(self, namespace: str, selector: str) -> SelectedPods:
        """Return the Pods that a selector has."""
        self.reads.add(("Pods", namespace, selector))
        return self._world.snapshot.pods.get((namespace, selector), _NO_PODS)

    def rate_limit_filter(self, namespace: str, name: str) -> RateLimitFilter | None:
        """Return a RateLimitFilter."""
        self.reads.add(("RateLimitFilter", namespace, name))
        return self._world.snapshot.rate_limit_filters.get((namespace, name))

    def http_route_filter(self, namespace: str, name: str) -> HTTPRouteFilter | None:
        """Return an HTTPRouteFilter."""
        self.reads.add(("HTTPRouteFilter", namespace, name))
        return self._world.snapshot.http_route_filters.get((namespace, name))

    def why_no_limits(self) -> str:
        """Return why there is no store for counters of rate limits, "" when there is one."""
        self.reads.add(_LIMIT_STORE)
        return self._world.why_no_limits

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Return a Secret."""
        self.reads.add(("Secret", namespace, name))
        return self._world.snapshot.secrets.get((namespace, name))

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Return a ConfigMap."""
        self.reads.add(("ConfigMap", namespace, name))
        return self._world.snapshot.config_maps.get((namespace, name))

    def cluster_trust_bundle(self, name: str) -> ClusterTrustBundle | None:
        """Return a ClusterTrustBundle."""
        self.reads.add(("ClusterTrustBundle", "", name))
        return self._world.snapshot.cluster_trust_bundles.get(("", name))

    def gateway(self, namespace: str, name: str) -> GatewayView | None:
        """Return a Gateway of ours, None when it is another's or does not exist."""
        self.reads.add(intern(("Gateway", namespace, name)))
        return self._world.gateways.get((namespace, name))

    def gateway_exists(self, namespace: str, name: str) -> bool:
        """Tell whether there is such a Gateway, whoever serves it."""
        self.reads.add(intern(("Gateway", namespace, name)))
        return (namespace, name) in self._world.gateways

    def listener_set(self, namespace: str, name: str) -> ListenerSet | None:
        """Return a ListenerSet."""
        self.reads.add(intern(("ListenerSet", namespace, name)))
        return self._world.snapshot.listener_sets.get((namespace, name))

    def labels(self, namespace: str) -> dict[str, str] | None:
        """Return a namespace's labels, None when a mistake keeps them from being known."""
        self.reads.add(intern(("Namespace", "", namespace)))
        found = self._world.snapshot.namespaces.get(("", namespace))
        if found is None:
            return {NAME_LABEL: namespace}
        return found.metadata.labels if found.closed is None else None

    def policies(self, namespace: str, service: str) -> tuple[TlsPolicyView, ...]:
        """Return the BackendTLSPolicies in force for a Service."""
        self.reads.add(("Policy", namespace, service))
        return self._world.policies.get((namespace, service), ())

    def attached(self, kind: str, namespace: str, name: str) -> Mapping[str, Level]:
        """Return the policies on a route by the names of its rules, "" for all of it.

        It goes without saying that a route has read its own: routes.py looks at the fact ("Attached", *route_key).
        """
        attached = self._world.attached
        if attached is EMPTY:  # asked by each of ten thousand routes
            return _NOTHING
        begin, found = (kind, namespace, name), {}
        for target in attached.starting_at((*begin, "")):
            if target[:3] != begin:
                break
            found[target[3]] = attached[target]
        return found

    def anything_attached(self) -> bool:
        """Tell whether there are any policies of ours; who asks has read what they are attached to."""
        return self._world.attached is not EMPTY

    def below(self, ref: ClusterRef) -> tuple[Level, ...]:
        """Return the policies on what a cluster is of, then those on its port, as levels; who has read the cluster has read these."""
        found = self.attached(KIND_OF_CLUSTER[ref.kind], ref.namespace, ref.name)
        if not found:
            return ()
        port = ""
        if ref.kind == "service":
            service = self._world.snapshot.services.get((ref.namespace, ref.name))
            ports = service.spec.ports if service is not None else ()
            port = next(
                (one.name for one in ports if one.port == ref.port and one.protocol == "TCP"), ""
            )
        return tuple(found[one] for one in dict.fromkeys(("", port)) if one in found)

    def cluster(self, ref: ClusterRef) -> ClusterState:
        """Return what there is to know of a cluster without its endpoints."""
        self.reads.add(ref)
        self.clusters.add(ref)
        assert self._clusters is not None
        return self._clusters(ref)

    def permits(self, kind: str, namespace: str, to_group: str, to_kind: str, to: Key) -> bool:
        """Tell whether a Gateway API object may refer to `to`, a (namespace, name)."""
        if to[0] == namespace:
            return True
        self.reads.add(intern(("Grants", "", to[0])))
        return is_granted(
            self._world.grants.get(to[0], ()),
            kind=kind,
            namespace=namespace,
            to_group=to_group,
            to_kind=to_kind,
            to_name=to[1],
        )
