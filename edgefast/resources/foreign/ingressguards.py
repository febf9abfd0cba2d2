"""ingress-nginx's annotations that decide who gets in, and what does the same here. Pure data; source: its internal/ingress/annotations and its
documentation, read for names alone. A snippet may say anything, so each of them is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.resources.foreign.counterpart import Counterpart, here, later, never

_SNIPPETS = "edgefast does not use nginx"
_ADDRESSES = "principal.clientCIDRs; EdgeProxy spec.clientAddress sets the client address"
_KEPT = "connections to the service are kept, as to any backend (EdgeProxy spec.http.upstreamIdle)"
_WAF = "edgefast does not inspect requests for attacks; an authorisation service may"
_RATE = (
    "RateLimitFilter spec.global: two rules, whose clientSelectors have a sourceCIDR of type Distinct, one for 0.0.0.0/0 and one for ::/0; no "
    "bursts, 429 in place of 503, and all replicas count together, in a cluster by a store"
)
_ALLOWED = (
    f"SecurityPolicy spec.authorization, which denies all others: a rule that allows {_ADDRESSES}"
)
_COUNTED = "a limit selects the clients that it counts (sourceCIDR); it cannot exempt clients"

GUARDS: Mapping[str, Counterpart] = {
    "auth-url": here(
        "SecurityPolicy spec.extAuth.http: backendRef and pathOverride in place of a URL; the service is shown method, Host, path, authorization, "
        "and of other headers those that headersToExtAuth names (cookie), where nginx shows all; what was asked for it finds in "
        "x-forwarded-method, -host and -uri; 200 lets in, as whatever allowedStatuses names"
    ),
    "auth-signin": here(
        "a redirect that the service itself answers: all that it answers below 500, and that does not let in, goes to the client; or a redirect of "
        "401 in BackendTrafficPolicy spec.responseOverride, also of backends, which does not say where the client was"
    ),
    "auth-signin-redirect-param": never(
        "the service sends the redirect, and gets the client's URL (x-forwarded-host, x-forwarded-uri)"
    ),
    "auth-request-redirect": never(
        "the service gets the request's URL (x-forwarded-method, -host, -uri), and no other address"
    ),
    "auth-method": never("the service is asked with the method of the request"),
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
        "SecurityPolicy spec.extAuth.cache.ttl, one for all answers that let in, 401 and 403; 60s at most"
    ),
    "auth-keepalive": never(_KEPT),
    "auth-keepalive-requests": never(_KEPT),
    "auth-keepalive-timeout": never(_KEPT),
    "auth-keepalive-share-vars": never(
        "edgefast has no variables; both have the same x-request-id"
    ),
    "auth-always-set-cookie": here(
        "response_headers_to_add of a service of gRPC (SecurityPolicy spec.extAuth.grpc); one of HTTP sets cookies where it does not let in"
    ),
    "auth-snippet": never(_SNIPPETS),
    "enable-global-auth": here(
        "SecurityPolicy spec.mergeType Replace of a policy of the route, below a policy of its Gateway with extAuth"
    ),
    "auth-type": here("SecurityPolicy spec.basicAuth for basic; digest is not spoken"),
    "auth-secret": here(
        "SecurityPolicy spec.basicAuth.users, a Secret with the lines under .htpasswd in place of auth; hashes are bcrypt, $apr1$ and {SHA}"
    ),
    "auth-secret-type": here(
        "SecurityPolicy spec.basicAuth.users for auth-file; an auth-map has to be written as lines name:hash"
    ),
    "auth-realm": never("the realm is always gateway"),
    "auth-tls-secret": here(
        "Gateway spec.tls.frontend: caCertificateRefs with the Secret as it is (ca.crt), for a port and not for a host; without a good certificate "
        "the handshake ends, where nginx answers 400"
    ),
    "auth-tls-verify-client": here(
        "Gateway spec.tls.frontend: mode AllowValidOnly for on, AllowInsecureFallback for optional_no_ca, of which no backend is told; optional is "
        "not here"
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
