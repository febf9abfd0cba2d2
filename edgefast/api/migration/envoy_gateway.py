"""Envoy Gateway: its policies and their equivalents in edgefast. Pure data; source: its api/v1alpha1 (types), read for names alone."""

from __future__ import annotations

from edgefast.api.migration.adoption.backend import BACKEND_FIELDS
from edgefast.api.migration.adoption.client_fields import CLIENT_FIELDS
from edgefast.api.migration.adoption.envoy_proxy import PROXY_FIELDS, PROXY_NAMED
from edgefast.api.migration.adoption.route_settings import RATE_LIMIT_REFUSED
from edgefast.api.migration.field_mapping import (
    FieldMapping,
    ForeignKind,
    Project,
    planned,
    supported,
    unsupported,
)

_TARGETS = {
    "targetRef": supported("targetRefs: [...], a list"),
    "targetRefs": supported("targetRefs"),
    "targetSelectors": planned("list the targets"),
}
_EDGE_TARGETS = {
    name: supported("Gateway spec.infrastructure.parametersRef names the EdgeProxy")
    for name in _TARGETS
}


def _lacking(why: str) -> FieldMapping:
    """Return a row for a reason, or for what to do meanwhile."""
    return planned(why) if why.startswith(("put ", "use ", "write ")) else unsupported(why)


_CLIENT = {
    name: supported(one.said) if one.effect == "served" else _lacking(one.said)
    for name, one in CLIENT_FIELDS.items()
}
_PROXY = {
    **{name: supported(f"EdgeProxy spec.{at}") for name, at in PROXY_FIELDS.items()},
    **{name: _lacking(why) for name, why in PROXY_NAMED.items()},
}
_LIMITED = {
    f"rateLimit.{where}.rules[].{name}": _lacking(why)
    for where in ("global", "local")
    for name, why in RATE_LIMIT_REFUSED.items()
    if (where, name) != ("local", "shared")
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
                "mergeType": supported(
                    "SecurityPolicy spec.mergeType; if absent it inherits and does not replace"
                ),
                "authorization": supported(
                    "SecurityPolicy spec.authorization, without cel and clientIPGeoLocations"
                ),
                "extAuth": supported(
                    "SecurityPolicy spec.extAuth, of http and grpc; without recomputeRoute, includeRouteMetadata and contextExtensions"
                ),
                "cors": supported("the filter CORS of an HTTPRoute's rules, each of them"),
                "apiKeyAuth": supported(
                    "SecurityPolicy spec.apiKeyAuth; a request with two different keys has no "
                    "valid key"
                ),
                "basicAuth": supported(
                    "SecurityPolicy spec.basicAuth; hashes may be bcrypt and $apr1$, too"
                ),
                "csrf": planned(),
                "jwt": supported(
                    "SecurityPolicy spec.jwt; several different tokens count as no token, and keys are RSA, EC or Ed25519, never shared secrets; "
                    "tokens without exp are refused unless jwt.providers requireExpiration is false"
                ),
                "oidc": supported(
                    "SecurityPolicy spec.oidc; the provider needs a discovery document, ID tokens have asymmetric signatures, and requests "
                    "that are no navigation of a browser get 401"
                ),
            },
            inner={
                "authorization.rules[].cel": unsupported(
                    "rules support addresses, headers, methods and paths; for decisions by "
                    "code use an authorization service (SecurityPolicy spec.extAuth)"
                ),
                "authorization.rules[].principal.clientIPGeoLocations": unsupported(
                    "edgefast does not support GeoIP; clientCIDRs are ranges of addresses"
                ),
                "oidc.cookieNames": unsupported(
                    "one encrypted session has all tokens; its name depends on issuer, client and domain, and no other filter can read it"
                ),
                "oidc.disableTokenEncryption": unsupported("sessions are always encrypted"),
                "oidc.provider.backendSettings": unsupported(
                    "the Service and its BackendTLSPolicy set how the provider is asked"
                ),
                "oidc.denyRedirect.headers[].invert": unsupported(
                    "list the values that get 401; requests that are no navigation get it without a rule"
                ),
                "jwt.providers[].recomputeRoute": unsupported(
                    "edgefast selects the route before, from the client's request: a token decides access, not the route"
                ),
                "jwt.providers[].remoteJWKS.backendSettings": unsupported(
                    "the Service and its BackendTLSPolicy set how keys are fetched"
                ),
                "jwt.providers[].remoteJWKS.failedRefetchDuration": unsupported(
                    "edgefast waits 1 to 60 seconds after a failed fetch"
                ),
                "extAuth.contextExtensions": unsupported(
                    "pathOverride can have a query with data for the service"
                ),
                "extAuth.includeRouteMetadata": unsupported("the service gets only the request"),
                "extAuth.recomputeRoute": unsupported(
                    "edgefast selects the route before, from the client's request: a service decides access, not the route"
                ),
                "extAuth.http.backendSettings": unsupported(
                    "the Service and a BackendTLSPolicy set the protocol, and extAuth.timeout sets the time"
                ),
                "extAuth.grpc.backendSettings": unsupported(
                    "the Service and a BackendTLSPolicy set the protocol, and extAuth.timeout sets the time"
                ),
            },
        ),
        ForeignKind(
            "BackendTrafficPolicy",
            {
                **_TARGETS,
                "mergeType": supported(
                    "BackendTrafficPolicy spec.mergeType; if absent it inherits and does not "
                    "replace"
                ),
                "requestBuffer": supported(
                    "BackendTrafficPolicy spec.requestBuffer; bodies are counted, not buffered"
                ),
                "timeout": supported(
                    "BackendTrafficPolicy spec.timeout.http (requestTimeout, streamIdleTimeout); tcp.connectTimeout is EdgeProxy "
                    "spec.http.connectTimeout"
                ),
                "rateLimit": supported(
                    "RateLimitFilter spec.global or spec.local, referenced by filters of an HTTPRoute's rules; limits "
                    "without headers count requests before access rules"
                ),
                "retry": supported("retry of an HTTPRoute's rule, and EdgeProxy spec.grpc.retry"),
                "telemetry": supported(
                    "EdgeProxy spec.tracing and EdgeProxy spec.accessLog, for all routes of a Gateway"
                ),
                "http2": supported("EdgeProxy spec.http2.upstream"),
                "proxyProtocol": supported(
                    "Backend spec.proxyProtocol and EdgeProxy spec.proxyProtocol, of layer 4"
                ),
                "httpUpgrade": unsupported("upgrades such as WebSocket pass without a setting"),
                "compression": supported("BackendTrafficPolicy spec.compression, or compressor"),
                "compressor": supported(
                    "BackendTrafficPolicy spec.compressor, level 1; all encodings have one minContentLength, and 1024 by default"
                ),
                "responseOverride": supported(
                    "BackendTrafficPolicy spec.responseOverride, of statuses; a redirect needs a hostname, and an answer without a body is empty"
                ),
                "faultInjection": supported(
                    "BackendTrafficPolicy spec.faultInjection, for allowed requests; a delay "
                    "is at most 60s and counts in their timeout"
                ),
                "loadBalancer": supported(
                    "BackendTrafficPolicy spec.loadBalancer; RoundRobin counts for each worker, ConsistentHash has no table, and a cookie "
                    "is for all paths of its site"
                ),
                "healthCheck": supported(
                    "BackendTrafficPolicy spec.healthCheck; by default at most half of the "
                    "endpoints are ejected, and all are used if all are unhealthy"
                ),
                "circuitBreaker": supported(
                    "BackendTrafficPolicy spec.circuitBreaker, for all routes and workers of a "
                    "proxy together; maxParallelRetries and retryBudget both apply"
                ),
                "bandwidthLimit": supported(
                    "BackendTrafficPolicy spec.bandwidthLimit.response with scope Response: each response has its own limit, and no limit is "
                    "shared"
                ),
                "admissionControl": unsupported(
                    "edgefast does not reject requests by a failure rate"
                ),
                "useClientProtocol": unsupported(
                    "the appProtocol of the Service's port sets the backend's protocol"
                ),
                "connection": unsupported("buffers are bounded by EdgeProxy spec.http.bufferBytes"),
                "dns": unsupported("edgefast resolves names of a Backend again automatically"),
                "tcpKeepalive": unsupported(
                    "unused connections are closed after EdgeProxy spec.http.upstreamIdle"
                ),
                "routingType": unsupported(
                    "requests go to endpoints, never to a Service's address"
                ),
            },
            inner={
                **_LIMITED,
                "retry.perRetry.timeout": supported(
                    "timeouts.backendRequest of an HTTPRoute's rule"
                ),
                "retry.perRetry.backOff.maxInterval": unsupported(
                    "the backoff ends at 10 times its base"
                ),
                "bandwidthLimit.request": unsupported(
                    "edgefast limits the bandwidth of responses only"
                ),
                "bandwidthLimit.response.responseTrailers": unsupported(
                    "edgefast adds no trailers to responses with a bandwidth limit"
                ),
                "healthCheck.active.healthCheckLog": supported(
                    "the log of the proxy names endpoints that fail their check, and that recover"
                ),
                "loadBalancer.consistentHash.tableSize": unsupported(
                    "edgefast needs no table to find endpoints, and moves only the keys that "
                    "have to move"
                ),
                "loadBalancer.endpointOverride": unsupported(
                    "a header cannot select an endpoint; consistentHash keeps requests together"
                ),
                "responseOverride[].response.header": supported(
                    "BackendTrafficPolicy spec.responseOverride[].response.header"
                ),
                "responseOverride[].match.headers": planned("answers are selected by status"),
                "responseOverride[].match.source": supported(
                    "BackendTrafficPolicy spec.responseOverride[].match.source, with the values Backend and Gateway"
                ),
                "timeout.http.connectionIdleTimeout": supported(
                    "EdgeProxy spec.http.upstreamIdle, for all of a Gateway"
                ),
                "timeout.http.maxConnectionDuration": unsupported(
                    "connections to backends are kept as long as they are used, or for circuitBreaker.maxRequestsPerConnection requests"
                ),
                "timeout.http.maxStreamDuration": unsupported(
                    "streams stay open while data is sent; requestTimeout and streamIdleTimeout end them"
                ),
            },
        ),
        ForeignKind(
            "ClientTrafficPolicy",
            {
                **_EDGE_TARGETS,
                "clientIPDetection": supported("EdgeProxy spec.clientAddress"),
                "enableProxyProtocol": supported("EdgeProxy spec.clientAddress.proxyProtocol"),
                "proxyProtocol": supported("EdgeProxy spec.clientAddress.proxyProtocol"),
                "path": supported("EdgeProxy spec.http.escapedSlashes; slashes are always merged"),
                "headers": supported(
                    "EdgeProxy spec.http.underscores, EdgeProxy spec.http.requestHead and EdgeProxy spec.headers "
                    "(xForwardedClientCert, requestID); filters of routes change headers"
                ),
                "timeout": supported(
                    "EdgeProxy spec.http.headTimeout, EdgeProxy spec.http.idleTimeout and EdgeProxy spec.http.streamIdleTimeout"
                ),
                "connection": supported(
                    "EdgeProxy spec.http.maxConnections and EdgeProxy spec.http.bufferBytes"
                ),
                "http2": supported("EdgeProxy spec.http2"),
                "grpc": supported("EdgeProxy spec.grpc"),
                "tls": supported(
                    "tls of a Gateway's listener (its options) and of the Gateway (frontend), for client certificates"
                ),
                "healthCheck": supported("a rule with an HTTPRouteFilter spec.directResponse"),
                "http1": supported(
                    "EdgeProxy spec.http.http10; defaultHost is a host name and replaces useDefaultHost. The other rules "
                    "for HTTP/1.1 have no settings (edgefast docs http1)"
                ),
                "http3": unsupported("edgefast does not support HTTP/3"),
                "scheme": unsupported("x-forwarded-proto is the scheme of the client"),
                "tcpKeepalive": unsupported(
                    "EdgeProxy spec.http.idleTimeout closes idle client connections"
                ),
            },
            inner={name: one for name, one in _CLIENT.items() if "." in name},
            about="An EdgeProxy has these settings, and each Gateway names its EdgeProxy. A policy of one listener applies with `--adopt` if the "
            "Gateway has no other listener; a listener is closed if its client addresses, "
            "client certificate header, underscores or escaped slashes would differ. This includes listeners of ListenerSets.",
        ),
        ForeignKind(
            "HTTPRouteFilter",
            {
                "urlRewrite": supported(
                    "HTTPRouteFilter spec.urlRewrite.path; for the host the filter URLRewrite, "
                    "which accepts only a name"
                ),
                "directResponse": supported(
                    "HTTPRouteFilter spec.directResponse; contentType is the only header"
                ),
                "matches": supported("HTTPRouteFilter spec.matches"),
                "credentialInjection": planned(
                    "the filter RequestHeaderModifier, with the value in plain text"
                ),
            },
            inner={
                "directResponse.header": unsupported(
                    "contentType is the only header that such an answer can set"
                ),
                "urlRewrite.hostname": supported("the filter URLRewrite of the rule (hostname)"),
                "urlRewrite.appendXForwardedHost": unsupported(
                    "edgefast does not send the original host to backends after a rewrite"
                ),
            },
        ),
        ForeignKind(
            "Backend",
            {
                "endpoints": supported("Backend spec.endpoints"),
                "tls": supported("Backend spec.tls"),
                **{
                    name: supported(said)
                    for name, said in BACKEND_FIELDS.items()
                    if "." not in name
                },
            },
            inner={name: supported(said) for name, said in BACKEND_FIELDS.items() if "." in name},
            about="In a cluster set `extensionApis.enableBackend`.",
        ),
        ForeignKind(
            "EnvoyProxy",
            {
                name: _PROXY.get(name, supported("the fields below"))
                for name in dict.fromkeys(one.partition(".")[0] for one in _PROXY)
            },
            inner={name: one for name, one in _PROXY.items() if "." in name},
            about="An EnvoyProxy that a GatewayClass or a Gateway names is an EdgeProxy.",
        ),
        ForeignKind(
            "EnvoyExtensionPolicy",
            {
                **{name: unsupported(_CODE) for name in _TARGETS},
                "mergeType": unsupported(_CODE),
                "wasm": unsupported(_CODE),
                "extProc": unsupported(_CODE),
                "lua": unsupported(_CODE),
                "dynamicModule": unsupported(_CODE),
            },
        ),
        ForeignKind(
            "EnvoyPatchPolicy",
            {
                name: unsupported("edgefast does not use Envoy")
                for name in ("type", "jsonPatches", "targetRef", "priority")
            },
        ),
    ),
)
