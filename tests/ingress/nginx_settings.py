"""The annotations of one Ingress as the controller parses them: valid, missing, ignored, fatal for the Ingress, or closing.

In: an Ingress, functions that find other objects. Out: `Settings`, or None for an Ingress that is not served. Written after
the annotation parsers of ingress-nginx 1.15.1, apart from the evaluator.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Protocol

_PREFIX = "nginx.ingress.kubernetes.io/"
_PLAIN = r"\-\.\_\~a-zA-Z0-9\/:"
_TRUTH = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


class Cluster(Protocol):
    """Where other objects are found."""

    config: dict[str, str]

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """An object."""


class Unserved(Exception):
    """The Ingress is not served."""


@dataclass
class External:
    """External authentication."""

    url: str = ""
    host: str = ""
    method: str = ""
    signin: str = ""
    signin_param: str = ""
    response_headers: list[str] = field(default_factory=list)
    request_redirect: str = ""
    always_cookie: bool = False


@dataclass
class Settings:
    """Annotations of one Ingress."""

    denied: str = ""
    aliases: list[str] = field(default_factory=list)
    realm: str | None = None  # None: no basic authentication
    password_file: str = ""
    canary: bool = False
    weight: int = 0
    weight_total: int = 100
    header: str = ""
    header_value: str = ""
    header_pattern: str = ""
    cookie: str = ""
    error_codes: list[int] = field(default_factory=list)
    default_backend: str = ""
    external: External = field(default_factory=External)
    global_auth: bool = True
    body_size: str = "1m"
    redirect_url: str = ""
    snippet: str = ""
    redirect_code: int = 0
    from_to_www: bool = False
    relative: bool = False
    target: str = ""
    ssl_redirect: bool = False
    force_ssl_redirect: bool = False
    preserve_trailing_slash: bool = False
    app_root: str = ""
    use_regex: bool = False
    satisfy: str = ""
    port_in_redirect: bool = False
    vhost: str = ""
    allow: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    prefix: str = ""
    limits: dict[str, int] = field(default_factory=dict)
    burst: int = 5
    intercepts: bool = True
    response_headers: dict[str, str] = field(default_factory=dict)
    #: None: no CORS. Else the regular expression of allowed origins, or "*", and the headers.
    cors_origins: str | None = None
    cors_headers: dict[str, str] = field(default_factory=dict)
    redirect_from: str = "off"
    redirect_to: str = "off"
    cookie_domain: str = "off"
    cookie_path: str = "off"
    unlimited: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self, ingress: dict[str, Any], cluster: Cluster) -> None:
        self.values: dict[str, str] = ingress["metadata"].get("annotations") or {}
        self.namespace = ingress["metadata"].get("namespace", "default")
        self.name = ingress["metadata"]["name"]
        self.cluster = cluster
        self.denied = ""

    def deny(self, reason: str) -> None:
        self.denied = self.denied or reason

    def get(
        self, name: str, pattern: str = r".*", *, alias: str = "", fatal: bool = False
    ) -> str | None:
        """None: missing, empty or (unless that is fatal) not valid."""
        value = self.values.get(_PREFIX + name, "") or self.values.get(_PREFIX + alias, "")
        if not value:
            return None
        if not re.fullmatch(pattern, value, re.S):
            if fatal:
                raise Unserved(name)
            return None
        return value.strip()

    def bool(self, name: str, default: bool, *, fatal: bool = False) -> bool:
        value = self.get(name, "|".join(_TRUTH), fatal=fatal)
        return default if value is None else _TRUTH[value]

    def int(self, name: str, default: int, *, fatal: bool = False) -> int:
        value = self.get(name, r"[+-]?[0-9]+", fatal=fatal)
        return default if value is None else int(value)

    def ranges(self, name: str, alias: str, default: list[str]) -> list[str]:
        if _PREFIX + name not in self.values and not self.values.get(_PREFIX + alias):
            return default
        text = self.get(name, alias=alias) or ""
        try:
            return sorted(
                {str(ipaddress.ip_network(one.strip(), False)) for one in text.split(",")}
            )
        except ValueError:
            self.deny(name)
            return default


def read_settings(ingress: dict[str, Any], cluster: Cluster) -> Settings | None:
    """Parse all annotations; None: the Ingress is not served."""
    reader = _Reader(ingress, cluster)
    try:
        return _read(reader, cluster.config)
    except Unserved:
        return None


def _read(reader: _Reader, config: dict[str, str]) -> Settings:
    found = Settings()
    if config.get("annotations-risk-level", "High").lower() != "critical":
        for name in ("configuration", "server", "stream", "auth", "modsecurity"):
            if _PREFIX + f"{name}-snippet" in reader.values:
                raise Unserved(name)
    found.aliases = sorted(
        {
            one.strip()
            for one in (
                reader.get(
                    "server-alias", rf"[{_PLAIN}\^\$\[\]\(\)\{{\}}\*\+\?\|&=\\ ,]*", fatal=True
                )
                or ""
            ).split(",")
            if one.strip()
        }
    )
    _read_password(reader, found)
    _read_canary(reader, found)
    codes = reader.get("custom-http-errors", r"(?:[45,]\d{2},?)*", fatal=True) or ""
    found.error_codes = [int(one) for one in codes.split(",") if one.strip()]
    service = reader.get("default-backend", r"[a-z]([-a-z0-9]*[a-z0-9])?", fatal=True) or ""
    if service and reader.cluster.get("Service", reader.namespace, service):
        found.default_backend = service
    _read_external(reader, found)
    found.global_auth = reader.bool("enable-global-auth", True)
    found.body_size = reader.get("proxy-body-size", r"(?i)\d+[bkmg]?") or config.get(
        "proxy-body-size", "1m"
    )
    _read_redirect(reader, found)
    if config.get("allow-snippet-annotations") == "true":
        found.snippet = reader.values.get(_PREFIX + "configuration-snippet", "")
    _read_rewrite(reader, found, config)
    found.satisfy = (reader.get("satisfy", r"\s*(any|all)\s*") or "").strip()
    found.port_in_redirect = reader.bool(
        "use-port-in-redirects", config.get("use-port-in-redirects") == "true"
    )
    found.vhost = reader.get("upstream-vhost", rf"[{_PLAIN}\^\$\[\]\(\)\{{\}}\*\+\?\|&=\\]*") or ""
    found.allow = reader.ranges(
        "allowlist-source-range",
        "whitelist-source-range",
        _listed(config, "whitelist-source-range"),
    )
    found.deny = reader.ranges(
        "denylist-source-range", "", _listed(config, "denylist-source-range")
    )
    found.prefix = reader.get("x-forwarded-prefix", rf"/?[{_PLAIN}$]*") or ""
    for name in ("limit-rps", "limit-rpm", "limit-connections"):
        if (limit := reader.int(name, 0, fatal=True)) > 0:
            found.limits[name] = limit
    reader.get("upstream-hash-by", r"[A-Za-z0-9\-_${} ]*", fatal=True)
    found.burst = reader.int("limit-burst-multiplier", 5)
    exempt = reader.get("limit-allowlist", alias="limit-whitelist") or ""
    found.unlimited = [one.strip() for one in exempt.split(",") if one.strip()]
    found.intercepts = not reader.bool("disable-proxy-intercept-errors", False)
    url = rf"[{_PLAIN},\?&= ]*"
    domain = rf"(off|[{_PLAIN}]+\s+[{_PLAIN}]+)"
    for name, pattern in (
        ("redirect-from", url),
        ("redirect-to", url),
        ("cookie-domain", domain),
        ("cookie-path", url),
    ):
        value = reader.get(f"proxy-{name}", pattern) or config.get(f"proxy-{name}", "off")
        setattr(found, name.replace("-", "_"), value)
    _read_cors(reader, found)
    _read_response_headers(reader, found, config)
    found.denied = reader.denied
    return found


def _read_response_headers(reader: _Reader, found: Settings, config: dict[str, str]) -> None:
    named = reader.get("custom-headers", rf"[{_PLAIN}]*")
    if named is None:
        return
    namespace, _, name = named.rpartition("/")
    headers = (reader.cluster.get("ConfigMap", namespace, name) or {}).get("data")
    allowed = [one.strip() for one in config.get("global-allowed-response-headers", "").split(",")]
    if headers is None or not set(headers) <= set(allowed):
        return reader.deny("custom-headers")
    found.response_headers = headers


def _read_cors(reader: _Reader, found: Settings) -> None:
    if not reader.bool("enable-cors", False):
        return
    listed = reader.get(
        "cors-allow-origin",
        r"((((([a-z]+://)?(\*\.)?[A-Za-z0-9\-.]*(:\d+)?,? ?)|null)+)|\*)?",
    )
    origins = [one.strip() for one in (listed or "*").split(",") if one.strip()]
    valid = [
        one
        for one in origins
        if re.fullmatch(r"([a-z]+://(\*\.)?[A-Za-z0-9\-.]*(:\d+)?|\*|null)?", one)
    ]
    if "*" in valid:
        found.cors_origins = "*"
    elif valid:
        patterns = [re.escape(one).replace(r"\*", r"[A-Za-z0-9\-]+", 1) for one in valid]
        found.cors_origins = "(" + "|".join(f"({one})" for one in patterns) + ")$"
    headers = {
        "Access-Control-Allow-Methods": reader.get("cors-allow-methods", r"([A-Za-z]+,?\s?)+")
        or "GET, PUT, POST, DELETE, PATCH, OPTIONS",
        "Access-Control-Allow-Headers": reader.get("cors-allow-headers", r"[A-Za-z0-9-_, ]*")
        or "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,"
        "Authorization",
        "Access-Control-Max-Age": str(reader.int("cors-max-age", 1728000)),
    }
    if reader.bool("cors-allow-credentials", True):
        headers["Access-Control-Allow-Credentials"] = "true"
    if exposed := reader.get("cors-expose-headers", r"(([A-Za-z0-9\-_]+|\*),?\s?)+"):
        headers["Access-Control-Expose-Headers"] = exposed
    found.cors_headers = headers


def _listed(config: dict[str, str], name: str) -> list[str]:
    return sorted(one.strip() for one in config.get(name, "").split(",") if one.strip())


def _read_password(reader: _Reader, found: Settings) -> None:
    kind = reader.get("auth-type", r".*(basic|digest).*", fatal=True)
    if kind is None:
        return
    secret_type = reader.get("auth-secret-type", r".*(auth-file|auth-map).*", fatal=True)
    named = reader.get("auth-secret", rf"[{_PLAIN}]*")
    if named is None or named.count("/") > 1:
        return reader.deny("auth-secret")
    namespace, _, name = named.rpartition("/")
    if namespace and namespace != reader.namespace:
        return reader.deny("namespace of auth-secret")
    secret = reader.cluster.get("Secret", reader.namespace, name)
    if secret is None:
        return reader.deny("auth-secret is missing")
    realm = reader.get("auth-realm", rf"[{_PLAIN} ]*", fatal=True)
    data = {key: text.encode() for key, text in (secret.get("stringData") or {}).items()}
    if secret_type == "auth-map":
        lines = [f"{user}:{password.decode()}" for user, password in data.items()]
        found.password_file = "\n".join(lines) + "\n"
    elif "auth" not in data:
        return reader.deny("auth-secret without auth")
    else:
        found.password_file = data["auth"].decode()
    found.realm = realm or ""


def _read_canary(reader: _Reader, found: Settings) -> None:
    if not reader.bool("canary", False):
        return
    found.canary = True
    found.weight = reader.int("canary-weight", 0)
    found.weight_total = reader.int("canary-weight-total", 100)
    found.header = reader.get("canary-by-header", rf"[{_PLAIN}]*") or ""
    found.header_value = reader.get("canary-by-header-value", rf"[{_PLAIN}]*") or ""
    found.header_pattern = (
        reader.get("canary-by-header-pattern", rf"[{_PLAIN}\^\$\[\]\(\)\{{\}}\*\+\?\|&=\\]*") or ""
    )
    found.cookie = reader.get("canary-by-cookie", rf"[{_PLAIN}]*") or ""


def _read_external(reader: _Reader, found: Settings) -> None:
    url = reader.get("auth-url", rf"[{_PLAIN}, \?&=\$]*", fatal=True)
    if url is None:
        return
    parts = urllib.parse.urlsplit(url)
    if not parts.scheme or not parts.netloc or ".." in parts.netloc:
        return reader.deny("auth-url")
    method = reader.get("auth-method") or ""
    if method and method not in "GET HEAD POST PUT PATCH DELETE CONNECT OPTIONS TRACE".split():
        return reader.deny("auth-method")
    headers = reader.get("auth-response-headers") or ""
    if not re.fullmatch(r"[A-Za-z0-9\-_, ]*", headers):
        return reader.deny("auth-response-headers")
    found.external = External(
        url=url,
        host=parts.hostname or "",
        method=method,
        signin=reader.get("auth-signin", rf"[{_PLAIN}, \?&=\$]*") or "",
        signin_param=reader.get("auth-signin-redirect-param", rf"[{_PLAIN},\?&=]*") or "",
        response_headers=[one.strip() for one in headers.split(",") if one.strip()],
        request_redirect=reader.get("auth-request-redirect", rf"[{_PLAIN},\?&=]*") or "",
        always_cookie=reader.bool("auth-always-set-cookie", False),
    )


def _read_redirect(reader: _Reader, found: Settings) -> None:
    from_to_www = reader.bool("from-to-www-redirect", False, fatal=True)
    relative = reader.bool("relative-redirects", False, fatal=True)
    for kind, last, default in (("temporal", 307, 302), ("permanent", 308, 301)):
        url = reader.get(f"{kind}-redirect", rf"[{_PLAIN}, \?&=\$]*", fatal=True)
        code = reader.int(f"{kind}-redirect-code", 0, fatal=True)
        if url is None:
            continue
        if kind == "temporal" and not urllib.parse.urlsplit(url).scheme.startswith("http"):
            return
        found.redirect_url = url
        found.redirect_code = code if 300 <= code <= last else default
        break
    found.from_to_www, found.relative = from_to_www, relative


def _read_rewrite(reader: _Reader, found: Settings, config: dict[str, str]) -> None:
    found.target = reader.get("rewrite-target", rf"/?[{_PLAIN}\$]*") or ""
    for name, default in (
        ("ssl-redirect", "true"),
        ("force-ssl-redirect", "false"),
        ("preserve-trailing-slash", "false"),
    ):
        value = reader.bool(name, _TRUTH[config.get(name, default)])
        setattr(found, name.replace("-", "_"), value)
    found.use_regex = reader.bool("use-regex", False)
    root = reader.get("app-root", rf"/?[{_PLAIN}\$]*") or ""
    found.app_root = root if root.startswith("/") else ""
