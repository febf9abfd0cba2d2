"""kgateway's policies and what does the same here. Pure data; source: its api/v1alpha1 (types), read for names alone."""

from __future__ import annotations

from edgefast.resources.foreign.counterpart import ForeignKind, Project, here, later, never

_TARGETS = {
    "targetRefs": here("targetRefs of the policy that has the field"),
    "targetSelectors": later("list the targets"),
}
_EDGE_TARGETS = {
    name: here("Gateway spec.infrastructure.parametersRef names the EdgeProxy") for name in _TARGETS
}
_AUTH = "an authorization service (SecurityPolicy spec.extAuth)"
_NO_HTTP10 = "HTTP/1.0 is answered 426"

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
                "rbac": here(
                    "SecurityPolicy spec.authorization: addresses, headers, methods and paths "
                    "instead of CEL expressions"
                ),
                "extAuth": here(
                    "SecurityPolicy spec.extAuth, of HTTP or gRPC; its GatewayExtension is the backendRef"
                ),
                "buffer": here(
                    "BackendTrafficPolicy spec.requestBuffer; bodies are counted, not buffered"
                ),
                "timeouts": here(
                    "timeouts of an HTTPRoute's rule, or BackendTrafficPolicy spec.timeout.http (requestTimeout, streamIdleTimeout)"
                ),
                "urlRewrite": here("HTTPRouteFilter spec.urlRewrite, without named groups"),
                "rateLimit": here(
                    "RateLimitFilter spec.global, referenced by filters of an HTTPRoute's rules"
                ),
                "retry": here("retry of an HTTPRoute's rule, and EdgeProxy spec.grpc.retry"),
                "cors": here("the filter CORS of an HTTPRoute's rules"),
                "headerModifiers": here(
                    "the filters RequestHeaderModifier and ResponseHeaderModifier of rules and backendRefs"
                ),
                "autoHostRewrite": never(
                    "the filter URLRewrite has a hostname for each rule or backendRef"
                ),
                "jwtAuth": here("SecurityPolicy spec.jwt"),
                "basicAuth": here("SecurityPolicy spec.basicAuth, with users in a Secret"),
                "apiKeyAuth": here(
                    "SecurityPolicy spec.apiKeyAuth, with keys in Secrets that are referenced "
                    "by name, not selected by label"
                ),
                "oauth2": later(f"{_AUTH}, such as oauth2-proxy"),
                "csrf": later(),
                "compression": here("BackendTrafficPolicy spec.compressor"),
                "transformation": never(
                    "headers are changed by values, not by templates, and edgefast does not read bodies"
                ),
                "extProc": never("the proxy calls no third-party code for parts of a body"),
            },
        ),
        ForeignKind(
            "HTTPListenerPolicy",
            {
                **_EDGE_TARGETS,
                "accessLog": here(
                    "EdgeProxy spec.accessLog; lines go to the proxy's output or its file"
                ),
                "tracing": here("EdgeProxy spec.tracing"),
                "useRemoteAddress": here("EdgeProxy spec.clientAddress"),
                "xffNumTrustedHops": here("EdgeProxy spec.clientAddress.trustedHops"),
                "streamIdleTimeout": here("EdgeProxy spec.http.streamIdleTimeout"),
                "idleTimeout": here("EdgeProxy spec.http.idleTimeout"),
                "maxRequestHeadersKb": here("EdgeProxy spec.http.requestHead"),
                "healthCheck": here("a rule with an HTTPRouteFilter spec.directResponse"),
                "upgradeConfig": never("upgrades such as WebSocket pass without a setting"),
                "serverHeaderTransformation": never(
                    "edgefast forwards the backend's server header; ResponseHeaderModifier "
                    "removes it"
                ),
                "preserveHttp1HeaderCase": never("edgefast forwards header names unchanged"),
                "acceptHttp10": never(_NO_HTTP10),
                "defaultHostForHttp10": never(_NO_HTTP10),
                "earlyRequestHeaderModifier": never(
                    "edgefast removes request headers that an authorization service sets"
                ),
            },
        ),
        ForeignKind(
            "ListenerPolicy",
            {
                **_EDGE_TARGETS,
                "default": here(
                    "EdgeProxy spec.http and EdgeProxy spec.clientAddress.proxyProtocol; httpSettings as HTTPListenerPolicy"
                ),
                "perPort": never("an EdgeProxy applies to all listeners of its Gateways"),
            },
        ),
        ForeignKind(
            "BackendConfigPolicy",
            {
                "targetRefs": here(
                    "BackendTrafficPolicy spec.targetRefs, for Services and Backends; settings "
                    "of the EdgeProxy apply to all backends of a Gateway"
                ),
                "targetSelectors": later("list the targets"),
                "connectTimeout": here("EdgeProxy spec.http.connectTimeout"),
                "commonHttpProtocolOptions": here(
                    "EdgeProxy spec.http.upstreamIdle (idleTimeout), and BackendTrafficPolicy spec.circuitBreaker.maxRequestsPerConnection"
                ),
                "http2ProtocolOptions": here("EdgeProxy spec.http2.upstream"),
                "tls": here("BackendTLSPolicy, or Backend spec.tls"),
                "upstreamProxyProtocol": here(
                    "Backend spec.proxyProtocol and EdgeProxy spec.proxyProtocol, of layer 4"
                ),
                "loadBalancer": here(
                    "BackendTrafficPolicy spec.loadBalancer; ringHash and maglev are ConsistentHash"
                ),
                "healthCheck": here("BackendTrafficPolicy spec.healthCheck.active"),
                "outlierDetection": here("BackendTrafficPolicy spec.healthCheck.passive"),
                "circuitBreakers": here("BackendTrafficPolicy spec.circuitBreaker"),
                "perConnectionBufferLimitBytes": never(
                    "buffers are bounded by EdgeProxy spec.http.bufferBytes"
                ),
                "http1ProtocolOptions": never(
                    "edgefast forwards names of headers and trailers unchanged"
                ),
                "dns": never("edgefast resolves names of a Backend again automatically"),
                "tcpKeepalive": never(
                    "unused connections are closed after EdgeProxy spec.http.upstreamIdle"
                ),
            },
        ),
        ForeignKind(
            "DirectResponse",
            {
                "status": here("HTTPRouteFilter spec.directResponse.statusCode"),
                "body": here("HTTPRouteFilter spec.directResponse.body"),
                "bodyFormat": never(
                    "an answer has one form for all clients; HTTPRouteFilter spec.directResponse.contentType sets it"
                ),
            },
        ),
    ),
)
