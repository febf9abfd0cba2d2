"""ingress-nginx's annotations that decide who gets in, and what does the same here. Pure data; source: its internal/ingress/annotations and its
documentation, read for names alone. A snippet may say anything, so each of them is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.resources.foreign.counterpart import Counterpart, here, later, never

_SNIPPETS = "edgefast does not use nginx"
_ADDRESSES = "principal.clientCIDRs; EdgeProxy spec.clientAddress sets the client address"
_KEPT = "connections to the service are kept like connections to any backend (EdgeProxy spec.http.upstreamIdle)"
_WAF = "edgefast does not inspect requests for attacks; an authorization service can"
_RATE = "RateLimitFilter spec.global: two rules with a sourceCIDR of type Distinct in clientSelectors, one for 0.0.0.0/0 and one for ::/0; no bursts, 429 instead of 503, and all replicas count together (in a cluster with a store)"
_ALLOWED = (
    f"SecurityPolicy spec.authorization, which denies all others: a rule that allows {_ADDRESSES}"
)
_COUNTED = "a limit selects the clients that it counts (sourceCIDR); it cannot exempt clients"

GUARDS: Mapping[str, Counterpart] = {
    "auth-url": here(
        "SecurityPolicy spec.extAuth.http: backendRef and pathOverride instead of a URL; the "
        "service gets method, Host, path, authorization and the headers in headersToExtAuth "
        "(such as cookie), with nginx it gets all headers; x-forwarded-method, -host and -uri "
        "contain the original request; 200 and allowedStatuses allow the request"
    ),
    "auth-signin": here(
        "a redirect that the service answers: each denial with a status below 500 goes to the "
        "client; or a redirect of 401 in BackendTrafficPolicy spec.responseOverride, also for "
        "401 of backends, without the original URL"
    ),
    "auth-signin-redirect-param": never(
        "the service sends the redirect, and gets the client's URL (x-forwarded-host, x-forwarded-uri)"
    ),
    "auth-request-redirect": never(
        "the service gets the request's URL (x-forwarded-method, -host, -uri), and no other address"
    ),
    "auth-method": never("the service is called with the method of the request"),
    "auth-response-headers": here(
        "SecurityPolicy spec.extAuth.http.headersToBackend; edgefast removes these headers of clients"
    ),
    "auth-proxy-set-headers": never(
        "the service gets headers of the request (headersToExtAuth), and no fixed headers"
    ),
    "auth-cache-key": here(
        "SecurityPolicy spec.extAuth.cache.keyHeaders: headers, beside method, Host, path and authorization"
    ),
    "auth-cache-duration": here(
        "SecurityPolicy spec.extAuth.cache.ttl, one for all allowing answers, 401 and 403; at "
        "most 60s"
    ),
    "auth-keepalive": never(_KEPT),
    "auth-keepalive-requests": never(_KEPT),
    "auth-keepalive-timeout": never(_KEPT),
    "auth-keepalive-share-vars": never(
        "edgefast has no variables; both have the same x-request-id"
    ),
    "auth-always-set-cookie": here(
        "response_headers_to_add of a gRPC service (SecurityPolicy spec.extAuth.grpc); an HTTP "
        "service can set cookies when it denies"
    ),
    "auth-snippet": never(_SNIPPETS),
    "enable-global-auth": here(
        "SecurityPolicy spec.mergeType Replace of a policy of the route, below a policy of its Gateway with extAuth"
    ),
    "auth-type": here("SecurityPolicy spec.basicAuth for basic; digest is not supported"),
    "auth-secret": here(
        "SecurityPolicy spec.basicAuth.users, a Secret with the lines under .htpasswd in place of auth; hashes are bcrypt, $apr1$ and {SHA}"
    ),
    "auth-secret-type": here(
        "SecurityPolicy spec.basicAuth.users for auth-file; write an auth-map as lines name:hash"
    ),
    "auth-realm": never("the realm is always gateway"),
    "auth-tls-secret": here(
        "Gateway spec.tls.frontend: caCertificateRefs with the same Secret (ca.crt), for a "
        "port and not for a host; without a valid certificate the handshake fails, nginx "
        "answers 400"
    ),
    "auth-tls-verify-client": here(
        "Gateway spec.tls.frontend: mode AllowValidOnly for on, AllowInsecureFallback for "
        "optional_no_ca, without information to backends; optional is not supported"
    ),
    "auth-tls-verify-depth": never("the TLS library limits the length of a chain"),
    "auth-tls-error-page": never("the handshake fails before a request"),
    "auth-tls-pass-certificate-to-upstream": later(),
    "auth-tls-match-cn": later("a CA that signs certificates of permitted clients only"),
    "whitelist-source-range": here(_ALLOWED),
    "allowlist-source-range": here(_ALLOWED),
    "denylist-source-range": here(
        f"SecurityPolicy spec.authorization with defaultAction Allow: a rule that denies {_ADDRESSES}"
    ),
    "satisfy": never("every policy must accept the request, as with all; any is not supported"),
    "limit-rps": here(f"{_RATE} (unit Second)"),
    "limit-rpm": here(f"{_RATE} (unit Minute)"),
    "limit-burst-multiplier": never("a window has no burst: requests is the limit of one window"),
    "limit-connections": never(
        "limits count requests, not open connections of an address; waiting requests take turns by client address (edgefast docs http1)"
    ),
    "limit-allowlist": never(_COUNTED),
    "limit-whitelist": never(_COUNTED),
    "enable-modsecurity": never(_WAF),
    "enable-owasp-core-rules": never(_WAF),
    "modsecurity-snippet": never(_WAF),
    "configuration-snippet": never(_SNIPPETS),
    "server-snippet": never(_SNIPPETS),
    "stream-snippet": never(_SNIPPETS),
}
