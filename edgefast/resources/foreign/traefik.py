"""Traefik's middlewares and what does the same here. Pure data; source: its v1alpha1 (types), read for names alone."""

from __future__ import annotations

from edgefast.resources.foreign.counterpart import ForeignKind, Project, here, later, never

_AUTH = "an authorization service (SecurityPolicy spec.extAuth)"
_ADDRESSES = "SecurityPolicy spec.authorization with principal.clientCIDRs; EdgeProxy spec.clientAddress sets the client address"
_BALANCER = (
    "EdgeProxy spec.service.loadBalancerSourceRanges, for all connections to a fleet in a cluster"
)
_PREFIX = "the filter URLRewrite (ReplacePrefixMatch)"

TRAEFIK = Project(
    title="Traefik",
    groups=("traefik.io", "traefik.containo.us"),
    version="3.7 (fd5a576df2)",
    about="In Traefik an ExtensionRef filter of a rule names a Middleware, and Middlewares apply in the order of the filters. In edgefast, policies name "
    "their targets in `targetRefs`, and apply in a [fixed order](../../reference/policies.md#the-order). For `sticky.cookie` of a service use "
    "`sessionPersistence` of a route's rule or a BackendTrafficPolicy.",
    kinds=(
        ForeignKind(
            "Middleware",
            {
                "ipAllowList": here(_ADDRESSES),
                "ipWhiteList": here(_ADDRESSES),
                "forwardAuth": here(
                    "SecurityPolicy spec.extAuth (pathOverride, headersToExtAuth, http.headersToBackend), or the standard's filter "
                    "ExternalAuth"
                ),
                "replacePathRegex": here(r"HTTPRouteFilter spec.urlRewrite; \1 in place of $1"),
                "stripPrefixRegex": here("HTTPRouteFilter spec.urlRewrite"),
                "addPrefix": here(_PREFIX),
                "stripPrefix": here(_PREFIX),
                "replacePath": here("the filter URLRewrite (ReplaceFullPath)"),
                "redirectScheme": here("the filter RequestRedirect"),
                "redirectRegex": later(
                    "the filter RequestRedirect, which replaces a prefix or all of the path"
                ),
                "headers": here(
                    "the filters RequestHeaderModifier, ResponseHeaderModifier and CORS; set "
                    "security headers as values"
                ),
                "buffering": here(
                    "BackendTrafficPolicy spec.requestBuffer (maxRequestBodyBytes); bodies are "
                    "counted, not buffered"
                ),
                "rateLimit": here("RateLimitFilter spec.global (windows, no bursts)"),
                "retry": here("retry of an HTTPRoute's rule"),
                "grpcWeb": here("EdgeProxy spec.grpc.web"),
                "encodedCharacters": here("EdgeProxy spec.http.escapedSlashes"),
                "chain": never("a rule lists its filters in order"),
                "basicAuth": here(
                    "SecurityPolicy spec.basicAuth, with hashes under .htpasswd in a Secret; "
                    "the realm is always gateway"
                ),
                "digestAuth": never("new clients do not use digest authentication"),
                "errors": here(
                    "BackendTrafficPolicy spec.responseOverride, with bodies in the policy or "
                    "a ConfigMap, not from a Service"
                ),
                "compress": here("BackendTrafficPolicy spec.compressor"),
                "circuitBreaker": here(
                    "BackendTrafficPolicy spec.circuitBreaker limits connections and requests "
                    "to a backend, and BackendTrafficPolicy spec.healthCheck ejects failing "
                    "endpoints (passive.failurePercentageThreshold): single endpoints and "
                    "never the whole backend, without expressions"
                ),
                "inFlightReq": here(
                    "BackendTrafficPolicy spec.circuitBreaker.maxParallelRequests, exact for "
                    "all workers, for a backend and not for each source; 503 instead of 429"
                ),
                "passTLSClientCert": later(),
                "contentType": never("edgefast does not guess a content-type"),
                "plugin": never("the proxy runs no third-party code"),
            },
        ),
        ForeignKind(
            "MiddlewareTCP",
            {
                "ipAllowList": later(_BALANCER),
                "ipWhiteList": later(_BALANCER),
                "inFlightConn": here(
                    "EdgeProxy spec.stream.addressConnections, for each client address"
                ),
            },
        ),
    ),
)
