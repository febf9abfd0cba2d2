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
        "modsecurity-transaction-id",
        "opentelemetry-operation-name",
        "opentelemetry-trust-incoming-span",
        "upstream-hash-by-subset",
        "upstream-hash-by-subset-size",
    }
)

#: Annotations without effect, as warnings.
DIFFERS: Mapping[str, str] = {
    "connection-proxy-header": "backends get the Connection header of edgefast",
    "fastcgi-index": "FastCGI is not supported",
    "fastcgi-params-configmap": "FastCGI is not supported",
    "proxy-http-version": "backends get HTTP/1.1 or HTTP/2",
    "ssl-ciphers": "cipher suites are fixed",
    "ssl-prefer-server-ciphers": "cipher suites are fixed",
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
