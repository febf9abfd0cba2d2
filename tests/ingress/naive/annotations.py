"""The annotations of one Ingress: read, and judged: is the Ingress served at all, are its locations closed?"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from ingress.naive.objects import PREFIX, Object, Objects

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_CHARS = r"\-._~a-zA-Z0-9/:"
_BASIC = rf"[{_CHARS}]*"
_URL = rf"[{_CHARS},?&=]*"
_URL_WITH_VARIABLES = rf"[{_CHARS}, ?&=$]*"
_BOOL = "|".join((*_TRUE, *_FALSE))
_INT = r"[+-]?\d+"

#: A value that does not match leaves the whole Ingress unserved.
WHOLE = {
    "auth-type": r".*(?:basic|digest).*",
    "auth-secret-type": r".*(?:auth-file|auth-map).*",
    "auth-realm": rf"[{_CHARS} ]*",
    "auth-url": _URL_WITH_VARIABLES,
    "from-to-www-redirect": _BOOL,
    "relative-redirects": _BOOL,
    "temporal-redirect": _URL_WITH_VARIABLES,
    "temporal-redirect-code": _INT,
    "permanent-redirect": _URL_WITH_VARIABLES,
    "permanent-redirect-code": _INT,
    "custom-http-errors": r"(?:[4,5]\d{2},?)*",
    "default-backend": r"[a-z](?:[-a-z0-9]*[a-z0-9])?",
    "server-alias": rf"[/{_CHARS}\^$\[\](){{}}*+?|&=\\, ]*",
    "limit-rps": _INT,
    "limit-rpm": _INT,
    "limit-connections": _INT,
    "upstream-hash-by": r"[A-Za-z0-9\-_${} ]*",
}
#: A value that does not match counts as if the annotation were missing.
SINGLE = {
    "rewrite-target": rf"/?[{_CHARS}$]*",
    "app-root": rf"/?[{_CHARS}$]*",
    "use-regex": _BOOL,
    "ssl-redirect": _BOOL,
    "force-ssl-redirect": _BOOL,
    "preserve-trailing-slash": _BOOL,
    "canary": _BOOL,
    "canary-weight": _INT,
    "canary-weight-total": _INT,
    "canary-by-header": _BASIC,
    "canary-by-header-value": _BASIC,
    "canary-by-header-pattern": rf"[/{_CHARS}\^$\[\](){{}}*+?|&=\\]*",
    "canary-by-cookie": _BASIC,
    "auth-signin": _URL_WITH_VARIABLES,
    "auth-signin-redirect-param": _URL,
    "auth-request-redirect": _URL,
    "satisfy": r"\s*(?:any|all)\s*",
    "x-forwarded-prefix": rf"/?[{_CHARS}$]*",
    "upstream-vhost": rf"[/{_CHARS}\^$\[\](){{}}*+?|&=\\]*",
    "enable-global-auth": _BOOL,
    "enable-cors": _BOOL,
    "cors-allow-origin": r"(?:(?:(?:[a-z]+://)?(?:\*\.)?[A-Za-z0-9\-.]*(?::\d+)?,? *|null)+|\*)?",
    "cors-allow-methods": r"(?:[A-Za-z]+,?\s?)+",
    "cors-allow-headers": r"[A-Za-z0-9-_, ]*",
    "cors-expose-headers": r"(?:(?:[A-Za-z0-9\-_]+|\*),?\s?)+",
    "cors-max-age": _INT,
    "custom-headers": _BASIC,
    "disable-proxy-intercept-errors": _BOOL,
    "proxy-redirect-from": _URL,
    "proxy-redirect-to": _URL,
    "proxy-cookie-domain": rf"off|[{_CHARS}]+\s+[{_CHARS}]+",
    "proxy-cookie-path": rf"[{_CHARS},?&= ]*",
}
SNIPPETS = (
    "configuration-snippet",
    "server-snippet",
    "stream-snippet",
    "auth-snippet",
    "modsecurity-snippet",
)
_ALIASES = {"allowlist-source-range": "whitelist-source-range"}
_METHODS = "GET|HEAD|POST|PUT|PATCH|DELETE|CONNECT|OPTIONS|TRACE"


class Annotations:
    """Values of one Ingress."""

    def __init__(self, ingress: Object, objects: Objects) -> None:
        self.ingress = ingress
        self._objects = objects
        self._values: dict[str, str] = ingress["metadata"].get("annotations") or {}

    def raw(self, name: str) -> str:
        """The value as written, or that of an alias; "" without one."""
        value = self._values.get(PREFIX + name, "")
        return value or self._values.get(PREFIX + _ALIASES.get(name, name), "")

    def text(self, name: str, default: str = "") -> str:
        """The value, or the default if the value is missing or not valid."""
        value = self.raw(name).strip()
        if not value or (name in SINGLE and not _valid(SINGLE[name], value)):
            return default
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean."""
        value = self.raw(name)
        return value in _TRUE if value in (*_TRUE, *_FALSE) else default

    def number(self, name: str, default: int = 0) -> int:
        """An integer."""
        value = self.raw(name)
        return int(value) if re.fullmatch(_INT, value) else default

    def is_served(self) -> bool:
        """An Ingress whose annotation fails validation as a whole is not served at all (`auth-type: kerberos`)."""
        return not self._is_risky() and all(
            not self.raw(name) or _valid(pattern, self.raw(name)) for name, pattern in WHOLE.items()
        )

    def has_good_redirect(self) -> bool:
        """A temporal-redirect without http or https switches all redirects of the Ingress off, from-to-www too."""
        url = self.raw("temporal-redirect")
        return not url or urlsplit(url).scheme.startswith("http")

    def _is_risky(self) -> bool:
        """Snippets are Critical: with an annotations-risk-level below that, the Ingress is not served."""
        level = self._objects.setting("annotations-risk-level", "High")
        return level.lower() != "critical" and any(self.raw(name) for name in SNIPPETS)

    def closed(self) -> str:
        """A bad address list or a missing auth Secret closes the location with 503; the reason, or ""."""
        for name in ("denylist-source-range", "allowlist-source-range"):
            # An empty value closes under the name itself, and counts as missing under the old name.
            present = PREFIX + name in self._values or self.raw(name)
            if present and not _networks(self.raw(name)):
                return f"bad addresses in {name}"
        return self._closed_basic() or self._closed_auth_url() or self._closed_headers()

    def _closed_basic(self) -> str:
        if not self.raw("auth-type"):
            return ""
        name = self.raw("auth-secret")
        space, _, secret = name.rpartition("/")
        own = self.ingress["metadata"].get("namespace", "default")
        if not name or not _valid(_BASIC, name):
            return "no auth-secret"
        if space and space != own:
            return "auth-secret of another namespace"
        if self._objects.find("Secret", f"{own}/{secret}") is None:
            return "auth-secret is missing"
        is_map = self.raw("auth-secret-type") == "auth-map"
        if not is_map and self._objects.secret_value(f"{own}/{secret}", "auth") is None:
            return "auth-secret has no key auth"
        return ""

    def _closed_auth_url(self) -> str:
        url = self.raw("auth-url")
        if not url:
            return ""
        parts = urlsplit(url)
        if not parts.scheme or not parts.netloc or ".." in parts.netloc:
            return "bad auth-url"
        if self.raw("auth-method") and not re.fullmatch(_METHODS, self.raw("auth-method")):
            return "bad auth-method"
        if not re.fullmatch(r"[A-Za-z0-9\-_, ]*", self.raw("auth-response-headers")):
            return "bad auth-response-headers"
        return ""

    def _closed_headers(self) -> str:
        name = self.text("custom-headers")
        found = self._objects.find("ConfigMap", name)
        if not name:
            return ""
        listed = self._objects.setting("global-allowed-response-headers").split(",")
        allowed = [one.strip() for one in listed]
        if found is None or any(key not in allowed for key in found.get("data") or {}):
            return "custom-headers is missing or has a header that is not allowed"
        return ""

    def networks(self, name: str) -> list[str]:
        """The addresses and networks of a list."""
        return _networks(self.raw(name)) or []


def _valid(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value) is not None


def _networks(value: str) -> list[str] | None:
    try:
        return [
            str(ipaddress.ip_network(one.strip(), strict=False))
            for one in value.split(",")
            if value
        ]
    except ValueError:
        return None
