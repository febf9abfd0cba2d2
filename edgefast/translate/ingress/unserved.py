"""Unserved: annotations of ingress-nginx that edgefast knows and does not serve, each with the effect on requests.

In: names of annotations. Out: whether the annotation closes its locations, and what happens without it.
Must never: leave out an annotation of ingress-nginx; a test compares the names with its sources' list.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Annotations of the highest risk: ingress-nginx serves no Ingress that has one, unless its ConfigMap allows them.
CRITICAL = (
    "auth-snippet",
    "configuration-snippet",
    "modsecurity-snippet",
    "server-snippet",
    "stream-snippet",
)

#: Annotations that decide access. The locations of the Ingress answer 503.
CLOSING: Mapping[str, str] = {
    "enable-modsecurity": "requests are not inspected",
    "enable-owasp-core-rules": "requests are not inspected",
}

#: Parts of the above; they mean nothing alone.
PARTS = frozenset(
    {
        "auth-cache-duration",
        "auth-cache-key",
        "auth-keepalive",
        "auth-keepalive-requests",
        "auth-keepalive-share-vars",
        "auth-keepalive-timeout",
        "limit-allowlist",
        "limit-burst-multiplier",
        "limit-rate-after",
        "limit-whitelist",
        "modsecurity-transaction-id",
        "opentelemetry-operation-name",
        "opentelemetry-trust-incoming-span",
        "proxy-redirect-to",
        "upstream-hash-by-subset",
        "upstream-hash-by-subset-size",
    }
)

#: Annotations without effect, as errors: requests get more than the author expects.
LOST: Mapping[str, str] = {
    "limit-connections": "connections of one client are not limited",
    "limit-rate": "the bandwidth of a response is not limited",
    "limit-rpm": "requests of one client are not limited",
    "limit-rps": "requests of one client are not limited",
}

#: Annotations without effect, as warnings.
DIFFERS: Mapping[str, str] = {
    "affinity-canary-behavior": "clients can move between the canary and the primary Service",
    "connection-proxy-header": "backends get the Connection header of edgefast",
    "custom-http-errors": "clients get the error responses of backends and of edgefast",
    "default-backend": "a Service without endpoints answers 503",
    "disable-proxy-intercept-errors": "edgefast intercepts no errors",
    "fastcgi-index": "FastCGI is not supported",
    "fastcgi-params-configmap": "FastCGI is not supported",
    "load-balance": "edgefast selects the less busy one of two endpoints",
    "proxy-cookie-domain": "the Domain of cookies is unchanged",
    "proxy-cookie-path": "the Path of cookies is unchanged",
    "proxy-http-version": "backends get HTTP/1.1 or HTTP/2",
    "proxy-next-upstream-timeout": "the time of all tries together has no limit",
    "proxy-redirect-from": "Location headers of backends are unchanged",
    "relative-redirects": "Location headers of redirects are absolute",
    "session-cookie-change-on-failure": "the cookie changes when its endpoint is gone",
    "session-cookie-conditional-samesite-none": "the cookie has no SameSite attribute",
    "session-cookie-domain": "the cookie has no Domain attribute",
    "session-cookie-expires": "only session-cookie-max-age sets the lifetime of the cookie",
    "session-cookie-samesite": "the cookie has no SameSite attribute",
    "session-cookie-secure": "edgefast decides the Secure attribute of the cookie",
    "ssl-ciphers": "cipher suites are fixed",
    "ssl-prefer-server-ciphers": "cipher suites are fixed",
    "upstream-hash-by": "edgefast selects the less busy one of two endpoints",
    "use-port-in-redirects": "redirects to HTTPS contain no port",
}

#: Annotations whose effect has no counterpart in edgefast, and whose absence changes no answer.
HARMLESS = frozenset(
    {
        "client-body-buffer-size",
        "enable-access-log",
        "enable-opentelemetry",
        "enable-rewrite-log",
        "http2-push-preload",
        "proxy-buffer-size",
        "proxy-buffering",
        "proxy-buffers-number",
        "proxy-busy-buffers-size",
        "proxy-max-temp-file-size",
        "proxy-request-buffering",
    }
)
