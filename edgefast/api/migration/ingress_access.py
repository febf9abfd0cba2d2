"""Ingress access: ingress-nginx annotations that decide access, and their equivalents in edgefast.

Pure data; source: its internal/ingress/annotations and its documentation, read for names alone. A
snippet may contain any directive, so each of them is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.api.migration.field_mapping import FieldMapping, supported, unsupported

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
        "options gateway.edge.io/client-ca of a Gateway's HTTPS listener: the same Secret (ca.crt, ca.crl)"
    ),
    "auth-tls-verify-client": supported(
        "option gateway.edge.io/client-certificate of the listener: Required for on, Optional, OptionalAnyIssuer for optional_no_ca"
    ),
    "auth-tls-verify-depth": supported(
        "option gateway.edge.io/client-verify-depth of the listener"
    ),
    "auth-tls-error-page": supported(
        "option gateway.edge.io/client-error-page of the listener, a URL of http or https"
    ),
    "auth-tls-pass-certificate-to-upstream": supported(
        "EdgeProxy spec.headers.forwarded with SSL-Client-Cert, or xForwardedClientCert"
    ),
    "auth-tls-match-cn": supported("option gateway.edge.io/client-subject of the listener, RE2"),
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
