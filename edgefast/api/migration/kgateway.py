"""kgateway: its policies and their equivalents in edgefast. Pure data; source: its api/v1alpha1 (types), read for names alone."""

from __future__ import annotations

from edgefast.api.migration.field_mapping import (
    ForeignKind,
    Project,
    planned,
    supported,
    unsupported,
)

_TARGETS = {
    "targetRefs": supported("targetRefs of the policy that has the field"),
    "targetSelectors": planned("list the targets"),
}
_EDGE_TARGETS = {
    name: supported("Gateway spec.infrastructure.parametersRef names the EdgeProxy")
    for name in _TARGETS
}
_AUTH = "an authorization service (SecurityPolicy spec.extAuth)"

KGATEWAY = Project(
    title="kgateway",
    groups=("gateway.kgateway.dev",),
    version="2.x (028d2df5f0)",
    about="In both projects a policy of a route replaces that of its Gateway, feature by feature. "
    "edgefast supports `sessionPersistence` of routes.",
    kinds=(
        ForeignKind(
            "TrafficPolicy",
            {
                **_TARGETS,
                "rbac": supported(
                    "SecurityPolicy spec.authorization: addresses, headers, methods and paths "
                    "instead of CEL expressions"
                ),
                "extAuth": supported(
                    "SecurityPolicy spec.extAuth, of HTTP or gRPC; its GatewayExtension is the backendRef"
                ),
                "buffer": supported(
                    "BackendTrafficPolicy spec.requestBuffer; bodies are counted, not buffered"
                ),
                "timeouts": supported(
                    "timeouts of an HTTPRoute's rule, or BackendTrafficPolicy spec.timeout.http (requestTimeout, streamIdleTimeout)"
                ),
                "urlRewrite": supported("HTTPRouteFilter spec.urlRewrite, without named groups"),
                "rateLimit": supported(
                    "RateLimitFilter spec.global, referenced by filters of an HTTPRoute's rules"
                ),
                "retry": supported("retry of an HTTPRoute's rule, and EdgeProxy spec.grpc.retry"),
                "cors": supported("the filter CORS of an HTTPRoute's rules"),
                "headerModifiers": supported(
                    "the filters RequestHeaderModifier and ResponseHeaderModifier of rules and backendRefs"
                ),
                "autoHostRewrite": unsupported(
                    "the filter URLRewrite has a hostname for each rule or backendRef"
                ),
                "jwtAuth": supported("SecurityPolicy spec.jwt"),
                "basicAuth": supported("SecurityPolicy spec.basicAuth, with users in a Secret"),
                "apiKeyAuth": supported(
                    "SecurityPolicy spec.apiKeyAuth, with keys in Secrets that are referenced "
                    "by name, not selected by label"
                ),
                "oauth2": planned(f"{_AUTH}, such as oauth2-proxy"),
                "csrf": planned(),
                "compression": supported("BackendTrafficPolicy spec.compressor"),
                "transformation": unsupported(
                    "headers are changed by values, not by templates, and edgefast does not read bodies"
                ),
                "extProc": unsupported("the proxy calls no third-party code for parts of a body"),
            },
        ),
        ForeignKind(
            "HTTPListenerPolicy",
            {
                **_EDGE_TARGETS,
                "accessLog": supported(
                    "EdgeProxy spec.accessLog; lines go to the proxy's output or its file"
                ),
                "tracing": supported("EdgeProxy spec.tracing"),
                "useRemoteAddress": supported("EdgeProxy spec.clientAddress"),
                "xffNumTrustedHops": supported("EdgeProxy spec.clientAddress.trustedHops"),
                "streamIdleTimeout": supported("EdgeProxy spec.http.streamIdleTimeout"),
                "idleTimeout": supported("EdgeProxy spec.http.idleTimeout"),
                "maxRequestHeadersKb": supported("EdgeProxy spec.http.requestHead"),
                "healthCheck": supported("a rule with an HTTPRouteFilter spec.directResponse"),
                "upgradeConfig": unsupported("upgrades such as WebSocket pass without a setting"),
                "serverHeaderTransformation": unsupported(
                    "edgefast forwards the backend's server header; ResponseHeaderModifier "
                    "removes it"
                ),
                "preserveHttp1HeaderCase": unsupported("edgefast forwards header names unchanged"),
                "acceptHttp10": supported("EdgeProxy spec.http.http10"),
                "defaultHostForHttp10": supported("EdgeProxy spec.http.http10.defaultHost"),
                "earlyRequestHeaderModifier": unsupported(
                    "edgefast removes request headers that an authorization service sets"
                ),
            },
        ),
        ForeignKind(
            "ListenerPolicy",
            {
                **_EDGE_TARGETS,
                "default": supported(
                    "EdgeProxy spec.http and EdgeProxy spec.clientAddress.proxyProtocol; httpSettings as HTTPListenerPolicy"
                ),
                "perPort": unsupported("an EdgeProxy applies to all listeners of its Gateways"),
            },
        ),
        ForeignKind(
            "BackendConfigPolicy",
            {
                "targetRefs": supported(
                    "BackendTrafficPolicy spec.targetRefs, for Services and Backends; settings "
                    "of the EdgeProxy apply to all backends of a Gateway"
                ),
                "targetSelectors": planned("list the targets"),
                "connectTimeout": supported("EdgeProxy spec.http.connectTimeout"),
                "commonHttpProtocolOptions": supported(
                    "EdgeProxy spec.http.upstreamIdle (idleTimeout), and BackendTrafficPolicy spec.circuitBreaker.maxRequestsPerConnection"
                ),
                "http2ProtocolOptions": supported("EdgeProxy spec.http2.upstream"),
                "tls": supported("BackendTLSPolicy, or Backend spec.tls"),
                "upstreamProxyProtocol": supported(
                    "Backend spec.proxyProtocol and EdgeProxy spec.proxyProtocol, of layer 4"
                ),
                "loadBalancer": supported(
                    "BackendTrafficPolicy spec.loadBalancer; ringHash and maglev are ConsistentHash"
                ),
                "healthCheck": supported("BackendTrafficPolicy spec.healthCheck.active"),
                "outlierDetection": supported("BackendTrafficPolicy spec.healthCheck.passive"),
                "circuitBreakers": supported("BackendTrafficPolicy spec.circuitBreaker"),
                "perConnectionBufferLimitBytes": unsupported(
                    "buffers are bounded by EdgeProxy spec.http.bufferBytes"
                ),
                "http1ProtocolOptions": unsupported(
                    "edgefast forwards names of headers and trailers unchanged"
                ),
                "dns": unsupported("edgefast resolves names of a Backend again automatically"),
                "tcpKeepalive": unsupported(
                    "unused connections are closed after EdgeProxy spec.http.upstreamIdle"
                ),
            },
        ),
        ForeignKind(
            "DirectResponse",
            {
                "status": supported("HTTPRouteFilter spec.directResponse.statusCode"),
                "body": supported("HTTPRouteFilter spec.directResponse.body"),
                "bodyFormat": unsupported(
                    "an answer has one form for all clients; HTTPRouteFilter spec.directResponse.contentType sets it"
                ),
            },
        ),
    ),
)
