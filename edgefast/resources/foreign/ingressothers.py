"""ingress-nginx's annotations that do not decide who gets in, and what does the same here. Pure data; source: as ingressguards.py."""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.resources.foreign.counterpart import Counterpart, here, never

_ALL = "of all routes of a Gateway"
_BUFFERS = "edgefast streams answers, within EdgeProxy spec.http.bufferBytes"
_FASTCGI = "edgefast does not support FastCGI"
_HASHED = "the attributes of a cookie of BackendTrafficPolicy spec.loadBalancer.consistentHash; that of a session"
_LASTS = "BackendTrafficPolicy spec.sessionPersistence.absoluteTimeout with lifetimeType Permanent, sent as Max-Age"
_LOCATION = "edgefast forwards Location unchanged; the filter ResponseHeaderModifier replaces all of a header"
_SLOW = "edgefast does not throttle bandwidth; RateLimitFilter spec.global counts requests"
_SUBSETS = "a key finds one endpoint"
_SUITES = "cipher suites and versions (TLS 1.2 and 1.3) are fixed"

OTHERS: Mapping[str, Counterpart] = {
    # Hosts and paths.
    "server-alias": here("further names in HTTPRoute spec.hostnames"),
    "use-regex": here(
        "HTTPRoute spec.rules.matches.path of type RegularExpression (RE2): the whole path "
        "must match, case-sensitive; nginx matches a prefix, not case-sensitive, so /foo "
        "becomes (?i)/foo.*"
    ),
    "rewrite-target": here(
        r"HTTPRouteFilter spec.urlRewrite, \1 in place of $1; only the match is replaced, not the whole path: begin the expression with ^, end it with $, add (?i) if it is not case-sensitive"
    ),
    "app-root": here(
        "a rule of the path / (Exact) with the filter RequestRedirect (ReplaceFullPath)"
    ),
    "x-forwarded-prefix": here("the filter RequestHeaderModifier, which sets x-forwarded-prefix"),
    "upstream-vhost": here("the filter URLRewrite (hostname)"),
    "default-backend": here(
        "BackendTrafficPolicy spec.responseOverride (of 503), with bodies in the policy or a "
        "ConfigMap, not from a Service"
    ),
    "custom-http-errors": here(
        "BackendTrafficPolicy spec.responseOverride, with bodies in the policy or a ConfigMap, "
        "not from a Service"
    ),
    "disable-proxy-intercept-errors": never(
        "edgefast replaces only answers that BackendTrafficPolicy spec.responseOverride selects"
    ),
    "custom-headers": here("the filter ResponseHeaderModifier"),
    # Redirects and TLS.
    "ssl-redirect": here(
        "an HTTPRoute at the listener of HTTP (sectionName) with the filter RequestRedirect "
        "(scheme https, statusCode 308); edgefast never redirects by default"
    ),
    "force-ssl-redirect": here(
        "the filter RequestRedirect (scheme https); behind a balancer that ends TLS, of a rule that matches the header x-forwarded-proto: http"
    ),
    "preserve-trailing-slash": here("the filter RequestRedirect, which keeps the path"),
    "permanent-redirect": here(
        "the filter RequestRedirect (statusCode 301): scheme, hostname, port and a path "
        "instead of a URL; the query is kept"
    ),
    "permanent-redirect-code": here(
        "the filter RequestRedirect (statusCode 301, 302, 303, 307 or 308)"
    ),
    "temporal-redirect": here(
        "the filter RequestRedirect (statusCode 302): scheme, hostname, port and a path "
        "instead of a URL; the query is kept"
    ),
    "temporal-redirect-code": here(
        "the filter RequestRedirect (statusCode 301, 302, 303, 307 or 308)"
    ),
    "from-to-www-redirect": here(
        "an HTTPRoute of the other name with the filter RequestRedirect (hostname)"
    ),
    "relative-redirects": never("a Location of edgefast is an absolute URL"),
    "use-port-in-redirects": here("the filter RequestRedirect (port)"),
    "ssl-passthrough": here("a TLSRoute at a listener of TLS with mode Passthrough"),
    "ssl-ciphers": never(
        f"{_SUITES}; option gateway.edge.io/tls-min-version of a listener asks for 1.3"
    ),
    "ssl-prefer-server-ciphers": never(_SUITES),
    # CORS.
    "enable-cors": here("the filter CORS of an HTTPRoute's rules"),
    "cors-allow-origin": here(
        "the filter CORS (allowOrigins, of http and https); https://*.example.com allows any number of labels there, not one, and without an entry no origin is allowed"
    ),
    "cors-allow-methods": here("the filter CORS (allowMethods); if absent, no methods are sent"),
    "cors-allow-headers": here("the filter CORS (allowHeaders); if absent, no headers are sent"),
    "cors-expose-headers": here("the filter CORS (exposeHeaders)"),
    "cors-allow-credentials": here(
        "the filter CORS (allowCredentials), false where nginx has true"
    ),
    "cors-max-age": here("the filter CORS (maxAge), 5 seconds where nginx has 1728000"),
    # Canaries.
    "canary": here("one HTTPRoute with both backends"),
    "canary-by-header": here(
        "a rule before the others that matches the header (always); one before that for never"
    ),
    "canary-by-header-value": here("a rule before the others that matches the header (Exact)"),
    "canary-by-header-pattern": here(
        "a rule before the others that matches the header (RegularExpression, all of its value)"
    ),
    "canary-by-cookie": here(
        "a rule before the others with HTTPRouteFilter spec.matches for the cookie (always)"
    ),
    "canary-weight": here("HTTPRoute spec.rules.backendRefs.weight"),
    "canary-weight-total": here("the sum of the weights in HTTPRoute spec.rules.backendRefs"),
    # Which endpoint.
    "affinity": here(
        "HTTPRoute spec.rules.sessionPersistence, or BackendTrafficPolicy spec.sessionPersistence for many rules"
    ),
    "affinity-mode": here(
        "the default sessions, which are persistent: a client keeps its endpoint while it "
        "exists; balanced has no equivalent"
    ),
    "affinity-canary-behavior": never(
        "weights take precedence over sessions, as with legacy: a client has a session with "
        "each backend"
    ),
    "session-cookie-name": here("BackendTrafficPolicy spec.sessionPersistence.cookie.name"),
    "session-cookie-path": here(
        "BackendTrafficPolicy spec.sessionPersistence.cookie.path, default /"
    ),
    "session-cookie-domain": here(f"{_HASHED} has no Domain"),
    "session-cookie-samesite": here(f"{_HASHED} is SameSite=Strict"),
    "session-cookie-conditional-samesite-none": never(
        "edgefast does not distinguish clients by their names"
    ),
    "session-cookie-secure": here("the default session cookie, which is Secure over TLS"),
    "session-cookie-max-age": here(_LASTS),
    "session-cookie-expires": here(_LASTS),
    "session-cookie-change-on-failure": here(
        "the default sessions: an endpoint that replaces a failed one sets its own session"
    ),
    "upstream-hash-by": here(
        "BackendTrafficPolicy spec.loadBalancer.consistentHash: an address, headers, a cookie or parameters; not the path"
    ),
    "upstream-hash-by-subset": never(_SUBSETS),
    "upstream-hash-by-subset-size": never(_SUBSETS),
    "load-balance": here(
        "BackendTrafficPolicy spec.loadBalancer: RoundRobin, and LeastRequest for ewma"
    ),
    "service-upstream": never("requests go to endpoints, never to a Service's address"),
    # Backends.
    "backend-protocol": here(
        "a BackendTLSPolicy for HTTPS, which always verifies; a GRPCRoute, or the port's appProtocol kubernetes.io/h2c, for GRPC, both for GRPCS; "
        "AUTO_HTTP and FCGI have no equivalent"
    ),
    "proxy-ssl-secret": here(
        "Gateway spec.tls.backend.clientCertificateRef (tls.crt, tls.key), for all backends of a Gateway, and BackendTLSPolicy spec.validation (ca.crt)"
    ),
    "proxy-ssl-verify": here(
        "BackendTLSPolicy spec.validation: edgefast verifies every TLS backend"
    ),
    "proxy-ssl-verify-depth": never("the TLS library limits the length of a chain"),
    "proxy-ssl-name": here("BackendTLSPolicy spec.validation.hostname"),
    "proxy-ssl-server-name": here(
        "BackendTLSPolicy spec.validation.hostname, which is always sent"
    ),
    "proxy-ssl-ciphers": never(_SUITES),
    "proxy-ssl-protocols": never(_SUITES),
    "proxy-http-version": never(
        "the appProtocol of the Service's port sets the backend's protocol; HTTP/1.0 is not used"
    ),
    "proxy-connect-timeout": here(
        f"EdgeProxy spec.http.connectTimeout (2s where nginx has 5s), {_ALL}"
    ),
    "proxy-send-timeout": here("BackendTrafficPolicy spec.timeout.http.sendTimeout"),
    "proxy-read-timeout": here(
        "BackendTrafficPolicy spec.timeout.http: streamIdleTimeout, and requestTimeout where the head of an answer may take longer than 15s"
    ),
    "proxy-next-upstream": here(
        "HTTPRoute spec.rules.retry (codes); edgefast skips endpoints that it cannot reach without it"
    ),
    "proxy-next-upstream-tries": here(
        "HTTPRoute spec.rules.retry.attempts, which does not count the first"
    ),
    "proxy-next-upstream-timeout": here(
        "HTTPRoute spec.rules.timeouts.request, for all attempts together"
    ),
    "proxy-redirect-from": never(_LOCATION),
    "proxy-redirect-to": never(_LOCATION),
    "proxy-cookie-domain": never("edgefast forwards cookies of backends unchanged"),
    "proxy-cookie-path": never("edgefast forwards cookies of backends unchanged"),
    "connection-proxy-header": never("each connection has its own headers"),
    "fastcgi-index": never(_FASTCGI),
    "fastcgi-params-configmap": never(_FASTCGI),
    # Bodies.
    "proxy-body-size": here("BackendTrafficPolicy spec.requestBuffer.limit; without, any size"),
    "client-body-buffer-size": never(
        "edgefast streams bodies, within EdgeProxy spec.http.bufferBytes"
    ),
    "proxy-request-buffering": never(
        "edgefast streams bodies, as with off; slow ones do not delay other requests (edgefast docs http1)"
    ),
    "proxy-buffering": never(f"{_BUFFERS}, as with off"),
    "proxy-buffer-size": here("EdgeProxy spec.http.responseHead, for answers with long heads"),
    "proxy-buffers-number": never(_BUFFERS),
    "proxy-busy-buffers-size": never(_BUFFERS),
    "proxy-max-temp-file-size": never(_BUFFERS),
    "limit-rate": never(_SLOW),
    "limit-rate-after": never(_SLOW),
    "http2-push-preload": never("edgefast does not push; browsers no longer support it"),
    # Copies.
    "mirror-target": here(
        "the filter RequestMirror with a backendRef to a Service, a Backend or an XBackend"
    ),
    "mirror-request-body": here(
        "the filter RequestMirror, which copies the body, too; off has no equivalent"
    ),
    "mirror-host": never("a copy has the same Host as the request to the backend"),
    # What is told.
    "enable-access-log": here(f"EdgeProxy spec.accessLog (off, filter), {_ALL}"),
    "enable-rewrite-log": never("edgefast explain shows how a request is handled"),
    "enable-opentelemetry": here(f"EdgeProxy spec.tracing, {_ALL}"),
    "opentelemetry-trust-incoming-span": here(
        "EdgeProxy spec.tracing, which always continues an incoming traceparent"
    ),
    "opentelemetry-operation-name": never("a span has the name of method and route"),
    "modsecurity-transaction-id": never("edgefast does not inspect requests for attacks"),
}
