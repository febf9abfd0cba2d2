"""Ingress other: ingress-nginx annotations that do not decide access, and their equivalents in edgefast.

Pure data; source: as ingress_access.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.api.migration.field_mapping import FieldMapping, supported, unsupported

_ALL = "of all routes of a Gateway"
_BUFFERS = "edgefast streams answers, within EdgeProxy spec.http.bufferBytes"
_FASTCGI = "edgefast does not support FastCGI"
_COOKIE = "BackendTrafficPolicy spec.sessionPersistence.cookie"
_LASTS = "BackendTrafficPolicy spec.sessionPersistence.absoluteTimeout with lifetimeType Permanent, sent as Max-Age"
_LOCATION = r"HTTPRouteFilter spec.responseRewrite.locations: text, or an expression (RE2, \1 in place of $1); {scheme} and {host} are those of the request"
_RATE = "BackendTrafficPolicy spec.bandwidthLimit.response"
_SUBSETS = "a key finds one endpoint"
_SUITES = "cipher suites and versions (TLS 1.2 and 1.3) are fixed"

OTHERS: Mapping[str, FieldMapping] = {
    # Hosts and paths.
    "server-alias": supported("further names in HTTPRoute spec.hostnames"),
    "use-regex": supported(
        "HTTPRoute spec.rules.matches.path of type RegularExpression (RE2): the whole path "
        "must match, case-sensitive; nginx matches a prefix, not case-sensitive, so /foo "
        "becomes (?i)/foo.*"
    ),
    "rewrite-target": supported(
        r"HTTPRouteFilter spec.urlRewrite, \1 in place of $1; only the match is replaced, not the whole path: begin the expression with ^, end it with $, add (?i) if it is not case-sensitive"
    ),
    "app-root": supported(
        "a rule of the path / (Exact) with the filter RequestRedirect (ReplaceFullPath)"
    ),
    "x-forwarded-prefix": supported(
        "the filter RequestHeaderModifier, which sets x-forwarded-prefix"
    ),
    "upstream-vhost": supported("the filter URLRewrite (hostname)"),
    "default-backend": supported(
        "BackendTrafficPolicy spec.responseOverride[].service (match.source NoEndpoints, 503)"
    ),
    "custom-http-errors": supported(
        "BackendTrafficPolicy spec.responseOverride[].service, or bodies in the policy or a ConfigMap"
    ),
    "disable-proxy-intercept-errors": supported(
        "BackendTrafficPolicy spec.responseOverride[].match.source: Gateway"
    ),
    "custom-headers": supported("the filter ResponseHeaderModifier"),
    # Redirects and TLS.
    "ssl-redirect": supported(
        "an HTTPRoute at the listener of HTTP (sectionName) with the filter RequestRedirect "
        "(scheme https, statusCode 308); edgefast never redirects by default"
    ),
    "force-ssl-redirect": supported(
        "the filter RequestRedirect (scheme https); behind a balancer that ends TLS, of a rule that matches the header x-forwarded-proto: http"
    ),
    "preserve-trailing-slash": supported("the filter RequestRedirect, which keeps the path"),
    "permanent-redirect": supported(
        "the filter RequestRedirect (statusCode 301): scheme, hostname, port and a path "
        "instead of a URL; the query is kept"
    ),
    "permanent-redirect-code": supported(
        "the filter RequestRedirect (statusCode 301, 302, 303, 307 or 308)"
    ),
    "temporal-redirect": supported(
        "the filter RequestRedirect (statusCode 302): scheme, hostname, port and a path "
        "instead of a URL; the query is kept"
    ),
    "temporal-redirect-code": supported(
        "the filter RequestRedirect (statusCode 301, 302, 303, 307 or 308)"
    ),
    "from-to-www-redirect": supported(
        "an HTTPRoute of the other name with the filter RequestRedirect (hostname)"
    ),
    "relative-redirects": supported("HTTPRouteFilter spec.redirect.origin: Remove"),
    "use-port-in-redirects": supported("the filter RequestRedirect (port)"),
    "ssl-passthrough": supported("a TLSRoute at a listener of TLS with mode Passthrough"),
    "ssl-ciphers": unsupported(
        f"{_SUITES}; option gateway.edge.io/tls-min-version of a listener asks for 1.3"
    ),
    "ssl-prefer-server-ciphers": unsupported(_SUITES),
    # CORS.
    "enable-cors": supported("the filter CORS of an HTTPRoute's rules"),
    "cors-allow-origin": supported(
        "the filter CORS (allowOrigins, of http and https); https://*.example.com allows any number of labels there, not one, and without an entry no origin is allowed"
    ),
    "cors-allow-methods": supported(
        "the filter CORS (allowMethods); if absent, no methods are sent"
    ),
    "cors-allow-headers": supported(
        "the filter CORS (allowHeaders); if absent, no headers are sent"
    ),
    "cors-expose-headers": supported("the filter CORS (exposeHeaders)"),
    "cors-allow-credentials": supported(
        "the filter CORS (allowCredentials), false where nginx has true"
    ),
    "cors-max-age": supported("the filter CORS (maxAge), 5 seconds where nginx has 1728000"),
    # Canaries.
    "canary": supported("one HTTPRoute with both backends"),
    "canary-by-header": supported(
        "a rule before the others that matches the header (always); one before that for never"
    ),
    "canary-by-header-value": supported("a rule before the others that matches the header (Exact)"),
    "canary-by-header-pattern": supported(
        "a rule before the others that matches the header (RegularExpression, all of its value)"
    ),
    "canary-by-cookie": supported(
        "a rule before the others with HTTPRouteFilter spec.matches for the cookie (always)"
    ),
    "canary-weight": supported("HTTPRoute spec.rules.backendRefs.weight"),
    "canary-weight-total": supported("the sum of the weights in HTTPRoute spec.rules.backendRefs"),
    # Which endpoint.
    "affinity": supported(
        "HTTPRoute spec.rules.sessionPersistence, or BackendTrafficPolicy spec.sessionPersistence for many rules"
    ),
    "affinity-mode": supported(
        "the default sessions, which are persistent: a client keeps its endpoint while it "
        "exists; balanced has no equivalent"
    ),
    "affinity-canary-behavior": supported(
        "BackendTrafficPolicy spec.sessionPersistence.precedence: Session for sticky, Weights for legacy"
    ),
    "session-cookie-name": supported("BackendTrafficPolicy spec.sessionPersistence.cookie.name"),
    "session-cookie-path": supported(
        "BackendTrafficPolicy spec.sessionPersistence.cookie.path, default /"
    ),
    "session-cookie-domain": supported(f"{_COOKIE}.domain"),
    "session-cookie-samesite": supported(f"{_COOKIE}.sameSite, Strict by default"),
    "session-cookie-conditional-samesite-none": supported(f"{_COOKIE}.sameSite: NoneIfSupported"),
    "session-cookie-secure": supported(f"{_COOKIE}.secure: Always; Secure over TLS by default"),
    "session-cookie-max-age": supported(_LASTS),
    "session-cookie-expires": supported(_LASTS),
    "session-cookie-change-on-failure": supported(
        "BackendTrafficPolicy spec.sessionPersistence.changeOnFailure, true by default"
    ),
    "upstream-hash-by": supported(
        "BackendTrafficPolicy spec.loadBalancer.consistentHash of type Parts (RequestURI, Path, Host, Header and others)"
    ),
    "upstream-hash-by-subset": unsupported(_SUBSETS),
    "upstream-hash-by-subset-size": unsupported(_SUBSETS),
    "load-balance": supported(
        "BackendTrafficPolicy spec.loadBalancer: RoundRobin, and LeastRequest for ewma"
    ),
    "service-upstream": unsupported("requests go to endpoints, never to a Service's address"),
    # Backends.
    "backend-protocol": supported(
        "a BackendTLSPolicy for HTTPS, which verifies unless its option gateway.edge.io/insecure-skip-verify is true; a GRPCRoute, or the port's appProtocol kubernetes.io/h2c, for GRPC, both for GRPCS; "
        "AUTO_HTTP and FCGI have no equivalent"
    ),
    "proxy-ssl-secret": supported(
        "BackendTLSPolicy spec.options gateway.edge.io/client-certificate (tls.crt, tls.key) and spec.validation (ca.crt)"
    ),
    "proxy-ssl-verify": supported("BackendTLSPolicy spec.validation: edgefast verifies by default"),
    "proxy-ssl-verify-depth": supported(
        "BackendTLSPolicy spec.options gateway.edge.io/verify-depth"
    ),
    "proxy-ssl-name": supported("BackendTLSPolicy spec.validation.hostname"),
    "proxy-ssl-server-name": supported(
        "BackendTLSPolicy spec.validation.hostname, which is always sent"
    ),
    "proxy-ssl-ciphers": unsupported(_SUITES),
    "proxy-ssl-protocols": unsupported(_SUITES),
    "proxy-http-version": unsupported(
        "the appProtocol of the Service's port sets the backend's protocol; HTTP/1.0 is not used"
    ),
    "proxy-connect-timeout": supported(
        "BackendTrafficPolicy spec.timeout.tcp.connectTimeout (2s by default where nginx has 5s)"
    ),
    "proxy-send-timeout": supported("BackendTrafficPolicy spec.timeout.http.sendTimeout"),
    "proxy-read-timeout": supported(
        "BackendTrafficPolicy spec.timeout.http: streamIdleTimeout, and requestTimeout where the head of an answer may take longer than 15s"
    ),
    "proxy-next-upstream": supported(
        "HTTPRoute spec.rules.retry (codes); edgefast skips endpoints that it cannot reach without it"
    ),
    "proxy-next-upstream-tries": supported(
        "HTTPRoute spec.rules.retry.attempts, which does not count the first"
    ),
    "proxy-next-upstream-timeout": supported("BackendTrafficPolicy spec.timeout.http.retryTimeout"),
    "proxy-redirect-from": supported(_LOCATION),
    "proxy-redirect-to": supported(_LOCATION),
    "proxy-cookie-domain": supported("HTTPRouteFilter spec.responseRewrite.cookieDomains"),
    "proxy-cookie-path": supported("HTTPRouteFilter spec.responseRewrite.cookiePaths"),
    "connection-proxy-header": unsupported("each connection has its own headers"),
    "fastcgi-index": unsupported(_FASTCGI),
    "fastcgi-params-configmap": unsupported(_FASTCGI),
    # Bodies.
    "proxy-body-size": supported(
        "BackendTrafficPolicy spec.requestBuffer.limit; without, any size"
    ),
    "client-body-buffer-size": unsupported(
        "edgefast streams bodies, within EdgeProxy spec.http.bufferBytes"
    ),
    "proxy-request-buffering": unsupported(
        "edgefast streams bodies, as with off; slow ones do not delay other requests (edgefast docs http1)"
    ),
    "proxy-buffering": unsupported(f"{_BUFFERS}, as with off"),
    "proxy-buffer-size": supported("EdgeProxy spec.http.responseHead, for answers with long heads"),
    "proxy-buffers-number": unsupported(_BUFFERS),
    "proxy-busy-buffers-size": unsupported(_BUFFERS),
    "proxy-max-temp-file-size": unsupported(_BUFFERS),
    "limit-rate": supported(f"{_RATE}.limit, with the unit Ki: 1 becomes 1Ki"),
    "limit-rate-after": supported(f"{_RATE}.unlimitedBytes, with the unit Ki"),
    "http2-push-preload": unsupported("edgefast does not push; browsers no longer support it"),
    # Copies.
    "mirror-target": supported(
        "the filter RequestMirror with a backendRef to a Service, a Backend or an XBackend"
    ),
    "mirror-request-body": supported(
        "the filter RequestMirror, which copies the body, too; off has no equivalent"
    ),
    "mirror-host": unsupported("a copy has the same Host as the request to the backend"),
    # What is told.
    "enable-access-log": supported(f"EdgeProxy spec.accessLog (off, filter), {_ALL}"),
    "enable-rewrite-log": unsupported("edgefast explain shows how a request is handled"),
    "enable-opentelemetry": supported(f"EdgeProxy spec.tracing, {_ALL}"),
    "opentelemetry-trust-incoming-span": supported(
        "EdgeProxy spec.tracing, which always continues an incoming traceparent"
    ),
    "opentelemetry-operation-name": unsupported("a span has the name of method and route"),
    "modsecurity-transaction-id": unsupported("edgefast does not inspect requests for attacks"),
}
