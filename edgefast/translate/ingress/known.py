"""Known: the names of all annotations of ingress-nginx 1.15.1, without their prefix.

In: nothing. Out: `SERVED`, and `KNOWN`, which also has those of unserved.py.
Must never: contain a name that no module reads.
"""

from __future__ import annotations

from edgefast.translate.ingress.unserved import CLOSING, CRITICAL, DIFFERS, HARMLESS, LOST, PARTS

#: The names of all annotations that edgefast serves, at least in part.
SERVED = frozenset(
    {
        "affinity",
        "affinity-mode",
        "allowlist-source-range",
        "app-root",
        "auth-always-set-cookie",
        "auth-method",
        "auth-proxy-set-headers",
        "auth-realm",
        "auth-request-redirect",
        "auth-response-headers",
        "auth-secret",
        "auth-secret-type",
        "auth-signin",
        "auth-signin-redirect-param",
        "auth-tls-error-page",
        "auth-tls-match-cn",
        "auth-tls-pass-certificate-to-upstream",
        "auth-tls-secret",
        "auth-tls-verify-client",
        "auth-tls-verify-depth",
        "auth-type",
        "auth-url",
        "backend-protocol",
        "canary",
        "canary-by-cookie",
        "canary-by-header",
        "canary-by-header-pattern",
        "canary-by-header-value",
        "canary-weight",
        "canary-weight-total",
        "cors-allow-credentials",
        "cors-allow-headers",
        "cors-allow-methods",
        "cors-allow-origin",
        "cors-expose-headers",
        "cors-max-age",
        "custom-headers",
        "denylist-source-range",
        "enable-cors",
        "enable-global-auth",
        "force-ssl-redirect",
        "from-to-www-redirect",
        "mirror-host",
        "mirror-request-body",
        "mirror-target",
        "permanent-redirect",
        "permanent-redirect-code",
        "preserve-trailing-slash",
        "proxy-body-size",
        "proxy-connect-timeout",
        "proxy-next-upstream",
        "proxy-next-upstream-tries",
        "proxy-read-timeout",
        "proxy-send-timeout",
        "proxy-ssl-verify",
        "rewrite-target",
        "satisfy",
        "server-alias",
        "service-upstream",
        "session-cookie-max-age",
        "session-cookie-name",
        "session-cookie-path",
        "ssl-passthrough",
        "ssl-redirect",
        "temporal-redirect",
        "temporal-redirect-code",
        "upstream-vhost",
        "use-regex",
        "whitelist-source-range",
        "x-forwarded-prefix",
    }
)
#: All annotations of ingress-nginx 1.15.1.
KNOWN = frozenset({*SERVED, *CRITICAL, *CLOSING, *PARTS, *LOST, *DIFFERS, *HARMLESS})
