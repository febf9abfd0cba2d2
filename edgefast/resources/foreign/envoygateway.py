"""Envoy Gateway's policies and what does the same here. Pure data; source: its api/v1alpha1 (types), read for names alone."""

from __future__ import annotations

from edgefast.resources.foreign.counterpart import ForeignKind, Project, here, later, never

_TARGETS = {
    "targetRef": here("targetRefs: [...], a list"),
    "targetRefs": here("targetRefs, the same except for TCPRoute, TLSRoute and UDPRoute"),
    "targetSelectors": later("list the targets"),
}
_EDGE_TARGETS = {
    name: here("Gateway spec.infrastructure.parametersRef names the EdgeProxy") for name in _TARGETS
}
_CODE = "the proxy runs no third-party code; SecurityPolicy spec.extAuth calls a service for access decisions"

ENVOY_GATEWAY = Project(
    title="Envoy Gateway",
    groups=("gateway.envoyproxy.io",),
    version="1.9 (d32f282942)",
    about="Most kinds and fields have the same names: change only group and version. One difference: without `mergeType` a route's policy "
    "*inherits* from policies of its Gateway, where Envoy Gateway replaces them. `mergeType: Replace` gives Envoy Gateway's behavior. edgefast supports "
    "`sessionPersistence` of routes.",
    kinds=(
        ForeignKind(
            "SecurityPolicy",
            {
                **_TARGETS,
                "mergeType": here(
                    "SecurityPolicy spec.mergeType; if absent it inherits and does not replace"
                ),
                "authorization": here(
                    "SecurityPolicy spec.authorization, without cel and clientIPGeoLocations"
                ),
                "extAuth": here(
                    "SecurityPolicy spec.extAuth, of http and grpc; without recomputeRoute, includeRouteMetadata and contextExtensions"
                ),
                "cors": here("the filter CORS of an HTTPRoute's rules, each of them"),
                "apiKeyAuth": here(
                    "SecurityPolicy spec.apiKeyAuth; a request with two different keys has no "
                    "valid key"
                ),
                "basicAuth": here(
                    "SecurityPolicy spec.basicAuth; hashes may be bcrypt and $apr1$, too"
                ),
                "csrf": later(),
                "jwt": here(
                    "SecurityPolicy spec.jwt; several different tokens count as no token, and keys are RSA, EC or Ed25519, never shared secrets; "
                    "tokens without exp are refused unless jwt.providers requireExpiration is false"
                ),
                "oidc": later(
                    "an authorization service such as oauth2-proxy (SecurityPolicy spec.extAuth)"
                ),
            },
            inner={
                "authorization.rules[].cel": never(
                    "rules support addresses, headers, methods and paths; for decisions by "
                    "code use an authorization service (SecurityPolicy spec.extAuth)"
                ),
                "authorization.rules[].principal.clientIPGeoLocations": never(
                    "edgefast does not support GeoIP; clientCIDRs are ranges of addresses"
                ),
                "jwt.providers[].recomputeRoute": never(
                    "edgefast selects the route before, from the client's request: a token decides access, not the route"
                ),
                "jwt.providers[].remoteJWKS.backendSettings": never(
                    "the Service and its BackendTLSPolicy set how keys are fetched"
                ),
                "extAuth.contextExtensions": never(
                    "pathOverride can have a query with data for the service"
                ),
                "extAuth.includeRouteMetadata": never("the service gets only the request"),
                "extAuth.recomputeRoute": never(
                    "edgefast selects the route before, from the client's request: a service decides access, not the route"
                ),
                "extAuth.http.backendSettings": never(
                    "the Service and a BackendTLSPolicy set the protocol, and extAuth.timeout sets the time"
                ),
                "extAuth.grpc.backendSettings": never(
                    "the Service and a BackendTLSPolicy set the protocol, and extAuth.timeout sets the time"
                ),
            },
        ),
        ForeignKind(
            "BackendTrafficPolicy",
            {
                **_TARGETS,
                "mergeType": here(
                    "BackendTrafficPolicy spec.mergeType; if absent it inherits and does not "
                    "replace"
                ),
                "requestBuffer": here(
                    "BackendTrafficPolicy spec.requestBuffer; bodies are counted, not buffered"
                ),
                "timeout": here(
                    "BackendTrafficPolicy spec.timeout.http (requestTimeout, streamIdleTimeout); tcp.connectTimeout is EdgeProxy "
                    "spec.http.connectTimeout"
                ),
                "rateLimit": here(
                    "RateLimitFilter spec.global, referenced by filters of an HTTPRoute's rules"
                ),
                "retry": here("retry of an HTTPRoute's rule, and EdgeProxy spec.grpc.retry"),
                "telemetry": here(
                    "EdgeProxy spec.tracing and EdgeProxy spec.accessLog, for all routes of a Gateway"
                ),
                "http2": here("EdgeProxy spec.http2.upstream"),
                "proxyProtocol": here(
                    "Backend spec.proxyProtocol and EdgeProxy spec.proxyProtocol, of layer 4"
                ),
                "httpUpgrade": never("upgrades such as WebSocket pass without a setting"),
                "compression": here("BackendTrafficPolicy spec.compression, or compressor"),
                "compressor": here(
                    "BackendTrafficPolicy spec.compressor, level 1; all encodings have one minContentLength, and 1024 by default"
                ),
                "responseOverride": here(
                    "BackendTrafficPolicy spec.responseOverride, of statuses; a redirect needs a hostname, and an answer without a body is empty"
                ),
                "faultInjection": here(
                    "BackendTrafficPolicy spec.faultInjection, for allowed requests; a delay "
                    "is at most 60s and counts in their timeout"
                ),
                "loadBalancer": here(
                    "BackendTrafficPolicy spec.loadBalancer; RoundRobin counts for each worker, ConsistentHash has no table, and a cookie "
                    "is for all paths of its site"
                ),
                "healthCheck": here(
                    "BackendTrafficPolicy spec.healthCheck; by default at most half of the "
                    "endpoints are ejected, and all are used if all are unhealthy"
                ),
                "circuitBreaker": here(
                    "BackendTrafficPolicy spec.circuitBreaker, for all routes and workers of a "
                    "proxy together; maxParallelRetries and retryBudget both apply"
                ),
                "bandwidthLimit": never(
                    "edgefast does not throttle bandwidth; RateLimitFilter spec.global counts requests"
                ),
                "admissionControl": never("edgefast does not reject requests by a failure rate"),
                "useClientProtocol": never(
                    "the appProtocol of the Service's port sets the backend's protocol"
                ),
                "connection": never("buffers are bounded by EdgeProxy spec.http.bufferBytes"),
                "dns": never("edgefast resolves names of a Backend again automatically"),
                "tcpKeepalive": never(
                    "unused connections are closed after EdgeProxy spec.http.upstreamIdle"
                ),
                "routingType": never("requests go to endpoints, never to a Service's address"),
            },
            inner={
                "healthCheck.active.healthCheckLog": here(
                    "the log of the proxy names endpoints that fail their check, and that recover"
                ),
                "loadBalancer.consistentHash.tableSize": never(
                    "edgefast needs no table to find endpoints, and moves only the keys that "
                    "have to move"
                ),
                "loadBalancer.endpointOverride": never(
                    "a header cannot select an endpoint; consistentHash keeps requests together"
                ),
                "responseOverride[].response.header": later(
                    "the filter ResponseHeaderModifier of an HTTPRoute's rules, for answers of backends"
                ),
                "responseOverride[].match.headers": later("answers are selected by status"),
                "responseOverride[].match.source": later(
                    "answers of backends and of the proxy are replaced equally"
                ),
                "timeout.tcp": here("EdgeProxy spec.http.connectTimeout, for all of a Gateway"),
                "timeout.http.connectionIdleTimeout": here(
                    "EdgeProxy spec.http.upstreamIdle, for all of a Gateway"
                ),
                "timeout.http.maxConnectionDuration": never(
                    "connections to backends are kept as long as they are used, or for circuitBreaker.maxRequestsPerConnection requests"
                ),
                "timeout.http.maxStreamDuration": never(
                    "streams stay open while data is sent; requestTimeout and streamIdleTimeout end them"
                ),
            },
        ),
        ForeignKind(
            "ClientTrafficPolicy",
            {
                **_EDGE_TARGETS,
                "clientIPDetection": here("EdgeProxy spec.clientAddress"),
                "enableProxyProtocol": here("EdgeProxy spec.clientAddress.proxyProtocol"),
                "proxyProtocol": here("EdgeProxy spec.clientAddress.proxyProtocol"),
                "path": here("EdgeProxy spec.http.escapedSlashes; slashes are always merged"),
                "headers": here(
                    "EdgeProxy spec.http.underscores and EdgeProxy spec.http.requestHead; filters of routes change headers"
                ),
                "timeout": here(
                    "EdgeProxy spec.http.headTimeout, EdgeProxy spec.http.idleTimeout and EdgeProxy spec.http.streamIdleTimeout"
                ),
                "connection": here(
                    "EdgeProxy spec.http.maxConnections and EdgeProxy spec.http.bufferBytes"
                ),
                "http2": here("EdgeProxy spec.http2"),
                "grpc": here("EdgeProxy spec.grpc"),
                "tls": here(
                    "tls of a Gateway's listener (its options) and of the Gateway (frontend), for client certificates"
                ),
                "healthCheck": here("a rule with an HTTPRouteFilter spec.directResponse"),
                "http1": never(
                    "the rules for HTTP/1.1 have no settings (edgefast docs http1); HTTP/1.0 is answered 426"
                ),
                "http3": never("edgefast does not support HTTP/3"),
                "scheme": never("x-forwarded-proto is the scheme of the client"),
                "tcpKeepalive": never(
                    "EdgeProxy spec.http.idleTimeout closes idle client connections"
                ),
            },
            about="An EdgeProxy has these settings, and each Gateway names its EdgeProxy.",
        ),
        ForeignKind(
            "HTTPRouteFilter",
            {
                "urlRewrite": here(
                    "HTTPRouteFilter spec.urlRewrite.path; for the host the filter URLRewrite, "
                    "which accepts only a name"
                ),
                "directResponse": here(
                    "HTTPRouteFilter spec.directResponse; contentType is the only header"
                ),
                "matches": here("HTTPRouteFilter spec.matches"),
                "credentialInjection": later(
                    "the filter RequestHeaderModifier, with the value in plain text"
                ),
            },
            inner={
                "directResponse.header": never(
                    "contentType is the only header that such an answer can set"
                ),
                "urlRewrite.hostname": here("the filter URLRewrite of the rule (hostname)"),
                "urlRewrite.appendXForwardedHost": never(
                    "edgefast does not send the original host to backends after a rewrite"
                ),
            },
        ),
        ForeignKind(
            "EnvoyExtensionPolicy",
            {
                **{name: never(_CODE) for name in _TARGETS},
                "mergeType": never(_CODE),
                "wasm": never(_CODE),
                "extProc": never(_CODE),
                "lua": never(_CODE),
                "dynamicModule": never(_CODE),
            },
        ),
        ForeignKind(
            "EnvoyPatchPolicy",
            {
                name: never("edgefast does not use Envoy")
                for name in ("type", "jsonPatches", "targetRef", "priority")
            },
        ),
    ),
)
