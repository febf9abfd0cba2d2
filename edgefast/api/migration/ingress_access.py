"""Ingress access: ingress-nginx annotations that decide access, and their equivalents in edgefast.

Pure data; source: its internal/ingress/annotations and its documentation, read for names alone. A
snippet may contain any directive, so each of them is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.api.migration.field_mapping import FieldMapping, planned, supported, unsupported

_SNIPPETS = "edgefast does not use nginx"
_ADDRESSES = "principal.clientCIDRs; EdgeProxy spec.clientAddress sets the client address"
_KEPT = "connections to the service are kept like connections to any backend (EdgeProxy spec.http.upstreamIdle)"
_WAF = "edgefast does not inspect requests for attacks; an authorization service can"
_LIMIT = "RateLimitFilter spec.local with a sourceCIDR of type Distinct, statusCode 503 and shared"
_ALLOWED = (
    f"SecurityPolicy spec.authorization, which denies all others: a rule that allows {_ADDRESSES}"
)
_EXEMPT = "RateLimitFilter spec.local: except of sourceCIDR"

GUARDS: Mapping[str, FieldMapping] = {
    "auth-url": supported(
        "SecurityPolicy spec.extAuth.http: backendRef, pathOverride and hostname instead of a URL; "
        "method GET, allRequestHeaders, originalRequest XOriginal and deniedStatuses 401 and 403 make "
        "the check of nginx; allowedStatuses lists the statuses that allow the request"
    ),
    "auth-signin": supported("SecurityPolicy spec.extAuth.http.signIn, a redirect in place of 401"),
    "auth-signin-redirect-param": supported(
        "SecurityPolicy spec.extAuth.http.signIn.redirectTo, which contains the parameter"
    ),
    "auth-request-redirect": supported(
        "SecurityPolicy spec.extAuth.http.headers: x-auth-request-redirect with a fixed value"
    ),
    "auth-method": supported("SecurityPolicy spec.extAuth.http.method"),
    "auth-response-headers": supported(
        "SecurityPolicy spec.extAuth.http.headersToBackend; edgefast removes these headers of clients"
    ),
    "auth-proxy-set-headers": supported(
        "SecurityPolicy spec.extAuth.http.headers, with fixed values"
    ),
    "auth-cache-key": supported(
        "SecurityPolicy spec.extAuth.cache.keyHeaders: headers, beside method, Host, path and authorization"
    ),
    "auth-cache-duration": supported(
        "SecurityPolicy spec.extAuth.cache.ttl, one for all allowing answers, 401 and 403; at "
        "most 60s"
    ),
    "auth-keepalive": unsupported(_KEPT),
    "auth-keepalive-requests": unsupported(_KEPT),
    "auth-keepalive-timeout": unsupported(_KEPT),
    "auth-keepalive-share-vars": unsupported(
        "edgefast has no variables; both have the same x-request-id"
    ),
    "auth-always-set-cookie": supported(
        "SecurityPolicy spec.extAuth.http.headersToClient with set-cookie, and headersToClientOn AllStatuses"
    ),
    "auth-snippet": unsupported(_SNIPPETS),
    "enable-global-auth": supported(
        "SecurityPolicy spec.mergeType Replace of a policy of the route, below a policy of its Gateway with extAuth"
    ),
    "auth-type": supported("SecurityPolicy spec.basicAuth for basic; digest is not supported"),
    "auth-secret": supported(
        "SecurityPolicy spec.basicAuth.users, a Secret with the lines under .htpasswd in place of auth; hashes are bcrypt, $apr1$ and {SHA}"
    ),
    "auth-secret-type": supported(
        "SecurityPolicy spec.basicAuth.users for auth-file; write an auth-map as lines name:hash"
    ),
    "auth-realm": unsupported("the realm is always gateway"),
    "auth-tls-secret": supported(
        "Gateway spec.tls.frontend: caCertificateRefs with the same Secret (ca.crt), for a "
        "port and not for a host; without a valid certificate the handshake fails, nginx "
        "answers 400"
    ),
    "auth-tls-verify-client": supported(
        "Gateway spec.tls.frontend: mode AllowValidOnly for on, AllowInsecureFallback for "
        "optional_no_ca, without information to backends; optional is not supported"
    ),
    "auth-tls-verify-depth": unsupported("the TLS library limits the length of a chain"),
    "auth-tls-error-page": unsupported("the handshake fails before a request"),
    "auth-tls-pass-certificate-to-upstream": planned(),
    "auth-tls-match-cn": planned("a CA that signs certificates of permitted clients only"),
    "whitelist-source-range": supported(_ALLOWED),
    "allowlist-source-range": supported(_ALLOWED),
    "denylist-source-range": supported(
        f"SecurityPolicy spec.authorization with defaultAction Allow: a rule that denies {_ADDRESSES}"
    ),
    "satisfy": supported("SecurityPolicy spec.satisfy"),
    "limit-rps": supported(f"{_LIMIT}: limit with unit Second, and burst"),
    "limit-rpm": supported(f"{_LIMIT}: limit with unit Minute, and burst"),
    "limit-burst-multiplier": supported(
        "RateLimitFilter spec.local: burst is the limit x the multiplier (5), plus 1"
    ),
    "limit-connections": supported(f"{_LIMIT}: maxParallelRequests"),
    "limit-allowlist": supported(_EXEMPT),
    "limit-whitelist": supported(_EXEMPT),
    "enable-modsecurity": unsupported(_WAF),
    "enable-owasp-core-rules": unsupported(_WAF),
    "modsecurity-snippet": unsupported(_WAF),
    "configuration-snippet": supported(
        "filters of an HTTPRoute for headers and answers, SecurityPolicy spec.authorization for allow and deny; other directives of nginx have no equivalent"
    ),
    "server-snippet": unsupported(_SNIPPETS),
    "stream-snippet": unsupported(_SNIPPETS),
}
