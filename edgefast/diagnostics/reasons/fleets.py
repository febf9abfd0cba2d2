"""Reasons of clusters only: errors between the objects and the proxies of a fleet.

In: nothing.
Out: `FLEETS`. Their messages are examples: no file can cause them.
"""

from __future__ import annotations

from edgefast.diagnostics.reasons.objects import gateway
from edgefast.diagnostics.reasons.word import Page

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
        means="The fleet has no address yet. A load balancer needs seconds to minutes. In a "
        "cluster without one, a Service of type LoadBalancer never gets an address.",
        fix=(
            "Wait; then check the Service of the fleet (`kubectl describe service`).",
            "In a cluster without load balancers, set `spec.service.type` to NodePort or "
            "ClusterIP in an EdgeProxy.",
        ),
        example=gateway("listeners: [{name: http, port: 80, protocol: HTTP}]"),
        place="cluster",
    ),
    Page(
        word="CertificateExpiring",
        means="A certificate of a listener expires within 14 days, or in the last quarter of a life shorter than 56 days. The listener "
        "serves it. A warning.",
        fix=(
            "Renew the certificate; with cert-manager check the Certificate object (`kubectl "
            "describe certificate`).",
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
        means="A proxy cannot fetch the key set (`remoteJWKS.uri`) of a SecurityPolicy, or the discovery document or keys of its identity "
        "provider (`oidc`). Keys that it fetched before stay valid for a while; without keys, requests with a token of that provider and "
        "logins get 503.",
        fix=(
            "Read the reason in the message: the name does not resolve, the connection fails, the certificate is not trusted, or the "
            "answer is not a key set. For `oidc` the issuer must equal `issuer` of the discovery document.",
            "Correct the uri or issuer, or allow the proxies' network to reach it (NetworkPolicy, egress proxy). They repeat the request until it succeeds.",
        ),
        seen='SecurityPolicy default/api spec.jwt: KeysNotFetched provider "idp": the keys at '
        "https://idp.example/keys cannot be fetched: answered 404; requests with its "
        "tokens get 503",
        where="In the condition `KeysAvailable` and an Event of the SecurityPolicy, `edgefast status` and the console of a proxy and of a "
        "cluster, the proxy's log, and the metric `edgefast_jwks_fetch_failing`.",
    ),
    Page(
        word="NoResources",
        means="The fleet has an address, but no available proxy.",
        fix=(
            "Check its Deployment and pods: images, quotas, nodes, probes. `edgefast status` "
            "shows the progress.",
        ),
        seen="Gateway default/edge: Programmed=False NoResources: 0/2 proxies available",
    ),
    Page(
        word="NotCounted",
        means="Rate-limited requests are not counted: the counter store does not answer, or one "
        "window has more values (of a header, or addresses) than a limit has room for in "
        "shared memory. Such requests pass, or get 500 if `rateLimit.failClosed` is set.",
        fix=(
            "For a store: the message is the store's error, or the reason why it cannot be "
            "reached. Limits work again within a second after the store does.",
            "For a limit without room: use Redis, limit by fewer values (a `sourceCIDR`, or a "
            "header that clients cannot invent), or add a limit without `Distinct`, which "
            "always counts.",
        ),
        seen="EdgeGateway: rateLimit.backend: NotCounted: the store redis.stores.svc:6379 does not count: Connection refused",
        where="In `edgefast status`, the console and `edgefast explain`, of a proxy and of a "
        "cluster, while it lasts.",
    ),
    Page(
        word="EvictingStore",
        means="The Redis server of rate limits has `maxmemory` and a `maxmemory-policy` that "
        "deletes keys when its memory is full. It can delete counters (they have an "
        "expiry, so `volatile-*` includes them). A deleted counter starts at zero, and its "
        "limit then admits more requests. Redis does not report the deletion.",
        fix=(
            "Set `maxmemory-policy noeviction`. A full Redis server then refuses to count; "
            "edgefast reports NotCounted, and `rateLimit.failClosed` decides the requests.",
            "Use a separate Redis for limits, with memory for all counters of a window: about 220 bytes for each (`edgefast docs rate-limits`).",
        ),
        seen="EdgeGateway: rateLimit.backend: EvictingStore: the store redis.stores.svc:6379 "
        "has maxmemory-policy allkeys-lru: it can delete counters when its memory is full, "
        "and limits then admit more requests",
        where="In `edgefast status`, the console and `edgefast explain`, of a proxy and of a "
        "cluster, as a warning. edgefast checks the setting every 30 seconds.",
    ),
    Page(
        word="Pending",
        means="The objects are valid, but not all proxies have the tables yet, or no proxy runs: a status never reports more than the "
        "proxies serve. Normally for less than a second. With the status `Unknown`, no controller handles the object: no controller "
        "has seen it yet, or its controller no longer handles it, and the message gives the reason. In files: edgefast waits for a file that is being written, and keeps its last good content.",
        fix=(
            "For a file: write another file and rename it, or let its writer close it (`edgefast docs configuration`, How to write files).",
            "If the reason stays: `edgefast status` names the proxies that do not follow, and "
            "their logs give the cause.",
            "If the status is `Unknown`: use a GatewayClass with the `controllerName` of a "
            "running controller that watches the namespace.",
        ),
        seen="Gateway default/edge: Programmed=False Pending: 1/2 proxies at version 3",
        where="In conditions that a controller writes (`Programmed` of Gateways and listeners, and those of routes), until the "
        "proxies follow.",
    ),
    Page(
        word="RefusedByProxies",
        means="Proxies could not apply a part of their table because of a bug of edgefast or a "
        "lack of memory. They keep their previous version.",
        fix=(
            "Raise the memory limit of the pods if the log mentions memory. Otherwise report "
            "the bug, with the message.",
        ),
        seen="HTTPRoute default/shop: Programmed=False RefusedByProxies: virtual_host default/edge/http/* refused",
        where="In conditions that a controller writes, and in Events.",
    ),
    Page(
        word="FleetFailed",
        means="The reason of an Event: the API server refused an object of a fleet (rights, "
        "quotas, a webhook), or its pods do not start: the Deployment cannot create pods, "
        "or a proxy does not support a table format of the controller.",
        fix=(
            "The message is the answer of the API server, of the Deployment or of the "
            "controller. The controller retries, with growing pauses. Running proxies continue "
            "to serve.",
        ),
        seen='Warning FleetFailed Gateway default/edge: Deployment edge-default-edge: admission webhook "policy" denied the request',
        where="In Events of a Gateway (`kubectl describe gateway`).",
    ),
    Page(
        word="FleetKept",
        means="The reason of an Event: this controller created a fleet that no controller "
        "handles any more. Its class has a different controllerName from the configuration "
        "or does not exist, or its namespace is not watched. The fleet serves its last "
        "table at its addresses and does not follow changes, so that a wrong setting is "
        "not an outage. If the message says that new pods get no table, the controller "
        "restarted after the table was made, and a new pod does not become ready.",
        fix=(
            "Correct what the message names: `gateway.controllerName`, the GatewayClass, or "
            "the namespace's label. The controller then handles the fleet again without an "
            "interruption.",
            "Until then, do not restart or scale a fleet if its new pods get no table.",
            "Or delete the Gateway, which deletes its fleet.",
        ),
        seen="Warning FleetKept Gateway default/edge: fleet "
        "edge-gateway-system/edge-default-edge serves its last table because no controller "
        "handles it: GatewayClass edge belongs to controller example.com/a, and this "
        "controller is example.com/b",
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
        means="Backends with zone-aware load balancing (`loadBalancer.zoneAware` of a "
        "BackendTrafficPolicy, `trafficDistribution` of a Service) are served by proxies "
        "with an unknown zone. These proxies send requests to endpoints of all zones; no "
        "request fails.",
        fix=(
            "In a cluster: label the nodes with `topology.kubernetes.io/zone`, and check that "
            "EndpointSlices of the fleet's Service have zones. Running pods keep the zone of "
            "their EndpointSlice.",
            "For files: pass `edgefast run --zone NAME`, or set the environment variable "
            "EDGEFAST_ZONE.",
        ),
        seen="Gateway default/edge: ZoneNotKnown: 1 of 3 proxies of "
        "edge-gateway-system/edge-default-edge have no known zone; they send requests to "
        "endpoints of all zones",
        where="In `edgefast status`, the console and the log, as a warning.",
    ),
    Page(
        word="TicketKeysNotKept",
        means="The reason of an Event: the Secret from which fleets' keys of TLS session tickets are derived cannot be read or "
        "written, or is not the controller's. No request fails: proxies keep their present "
        "keys for a day and then use their own keys, so that a client can resume a session "
        "only at the replica where it started.",
        fix=(
            "Grant the controller's Role the right that the message names (`get`, `update` and "
            "`create` of Secrets in its own "
            "namespace are in the chart).",
            "Delete a Secret of this name that another program created.",
        ),
        seen="Warning TicketKeysNotKept Secret edge-gateway-system/edge-gateway-tickets: 403 Forbidden",
        where="In Events of the controller's ConfigMap, and in its log.",
    ),
    Page(
        word="ConfigurationRefused",
        means="The reason of an Event: an edit of the controller's configuration has problems. "
        "The previous one stays in force.",
        fix=(
            "Correct `edge-gateway.yaml` in the ConfigMap `edge-gateway-config`; the message "
            "lists the problems.",
        ),
        seen="Warning ConfigurationRefused the previous configuration stays in use: EdgeGateway "
        "logging.level: NotSupported "
        '"loud" (supported: debug, info, warn, error)',
        where="In Events of the controller's ConfigMap, and in its log.",
    ),
)
