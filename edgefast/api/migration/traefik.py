"""Traefik: its middlewares and their equivalents in edgefast. Pure data; source: its v1alpha1 (types), read for names alone."""

from __future__ import annotations

from edgefast.api.migration.field_mapping import (
    ForeignKind,
    Project,
    planned,
    supported,
    unsupported,
)

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
                "ipAllowList": supported(_ADDRESSES),
                "ipWhiteList": supported(_ADDRESSES),
                "forwardAuth": supported(
                    "SecurityPolicy spec.extAuth (pathOverride, headersToExtAuth, http.headersToBackend), or the standard's filter "
                    "ExternalAuth"
                ),
                "replacePathRegex": supported(
                    r"HTTPRouteFilter spec.urlRewrite; \1 in place of $1"
                ),
                "stripPrefixRegex": supported("HTTPRouteFilter spec.urlRewrite"),
                "addPrefix": supported(_PREFIX),
                "stripPrefix": supported(_PREFIX),
                "replacePath": supported("the filter URLRewrite (ReplaceFullPath)"),
                "redirectScheme": supported("the filter RequestRedirect"),
                "redirectRegex": planned(
                    "the filter RequestRedirect, which replaces a prefix or all of the path"
                ),
                "headers": supported(
                    "the filters RequestHeaderModifier, ResponseHeaderModifier and CORS; set "
                    "security headers as values"
                ),
                "buffering": supported(
                    "BackendTrafficPolicy spec.requestBuffer (maxRequestBodyBytes); bodies are "
                    "counted, not buffered"
                ),
                "rateLimit": supported("RateLimitFilter spec.local (limit, burst)"),
                "retry": supported("retry of an HTTPRoute's rule"),
                "grpcWeb": supported("EdgeProxy spec.grpc.web"),
                "encodedCharacters": supported("EdgeProxy spec.http.escapedSlashes"),
                "chain": unsupported("a rule lists its filters in order"),
                "basicAuth": supported(
                    "SecurityPolicy spec.basicAuth, with hashes under .htpasswd in a Secret; "
                    "the realm is always gateway"
                ),
                "digestAuth": unsupported("new clients do not use digest authentication"),
                "errors": supported(
                    "BackendTrafficPolicy spec.responseOverride, with bodies in the policy or "
                    "a ConfigMap, not from a Service"
                ),
                "compress": supported("BackendTrafficPolicy spec.compressor"),
                "circuitBreaker": supported(
                    "BackendTrafficPolicy spec.circuitBreaker limits connections and requests "
                    "to a backend, and BackendTrafficPolicy spec.healthCheck ejects failing "
                    "endpoints (passive.failurePercentageThreshold): single endpoints and "
                    "never the whole backend, without expressions"
                ),
                "inFlightReq": supported(
                    "BackendTrafficPolicy spec.circuitBreaker.maxParallelRequests, exact for "
                    "all workers, for a backend and not for each source; 503 instead of 429"
                ),
                "passTLSClientCert": planned(),
                "contentType": unsupported("edgefast does not guess a content-type"),
                "plugin": unsupported("the proxy runs no third-party code"),
            },
        ),
        ForeignKind(
            "MiddlewareTCP",
            {
                "ipAllowList": planned(_BALANCER),
                "ipWhiteList": planned(_BALANCER),
                "inFlightConn": supported(
                    "EdgeProxy spec.stream.addressConnections, for each client address"
                ),
            },
        ),
    ),
)
