"""Reasons of clusters alone: what happens on the way from objects to the proxies of a fleet.

In: nothing. Out: `FLEETS`. Their messages are examples: no file brings them about.
"""

from __future__ import annotations

from edgefast.reasons.objects import gateway
from edgefast.reasons.word import Page

__all__ = ["FLEETS"]

FLEETS = (
    Page(
        word="AccessDenied",
        means="RBAC denies a call of the controller. The message names the verb, the resource, its API group and the namespace. "
        "The controller continues without the call: objects that it cannot read stay as it last saw them, and statuses that it "
        "cannot write stay old.",
        fix=(
            "Grant the verb to the controller's ServiceAccount, or install the chart's roles again (`helm upgrade`).",
            "`kubectl auth can-i VERB RESOURCE --as system:serviceaccount:NAMESPACE:NAME` checks it.",
        ),
        seen="ServiceAccount edge-gateway-system/edge-gateway: AccessDenied RBAC denies verb list on resource httproutes of API group "
        "gateway.networking.k8s.io in all namespaces; the controller continues without it and retries; grant the verb, or install "
        "the chart's roles again",
        where="In the controller's log, its console, Events of its ConfigMap and `edgefast status --admin` with the controller's admin address.",
    ),
    Page(
        word="AddressNotAssigned",
        means="The fleet has no address yet. A load balancer takes seconds to minutes; without one in the cluster there is never "
        "an address of a Service of type LoadBalancer.",
        fix=(
            "Wait; then look at the Service of the fleet (`kubectl describe service`).",
            "Without load balancers choose `spec.service.type: NodePort` or ClusterIP in an EdgeProxy.",
        ),
        example=gateway("listeners: [{name: http, port: 80, protocol: HTTP}]"),
        place="cluster",
    ),
    Page(
        word="CertificateExpiring",
        means="A certificate of a listener expires within 14 days, or in the last quarter of a life shorter than 56 days. The listener "
        "serves it. A warning.",
        fix=(
            "Renew the certificate; with cert-manager look at the Certificate object (`kubectl describe certificate`).",
        ),
        seen="Gateway default/edge listener https: CertificateExpiring the certificate expires at 2027-01-01T00:00:00+00:00; renew it",
    ),
    Page(
        word="CertificateNotValid",
        means="A certificate of a listener has expired, is not valid yet, or does not have the listener's hostname among its "
        "subjectAltNames. The listener serves it, and clients refuse it.",
        fix=(
            "Renew the certificate, or refer to the Secret of a valid one.",
            "For a wrong name: issue it for the listener's hostname; clients ignore the common name.",
        ),
        seen="Gateway default/edge listener https: CertificateNotValid the certificate is for a.example, not for b.example; clients refuse it",
    ),
    Page(
        word="KeysNotFetched",
        means="A proxy cannot fetch the key set (`remoteJWKS.uri`) of a SecurityPolicy. Keys that it fetched before stay valid for a while; "
        "without keys, requests with a token of that provider get 503.",
        fix=(
            "Read the reason in the message: the name does not resolve, the connection fails, the certificate is not trusted, or the "
            "answer is not a key set.",
            "Correct the uri, or allow the proxies' network to reach it (NetworkPolicy, egress proxy). They repeat the request until it succeeds.",
        ),
        seen="SecurityPolicy default/api spec.jwt: KeysNotFetched the keys at https://idp.example/keys cannot be fetched: answered 404; its "
        "tokens are answered with 503",
        where="In `edgefast status` and the console of a proxy and of a cluster, the proxy's log, and an Event of the SecurityPolicy.",
    ),
    Page(
        word="NoResources",
        means="The fleet has an address and no proxy that is available.",
        fix=(
            "Look at its Deployment and pods: images, quotas, nodes, probes. `edgefast status` shows how far it got.",
        ),
        seen="Gateway default/edge: Programmed=False NoResources: 0/2 proxies available",
    ),
    Page(
        word="NotCounted",
        means="Requests that a limit should count are not counted: the store of counters does not serve, or a limit has seen more "
        "values (of a header, of addresses) in one window than it has room for in shared memory. Such requests pass, or get 500 "
        "where `rateLimit.failClosed` is set.",
        fix=(
            "A store: its message is the store's own word, or why it cannot be reached. Limits are back within a second of it.",
            "A limit without room: use Redis, limit by fewer values (a `sourceCIDR` or a header that clients cannot make up), or "
            "put a limit without `Distinct` beside it, which counts whatever happens.",
        ),
        seen="EdgeGateway: rateLimit.backend: NotCounted: the store redis.stores.svc:6379 does not count: Connection refused",
        where="In `edgefast status`, the console and `edgefast explain`, of a proxy and of a cluster, as long as it lasts.",
    ),
    Page(
        word="EvictingStore",
        means="The Redis of rate limits has `maxmemory` and a `maxmemory-policy` that throws keys away when its memory is full. "
        "Counters are such keys (they carry an expiry, so `volatile-*` takes them as well): a counter that goes begins anew, and its "
        "limit lets more pass than it says. Nothing else tells when that happens.",
        fix=(
            "Set `maxmemory-policy noeviction`; a full Redis then refuses to count, which is told (NotCounted) and answered by "
            "`rateLimit.failClosed`.",
            "Use a separate Redis for limits, with memory for all counters of a window (`edgefast docs rate-limits` lists the sizes).",
        ),
        seen="EdgeGateway: rateLimit.backend: EvictingStore: the store redis.stores.svc:6379 has maxmemory-policy allkeys-lru: it may "
        "forget counters when its memory is full, and limits let more pass then",
        where="In `edgefast status`, the console and `edgefast explain`, of a proxy and of a cluster, as a warning. It is looked at "
        "every half a minute.",
    ),
    Page(
        word="Pending",
        means="The objects are valid, but not all proxies have the tables yet, or no proxy runs: a status never reports more than the "
        "proxies serve. Normally for less than a second. With the status `Unknown`, no controller handles the object: no controller "
        "has seen it yet, or its controller no longer handles it, and the message gives the reason. In files: edgefast waits for a file that is being written, and keeps its last good content.",
        fix=(
            "For a file: write another file and rename it, or let its writer close it (`edgefast docs configuration`, How to write files).",
            "If it stays: `edgefast status` names the proxies that do not follow, and their logs say why.",
            "If it is `Unknown`: a GatewayClass with the `controllerName` of a controller that runs and watches the namespace.",
        ),
        seen="Gateway default/edge: Programmed=False Pending: 1/2 proxies at version 3",
        where="In conditions that a controller writes (`Programmed` of Gateways and listeners, and those of routes), until the "
        "proxies follow.",
    ),
    Page(
        word="RefusedByProxies",
        means="Proxies could not take in a part of their table: a fault of ours, or a want of memory. They keep the version they "
        "had.",
        fix=(
            "Raise the memory limit of the pods if the log speaks of memory; else tell us, with the message.",
        ),
        seen="HTTPRoute default/shop: Programmed=False RefusedByProxies: virtual_host default/edge/http/* refused",
        where="In conditions that a controller writes, and in Events.",
    ),
    Page(
        word="FleetFailed",
        means="The reason of an Event: the API server refused an object of a fleet (rights, quotas, a webhook), or its pods do not "
        "come up: the Deployment says that none can be made, or a proxy reads none of the controller's table formats.",
        fix=(
            "The message is the answer of the API server, of the Deployment or of the controller. It is tried again, with growing "
            "pauses. What served before goes on.",
        ),
        seen='Warning FleetFailed Gateway default/edge: Deployment edge-default-edge: admission webhook "policy" denied the request',
        where="In Events of a Gateway (`kubectl describe gateway`).",
    ),
    Page(
        word="FleetKept",
        means="The reason of an Event: this controller has made a fleet that it answers for no more, and nobody else does. Its class "
        "has another controllerName than the configuration, or is not there, or its namespace is not watched. It goes on with "
        "its last table at its addresses and follows no change, for a slip of the pen must not be an outage. When the message "
        "says that pods made now get no table, the controller was started since it had one: a new pod does not become ready.",
        fix=(
            "Put right what the message names: `gateway.controllerName`, the GatewayClass, the namespace's label. The fleet is taken "
            "back as it is.",
            "Until then neither restart nor scale a fleet whose new pods get no table.",
            "Or delete the Gateway: its fleet goes with it.",
        ),
        seen="Warning FleetKept Gateway default/edge: fleet edge-gateway-system/edge-default-edge goes on with its last table, for "
        "nobody answers for it: GatewayClass edge is of controller example.com/a, and this one is example.com/b",
        where="In Events of a Gateway, in the controller's log, and as `Unknown` in the status of the Gateway.",
    ),
    Page(
        word="OrdersNotServed",
        means="A proxy could not bind the unix socket that accepts orders: draining, the preStop hook and the log level. It tries "
        "again. Requests are served. Without the socket a preStop hook does not drain the proxy, and SIGTERM does.",
        fix=(
            "End the other process that has the name of the socket; `ss -xlp` lists names and processes.",
            "Or choose another `--admin` address: it names the socket.",
        ),
        seen="OrdersNotServed: order socket @edgefast-admin-127.0.0.1-19000 cannot be bound: in use by another process; `edgefast "
        "shutdown`, a preStop hook and `edgefast log-level` have no effect",
        where="In `edgefast status`, the console and the log.",
    ),
    Page(
        word="ZoneNotKnown",
        means="Backends whose zones count (`loadBalancer.zoneAware` of a BackendTrafficPolicy, `trafficDistribution` of a Service) are "
        "served by proxies of which nobody knows the zone they are in. To these endpoints of all zones are alike; nothing fails.",
        fix=(
            "In a cluster label the nodes with `topology.kubernetes.io/zone`, and see that EndpointSlices of the fleet's Service have "
            "zones. Pods that run keep what their EndpointSlice says.",
            "A proxy of files: `edgefast run --zone NAME`, or EDGEFAST_ZONE in its environment.",
        ),
        seen="Gateway default/edge: ZoneNotKnown: 1 of 3 proxies of edge-gateway-system/edge-default-edge are in no zone: to them "
        "endpoints of all zones are alike",
        where="In `edgefast status`, the console and the log, as a warning.",
    ),
    Page(
        word="TicketKeysNotKept",
        means="The reason of an Event: the Secret from which fleets' keys of TLS session tickets are derived cannot be read or "
        "written, or is not the controller's. Nothing fails: proxies go on with the keys they have, for a day, and then with keys of "
        "their own, so that a client resumes a session only at the replica that it began at.",
        fix=(
            "Give the controller's Role the right that the message names (`get`, `update` and `create` of Secrets in its own "
            "namespace are in the chart).",
            "Delete a Secret of that name that somebody else made.",
        ),
        seen="Warning TicketKeysNotKept Secret edge-gateway-system/edge-gateway-tickets: 403 Forbidden",
        where="In Events of the controller's ConfigMap, and in its log.",
    ),
    Page(
        word="ConfigurationRefused",
        means="The reason of an Event: an edit of the controller's configuration has problems. The one before stays in force.",
        fix=(
            "Put `edge-gateway.yaml` of the ConfigMap `edge-gateway-config` right; the message has the problems.",
        ),
        seen="Warning ConfigurationRefused the one before stays: EdgeGateway logging.level: NotSupported "
        '"loud" (supported: debug, info, warn, error)',
        where="In Events of the controller's ConfigMap, and in its log.",
    ),
)
