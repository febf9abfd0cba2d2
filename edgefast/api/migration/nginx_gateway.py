"""NGINX Gateway Fabric: its policies and their equivalents in edgefast. Pure data; source: its apis (types), read for names alone."""

from __future__ import annotations

from edgefast.api.migration.field_mapping import (
    ForeignKind,
    Project,
    supported,
    unsupported,
)

_TARGETS = {"targetRefs": supported("targetRefs of the policy that has the field")}
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
                "targetRef": supported("targetRefs, a list"),
                "body": supported(
                    "BackendTrafficPolicy spec.requestBuffer (maxSize) and EdgeProxy "
                    "spec.http.bodyStartTimeout; bodies are not buffered"
                ),
                "keepAlive": supported(
                    "EdgeProxy spec.http.idleTimeout and EdgeProxy spec.http.maxRequestsPerConnection"
                ),
            },
        ),
        ForeignKind(
            "ProxySettingsPolicy",
            {
                **_TARGETS,
                "timeout": supported(
                    "EdgeProxy spec.http.connectTimeout (connect), BackendTrafficPolicy spec.timeout.http (streamIdleTimeout for read, "
                    "sendTimeout for send)"
                ),
                "buffering": unsupported(
                    "edgefast streams answers, within EdgeProxy spec.http.bufferBytes"
                ),
            },
        ),
        ForeignKind(
            "UpstreamSettingsPolicy",
            {
                "targetRefs": supported(
                    'BackendTrafficPolicy spec.targetRefs (group: "", not core); keepAlive.timeout is the EdgeProxy\'s, for all backends of a '
                    "Gateway"
                ),
                "keepAlive": supported(
                    "EdgeProxy spec.http.upstreamIdle (timeout) and BackendTrafficPolicy spec.circuitBreaker.maxRequestsPerConnection "
                    "(requests)"
                ),
                "zoneSize": unsupported("endpoints need no separate memory"),
                "loadBalancingMethod": supported(
                    "BackendTrafficPolicy spec.loadBalancer: LeastRequest, RoundRobin, Random or ConsistentHash"
                ),
                "hashMethodKey": supported(
                    "BackendTrafficPolicy spec.loadBalancer.consistentHash: an address, headers, a cookie or parameters"
                ),
                "useClusterIP": unsupported(
                    "requests go to endpoints, never to a Service's address"
                ),
            },
        ),
        ForeignKind(
            "RateLimitPolicy",
            {
                "targetRefs": supported(
                    "filters of an HTTPRoute's rules, which refer to a RateLimitFilter"
                ),
                "rateLimit": supported(
                    "RateLimitFilter spec.local (a full bucket has burst + 1 tokens); dryRun is shadow of its rules"
                ),
            },
        ),
        ForeignKind(
            "ObservabilityPolicy",
            {
                "targetRefs": supported(
                    "Gateway spec.infrastructure.parametersRef names the EdgeProxy"
                ),
                "tracing": supported("EdgeProxy spec.tracing, for all routes of a Gateway"),
            },
        ),
        ForeignKind(
            "AuthenticationFilter",
            {
                "type": supported("the field of a SecurityPolicy selects the method"),
                "basic": supported(
                    "SecurityPolicy spec.basicAuth, with hashes under .htpasswd in a Secret; "
                    "the realm is always gateway"
                ),
                "jwt": supported(
                    "SecurityPolicy spec.jwt, with keys in the policy, in a ConfigMap, or "
                    "fetched; not in a Secret"
                ),
                "oidc": supported(
                    "SecurityPolicy spec.oidc with provider.issuer, clientID, clientSecret, redirectURL and logoutPath"
                ),
            },
        ),
        ForeignKind("SnippetsFilter", {"snippets": unsupported(_SNIPPETS)}),
        ForeignKind(
            "SnippetsPolicy",
            {"targetRefs": unsupported(_SNIPPETS), "snippets": unsupported(_SNIPPETS)},
        ),
        ForeignKind(
            "WAFPolicy",
            {
                name: unsupported(
                    "edgefast does not inspect requests for attacks; an authorization service can"
                )
                for name in ("targetRefs", "type", "policySource", "policyRef", "securityLogs")
            },
        ),
        ForeignKind(
            "PayloadProcessor",
            {
                name: unsupported("edgefast does not read bodies")
                for name in ("targetRef", "processors")
            },
        ),
    ),
)
