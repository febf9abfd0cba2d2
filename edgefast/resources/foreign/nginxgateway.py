"""NGINX Gateway Fabric's policies and what does the same here. Pure data; source: its apis (types), read for names alone."""

from __future__ import annotations

from edgefast.resources.foreign.counterpart import ForeignKind, Project, here, later, never

_TARGETS = {"targetRefs": here("targetRefs of the policy that has the field")}
_SNIPPETS = "edgefast does not use nginx"
_AUTH = "an authorization service (SecurityPolicy spec.extAuth)"

NGINX_GATEWAY = Project(
    title="NGINX Gateway Fabric",
    groups=("gateway.nginx.org",),
    version="2.x (e55bfe339)",
    about="edgefast supports `sessionPersistence` of routes.",
    kinds=(
        ForeignKind(
            "ClientSettingsPolicy",
            {
                "targetRef": here("targetRefs, a list"),
                "body": here(
                    "BackendTrafficPolicy spec.requestBuffer (maxSize) and EdgeProxy "
                    "spec.http.bodyStartTimeout; bodies are not buffered"
                ),
                "keepAlive": here(
                    "EdgeProxy spec.http.idleTimeout and EdgeProxy spec.http.maxRequestsPerConnection"
                ),
            },
        ),
        ForeignKind(
            "ProxySettingsPolicy",
            {
                **_TARGETS,
                "timeout": here(
                    "EdgeProxy spec.http.connectTimeout (connect), BackendTrafficPolicy spec.timeout.http (streamIdleTimeout for read, "
                    "sendTimeout for send)"
                ),
                "buffering": never(
                    "edgefast streams answers, within EdgeProxy spec.http.bufferBytes"
                ),
            },
        ),
        ForeignKind(
            "UpstreamSettingsPolicy",
            {
                "targetRefs": here(
                    'BackendTrafficPolicy spec.targetRefs (group: "", not core); keepAlive.timeout is the EdgeProxy\'s, for all backends of a '
                    "Gateway"
                ),
                "keepAlive": here(
                    "EdgeProxy spec.http.upstreamIdle (timeout) and BackendTrafficPolicy spec.circuitBreaker.maxRequestsPerConnection "
                    "(requests)"
                ),
                "zoneSize": never("endpoints need no separate memory"),
                "loadBalancingMethod": here(
                    "BackendTrafficPolicy spec.loadBalancer: LeastRequest, RoundRobin, Random or ConsistentHash"
                ),
                "hashMethodKey": here(
                    "BackendTrafficPolicy spec.loadBalancer.consistentHash: an address, headers, a cookie or parameters"
                ),
                "useClusterIP": never("requests go to endpoints, never to a Service's address"),
            },
        ),
        ForeignKind(
            "RateLimitPolicy",
            {
                "targetRefs": here(
                    "filters of an HTTPRoute's rules, which refer to a RateLimitFilter"
                ),
                "rateLimit": here(
                    "RateLimitFilter spec.global (windows, no bursts); dryRun is shadow of its rules"
                ),
            },
        ),
        ForeignKind(
            "ObservabilityPolicy",
            {
                "targetRefs": here("Gateway spec.infrastructure.parametersRef names the EdgeProxy"),
                "tracing": here("EdgeProxy spec.tracing, for all routes of a Gateway"),
            },
        ),
        ForeignKind(
            "AuthenticationFilter",
            {
                "type": here("the field of a SecurityPolicy selects the method"),
                "basic": here(
                    "SecurityPolicy spec.basicAuth, with hashes under .htpasswd in a Secret; "
                    "the realm is always gateway"
                ),
                "jwt": here(
                    "SecurityPolicy spec.jwt, with keys in the policy, in a ConfigMap, or "
                    "fetched; not in a Secret"
                ),
                "oidc": later(f"{_AUTH}, such as oauth2-proxy"),
            },
        ),
        ForeignKind("SnippetsFilter", {"snippets": never(_SNIPPETS)}),
        ForeignKind(
            "SnippetsPolicy", {"targetRefs": never(_SNIPPETS), "snippets": never(_SNIPPETS)}
        ),
        ForeignKind(
            "WAFPolicy",
            {
                name: never(
                    "edgefast does not inspect requests for attacks; an authorization service can"
                )
                for name in ("targetRefs", "type", "policySource", "policyRef", "securityLogs")
            },
        ),
        ForeignKind(
            "PayloadProcessor",
            {name: never("edgefast does not read bodies") for name in ("targetRef", "processors")},
        ),
    ),
)
