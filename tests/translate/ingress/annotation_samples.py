"""Annotation samples: a usual value of each annotation of ingress-nginx, and values that edgefast does not serve.

In: nothing. Out: `SAMPLES` and `UNSERVED`, by name of the annotation: its value, and the annotations that it needs; `OBJECTS`: what
they refer to.
"""

from __future__ import annotations

from tests.proxy.pki import Authority

_AUTHORITY = Authority()
_PAIR = _AUTHORITY.issue("web.test")


def _indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


OBJECTS = f"""apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{ports: [{{port: 80, name: http}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: other}}
spec: {{ports: [{{port: 80, name: http}}]}}
---
apiVersion: v1
kind: Secret
metadata: {{name: users}}
stringData: {{auth: 'ann:{{SHA}}W6ph5Mm5Pz8GgiULbPgzG37mj9g='}}
---
apiVersion: v1
kind: Secret
metadata: {{name: pair}}
type: kubernetes.io/tls
stringData:
  tls.crt: |
{_indent(_PAIR.certificate.decode())}  tls.key: |
{_indent(_PAIR.key.decode())}  ca.crt: |
{_indent(_AUTHORITY.bundle.decode())}---
apiVersion: v1
kind: ConfigMap
metadata: {{name: headers}}
data: {{X-Key: value}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: ingress-nginx-controller}}
data:
  allow-snippet-annotations: 'true'
  annotations-risk-level: Critical
  global-allowed-response-headers: X-Key
"""

_AFFINITY = {"affinity": "cookie"}
_AUTH = {"auth-url": "http://10.1.2.3/check"}
_BASIC = {"auth-type": "basic", "auth-secret": "users"}
_CANARY = {"canary": "true", "canary-weight": "30"}
_CLIENT = {"auth-tls-secret": "default/pair"}
_CORS = {"enable-cors": "true"}
_ERRORS = {"custom-http-errors": "502", "default-backend": "other"}
_LIMIT = {"limit-rps": "5"}
_MIRROR = {"mirror-target": "http://copy.test$request_uri"}
_PASSED = {
    "backend-protocol": "HTTPS",
    "proxy-ssl-secret": "default/pair",
    "proxy-ssl-verify": "on",
    "proxy-ssl-name": "web.test",
    "proxy-ssl-server-name": "on",
}
_PERMANENT = {"permanent-redirect": "https://new.test/"}
_TEMPORAL = {"temporal-redirect": "https://new.test/"}

SAMPLES: dict[str, dict[str, str]] = {
    "affinity": _AFFINITY,
    "affinity-canary-behavior": {**_AFFINITY, "affinity-canary-behavior": "sticky"},
    "affinity-mode": {**_AFFINITY, "affinity-mode": "persistent"},
    "allowlist-source-range": {"allowlist-source-range": "10.0.0.0/8"},
    "app-root": {"app-root": "/start"},
    "auth-always-set-cookie": {**_AUTH, "auth-always-set-cookie": "true"},
    "auth-cache-duration": {**_AUTH, "auth-cache-duration": "200 10m"},
    "auth-cache-key": {**_AUTH, "auth-cache-key": "$http_authorization"},
    "auth-keepalive": {**_AUTH, "auth-keepalive": "10"},
    "auth-keepalive-requests": {**_AUTH, "auth-keepalive-requests": "10"},
    "auth-keepalive-share-vars": {**_AUTH, "auth-keepalive-share-vars": "true"},
    "auth-keepalive-timeout": {**_AUTH, "auth-keepalive-timeout": "10"},
    "auth-method": {**_AUTH, "auth-method": "POST"},
    "auth-proxy-set-headers": {**_AUTH, "auth-proxy-set-headers": "default/headers"},
    "auth-realm": {**_BASIC, "auth-realm": "Members"},
    "auth-request-redirect": {**_AUTH, "auth-request-redirect": "https://back.test/"},
    "auth-response-headers": {**_AUTH, "auth-response-headers": "X-User"},
    "auth-secret": _BASIC,
    "auth-secret-type": {**_BASIC, "auth-secret-type": "auth-file"},
    "auth-signin": {**_AUTH, "auth-signin": "https://$host/oauth2/start"},
    "auth-signin-redirect-param": {
        **_AUTH,
        "auth-signin": "https://in.test/",
        "auth-signin-redirect-param": "to",
    },
    "auth-snippet": {**_AUTH, "auth-snippet": "proxy_set_header X-A b;"},
    "auth-tls-error-page": {**_CLIENT, "auth-tls-error-page": "https://in.test/"},
    "auth-tls-match-cn": {**_CLIENT, "auth-tls-match-cn": "CN=one"},
    "auth-tls-pass-certificate-to-upstream": {
        **_CLIENT,
        "auth-tls-pass-certificate-to-upstream": "true",
    },
    "auth-tls-secret": _CLIENT,
    "auth-tls-verify-client": {**_CLIENT, "auth-tls-verify-client": "optional"},
    "auth-tls-verify-depth": {**_CLIENT, "auth-tls-verify-depth": "2"},
    "auth-type": _BASIC,
    "auth-url": {"auth-url": "http://other.default.svc.cluster.local/oauth2/auth"},
    "backend-protocol": {"backend-protocol": "GRPC"},
    "canary": _CANARY,
    "canary-by-cookie": {**_CANARY, "canary-by-cookie": "new"},
    "canary-by-header": {**_CANARY, "canary-by-header": "X-New"},
    "canary-by-header-pattern": {
        **_CANARY,
        "canary-by-header": "X-New",
        "canary-by-header-pattern": "^a.*",
    },
    "canary-by-header-value": {
        **_CANARY,
        "canary-by-header": "X-New",
        "canary-by-header-value": "yes",
    },
    "canary-weight": _CANARY,
    "canary-weight-total": {**_CANARY, "canary-weight-total": "1000"},
    "client-body-buffer-size": {"client-body-buffer-size": "8k"},
    "configuration-snippet": {"configuration-snippet": 'more_set_headers "X-A: b";'},
    "connection-proxy-header": {"connection-proxy-header": "keep-alive"},
    "cors-allow-credentials": {**_CORS, "cors-allow-credentials": "false"},
    "cors-allow-headers": {**_CORS, "cors-allow-headers": "X-A"},
    "cors-allow-methods": {**_CORS, "cors-allow-methods": "GET"},
    "cors-allow-origin": {**_CORS, "cors-allow-origin": "https://a.test"},
    "cors-expose-headers": {**_CORS, "cors-expose-headers": "X-A"},
    "cors-max-age": {**_CORS, "cors-max-age": "600"},
    "custom-headers": {"custom-headers": "default/headers"},
    "custom-http-errors": _ERRORS,
    "default-backend": {"default-backend": "other"},
    "denylist-source-range": {"denylist-source-range": "10.0.0.0/8"},
    "disable-proxy-intercept-errors": {**_ERRORS, "disable-proxy-intercept-errors": "true"},
    "enable-access-log": {"enable-access-log": "false"},
    "enable-cors": _CORS,
    "enable-global-auth": {"enable-global-auth": "false"},
    "enable-modsecurity": {"enable-modsecurity": "true"},
    "enable-opentelemetry": {"enable-opentelemetry": "true"},
    "enable-owasp-core-rules": {"enable-owasp-core-rules": "true"},
    "enable-rewrite-log": {"enable-rewrite-log": "true"},
    "fastcgi-index": {"fastcgi-index": "index.php"},
    "fastcgi-params-configmap": {"fastcgi-params-configmap": "default/headers"},
    "force-ssl-redirect": {"force-ssl-redirect": "true"},
    "from-to-www-redirect": {"from-to-www-redirect": "true"},
    "http2-push-preload": {"http2-push-preload": "true"},
    "limit-allowlist": {**_LIMIT, "limit-allowlist": "10.0.0.0/8"},
    "limit-burst-multiplier": {**_LIMIT, "limit-burst-multiplier": "2"},
    "limit-connections": {"limit-connections": "5"},
    "limit-rate": {"limit-rate": "512"},
    "limit-rate-after": {"limit-rate": "512", "limit-rate-after": "64"},
    "limit-rpm": {"limit-rpm": "5"},
    "limit-rps": _LIMIT,
    "limit-whitelist": {**_LIMIT, "limit-whitelist": "10.0.0.0/8"},
    "load-balance": {"load-balance": "round_robin"},
    "mirror-host": {**_MIRROR, "mirror-host": "copy.test"},
    "mirror-request-body": {**_MIRROR, "mirror-request-body": "on"},
    "mirror-target": _MIRROR,
    "modsecurity-snippet": {
        "enable-modsecurity": "true",
        "modsecurity-snippet": "SecRuleEngine On",
    },
    "modsecurity-transaction-id": {"modsecurity-transaction-id": "$request_id"},
    "opentelemetry-operation-name": {"opentelemetry-operation-name": "a"},
    "opentelemetry-trust-incoming-span": {"opentelemetry-trust-incoming-span": "true"},
    "permanent-redirect": _PERMANENT,
    "permanent-redirect-code": {**_PERMANENT, "permanent-redirect-code": "308"},
    "preserve-trailing-slash": {"preserve-trailing-slash": "true"},
    "proxy-body-size": {"proxy-body-size": "8m"},
    "proxy-buffer-size": {"proxy-buffer-size": "8k"},
    "proxy-buffering": {"proxy-buffering": "on"},
    "proxy-buffers-number": {"proxy-buffers-number": "4"},
    "proxy-busy-buffers-size": {"proxy-busy-buffers-size": "8k"},
    "proxy-connect-timeout": {"proxy-connect-timeout": "10"},
    "proxy-cookie-domain": {"proxy-cookie-domain": "a.test b.test"},
    "proxy-cookie-path": {"proxy-cookie-path": "/a /b"},
    "proxy-http-version": {"proxy-http-version": "1.0"},
    "proxy-max-temp-file-size": {"proxy-max-temp-file-size": "8k"},
    "proxy-next-upstream": {"proxy-next-upstream": "error timeout"},
    "proxy-next-upstream-timeout": {"proxy-next-upstream-timeout": "10"},
    "proxy-next-upstream-tries": {"proxy-next-upstream-tries": "2"},
    "proxy-read-timeout": {"proxy-read-timeout": "10"},
    "proxy-redirect-from": {
        "proxy-redirect-from": "http://a.test/",
        "proxy-redirect-to": "http://b.test/",
    },
    "proxy-redirect-to": {
        "proxy-redirect-from": "http://a.test/",
        "proxy-redirect-to": "http://b.test/",
    },
    "proxy-request-buffering": {"proxy-request-buffering": "off"},
    "proxy-send-timeout": {"proxy-send-timeout": "10"},
    "proxy-ssl-ciphers": {**_PASSED, "proxy-ssl-ciphers": "DEFAULT"},
    "proxy-ssl-name": _PASSED,
    "proxy-ssl-protocols": {**_PASSED, "proxy-ssl-protocols": "TLSv1.2 TLSv1.3"},
    "proxy-ssl-secret": _PASSED,
    "proxy-ssl-server-name": _PASSED,
    "proxy-ssl-verify": _PASSED,
    "proxy-ssl-verify-depth": {**_PASSED, "proxy-ssl-verify-depth": "2"},
    "relative-redirects": {"relative-redirects": "true"},
    "rewrite-target": {"rewrite-target": "/new"},
    "satisfy": {**_BASIC, "satisfy": "any"},
    "server-alias": {"server-alias": "alias.test"},
    "server-snippet": {"server-snippet": "set $a b;"},
    "service-upstream": {"service-upstream": "true"},
    "session-cookie-change-on-failure": {**_AFFINITY, "session-cookie-change-on-failure": "true"},
    "session-cookie-conditional-samesite-none": {
        **_AFFINITY,
        "session-cookie-samesite": "None",
        "session-cookie-conditional-samesite-none": "true",
    },
    "session-cookie-domain": {**_AFFINITY, "session-cookie-domain": "web.test"},
    "session-cookie-expires": {**_AFFINITY, "session-cookie-expires": "600"},
    "session-cookie-max-age": {**_AFFINITY, "session-cookie-max-age": "600"},
    "session-cookie-name": {**_AFFINITY, "session-cookie-name": "one"},
    "session-cookie-path": {**_AFFINITY, "session-cookie-path": "/"},
    "session-cookie-samesite": {**_AFFINITY, "session-cookie-samesite": "Lax"},
    "session-cookie-secure": {**_AFFINITY, "session-cookie-secure": "true"},
    "ssl-ciphers": {"ssl-ciphers": "HIGH"},
    "ssl-passthrough": {"ssl-passthrough": "true"},
    "ssl-prefer-server-ciphers": {"ssl-prefer-server-ciphers": "true"},
    "ssl-redirect": {"ssl-redirect": "false"},
    "stream-snippet": {"stream-snippet": "server { listen 1; }"},
    "temporal-redirect": _TEMPORAL,
    "temporal-redirect-code": {**_TEMPORAL, "temporal-redirect-code": "307"},
    "upstream-hash-by": {"upstream-hash-by": "$request_uri"},
    "upstream-hash-by-subset": {
        "upstream-hash-by": "$request_uri",
        "upstream-hash-by-subset": "true",
    },
    "upstream-hash-by-subset-size": {
        "upstream-hash-by": "$request_uri",
        "upstream-hash-by-subset-size": "3",
    },
    "upstream-vhost": {"upstream-vhost": "inner.test"},
    "use-port-in-redirects": {"use-port-in-redirects": "true"},
    "use-regex": {"use-regex": "true"},
    "whitelist-source-range": {"whitelist-source-range": "10.0.0.0/8"},
    "x-forwarded-prefix": {"rewrite-target": "/new", "x-forwarded-prefix": "/a"},
}

#: Values for which a problem names the annotation: it is served in part.
UNSERVED: dict[str, dict[str, str]] = {
    "affinity-canary-behavior": {**_AFFINITY, "affinity-canary-behavior": "legacy"},
    "auth-realm": SAMPLES["auth-realm"],
    "auth-signin": {**_AUTH, "auth-signin": "https://$arg_a/"},
    "auth-type": {**_BASIC, "auth-type": "digest"},
    "auth-url": {"auth-url": "https://$arg_a/check"},
    "backend-protocol": {"backend-protocol": "FCGI"},
    "configuration-snippet": {"configuration-snippet": "rewrite_by_lua_block { }"},
    "cors-allow-origin": {**_CORS, "cors-allow-origin": "null"},
    "load-balance": {"load-balance": "ip_hash"},
    "mirror-host": SAMPLES["mirror-host"],
    "mirror-target": SAMPLES["mirror-target"],
    "permanent-redirect": {"permanent-redirect": "https://$arg_a/"},
    "proxy-ssl-ciphers": {**_PASSED, "proxy-ssl-ciphers": "HIGH"},
    "proxy-ssl-protocols": {**_PASSED, "proxy-ssl-protocols": "TLSv1"},
    "rewrite-target": {"rewrite-target": "/$request_method"},
    "server-alias": {"server-alias": "~^www"},
    "temporal-redirect": {"temporal-redirect": "https://$arg_a/"},
    "upstream-hash-by": {"upstream-hash-by": "$connection"},
    "upstream-vhost": {"upstream-vhost": "inner.test:8080"},
    "x-forwarded-prefix": {"rewrite-target": "/new", "x-forwarded-prefix": "/$1"},
}
