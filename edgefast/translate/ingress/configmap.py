"""ConfigMap: the settings of ingress-nginx's ConfigMap that apply to all Ingresses.

In: a ConfigMap, or None. Out: `Globals` with the defaults of ingress-nginx 1.15.1, and a note for each key that edgefast does not
serve. A key that decides access and is not served closes all locations.
Source: ingress-nginx internal/ingress/controller/config/config.go.
Must never: let a value that is not valid open access.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgefast.api.core.configmap import ConfigMap
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.ingress.auth_url import AuthUrl
from edgefast.translate.ingress.values import is_bool, is_integer, read_range

#: The ConfigMap that the charts of ingress-nginx install.
DEFAULT_NAME = "ingress-nginx-controller"

#: KiB: the most of limit-rate and limit-rate-after, as in a BackendTrafficPolicy.
MOST_RATE = 1 << 30

_ACME = "/.well-known/acme-challenge"
_MIB = 1024 * 1024

#: Keys that decide access and that edgefast does not serve; all locations answer 503.
_CLOSING = {
    "block-referers": "it refuses requests by their Referer",
    "block-user-agents": "it refuses requests by their User-Agent",
    "enable-modsecurity": "it inspects requests",
    "global-auth-snippet": "it contains directives of nginx",
    "http-snippet": "it contains directives of nginx",
    "location-snippet": "it contains directives of nginx",
    "main-snippet": "it contains directives of nginx",
    "server-snippet": "it contains directives of nginx",
    "use-proxy-protocol": "it determines the client address; use EdgeProxy spec.clientAddress.proxyProtocol",
}
#: Keys without an effect on answers of edgefast, or whose effect is a default of edgefast.
_HARMLESS = frozenset(
    {
        "access-log-path",
        "allow-cross-namespace-resources",
        "annotation-value-word-blocklist",
        "client-body-buffer-size",
        "client-header-buffer-size",
        "disable-access-log",
        "enable-access-log-for-default-backend",
        "enable-multi-accept",
        "error-log-level",
        "error-log-path",
        "generate-request-id",
        "hide-headers",
        "http2-max-concurrent-streams",
        "keep-alive",
        "keep-alive-requests",
        "large-client-header-buffers",
        "log-format-escape-json",
        "log-format-upstream",
        "map-hash-bucket-size",
        "max-worker-connections",
        "max-worker-open-files",
        "proxy-buffer-size",
        "proxy-buffering",
        "proxy-buffers-number",
        "proxy-busy-buffers-size",
        "proxy-headers-hash-bucket-size",
        "proxy-headers-hash-max-size",
        "proxy-request-buffering",
        "reuse-port",
        "server-name-hash-bucket-size",
        "server-name-hash-max-size",
        "server-tokens",
        "ssl-session-cache",
        "ssl-session-cache-size",
        "ssl-session-tickets",
        "ssl-session-timeout",
        "upstream-keepalive-connections",
        "upstream-keepalive-requests",
        "upstream-keepalive-time",
        "upstream-keepalive-timeout",
        "use-http2",
        "variables-hash-bucket-size",
        "variables-hash-max-size",
        "worker-cpu-affinity",
        "worker-processes",
        "worker-serial-reloads",
        "worker-shutdown-timeout",
    }
)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is not served as it is written; `name` is of an annotation or of a key."""

    name: str
    message: str
    hint: str = ""
    error: bool = False  # False: a warning
    reason: Word = "Invalid"


class ResponseValues(msgspec.Struct, frozen=True, kw_only=True):
    """proxy-redirect-from, -to, proxy-cookie-domain and -path; "off" is each default of ingress-nginx."""

    redirect_from: str = "off"
    redirect_to: str = "off"
    cookie_domain: str = "off"
    cookie_path: str = "off"


class Globals(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all Ingresses; the defaults are those without a ConfigMap."""

    closed: str = ""  # the key that closes all locations, "" if none does
    allow_snippets: bool = False
    critical: bool = False  # annotations of the highest risk are allowed
    ssl_redirect: bool = True
    force_ssl_redirect: bool = False
    preserve_trailing_slash: bool = False
    redirect_code: int = 308
    hsts: bool = True
    hsts_max_age: int = 31_536_000
    hsts_subdomains: bool = True
    hsts_preload: bool = False
    body_size: int = _MIB  # bytes; 0: no limit
    connect_timeout: int = 5  # seconds
    read_timeout: int = 60
    send_timeout: int = 60
    tries: int = 3
    retry_timeout: int = 0  # seconds
    load_balance: str = ""
    rate: int = 0  # limit-rate: KiB a second; 0: no limit
    rate_after: int = 0  # KiB
    forwarded_headers: bool = False
    forwarded_address: bool = False  # the client's address is that of X-Forwarded-For
    full_forwarded_for: bool = False  # x-forwarded-for contains all addresses
    original_uri: bool = False  # backends get x-original-uri
    real_ip: tuple[str, ...] = ("0.0.0.0/0",)
    auth: AuthUrl | None = None  # global-auth-url
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    no_auth: tuple[str, ...] = (_ACME,)
    no_redirect: tuple[str, ...] = (_ACME,)
    response_headers: tuple[str, ...] = ()  # that custom-headers may set
    service_upstream: bool = False
    limit_req_status: int = 503
    limit_conn_status: int = 503
    error_codes: tuple[int, ...] = ()  # custom-http-errors
    intercepts_errors: bool = True
    responses: ResponseValues = ResponseValues()
    port_in_redirects: bool = False
    relative_redirects: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def strict_transport(self) -> str:
        """Return the value of Strict-Transport-Security, "" without the header."""
        if not self.hsts:
            return ""
        parts = [f"max-age={self.hsts_max_age}"]
        parts += ["includeSubDomains"] if self.hsts_subdomains else []
        parts += ["preload"] if self.hsts_preload else []
        return "; ".join(parts)


def parse_size(text: str) -> int | None:
    """Return a size of nginx in bytes, None if it is not one (ngx_parse_offset)."""
    units = {"k": 1024, "m": _MIB, "g": 1024 * _MIB}
    text = text.strip().lower()
    digits, unit = (text[:-1], units.get(text[-1:], 0)) if text[-1:].isalpha() else (text, 1)
    if not unit or not digits.isdecimal() or len(digits) > 12:
        return None
    return int(digits) * unit


def read_globals(found: ConfigMap | None) -> Globals:
    """Return the settings of a ConfigMap."""
    if found is None:
        return Globals()
    return _Reader(found.data).read()


class _Reader:
    def __init__(self, data: Mapping[str, str]) -> None:
        self._data = data
        self._seen: set[str] = set()
        self._notes: list[Note] = []
        self._closed = ""

    def read(self) -> Globals:
        plain = Globals()
        forwarded = self._flag("use-forwarded-headers", plain.forwarded_headers)
        closed_by = self._read_closing()
        made = Globals(
            allow_snippets=self._flag("allow-snippet-annotations", plain.allow_snippets),
            critical=self._text("annotations-risk-level", "High").lower() == "critical",
            ssl_redirect=self._flag("ssl-redirect", plain.ssl_redirect),
            force_ssl_redirect=self._flag("force-ssl-redirect", plain.force_ssl_redirect),
            preserve_trailing_slash=self._flag(
                "preserve-trailing-slash", plain.preserve_trailing_slash
            ),
            redirect_code=self._code("http-redirect-code", plain.redirect_code),
            hsts=self._flag("hsts", plain.hsts),
            hsts_max_age=self._number("hsts-max-age", plain.hsts_max_age),
            hsts_subdomains=self._flag("hsts-include-subdomains", plain.hsts_subdomains),
            hsts_preload=self._flag("hsts-preload", plain.hsts_preload),
            body_size=self._size("proxy-body-size", plain.body_size),
            connect_timeout=self._number("proxy-connect-timeout", plain.connect_timeout),
            read_timeout=self._number("proxy-read-timeout", plain.read_timeout),
            send_timeout=self._number("proxy-send-timeout", plain.send_timeout),
            tries=self._number("proxy-next-upstream-tries", plain.tries),
            retry_timeout=self._number("proxy-next-upstream-timeout", plain.retry_timeout),
            rate=min(self._number("limit-rate", plain.rate), MOST_RATE),
            rate_after=min(self._number("limit-rate-after", plain.rate_after), MOST_RATE),
            load_balance=self._text("load-balance", plain.load_balance),
            forwarded_headers=forwarded,
            forwarded_address=self._flag("enable-real-ip", plain.forwarded_address) or forwarded,
            full_forwarded_for=self._flag("compute-full-forwarded-for", plain.full_forwarded_for),
            original_uri=self._flag("proxy-add-original-uri-header", plain.original_uri),
            real_ip=self._ranges("proxy-real-ip-cidr") or plain.real_ip,
            auth=self._auth(),
            allow=self._ranges("whitelist-source-range"),
            deny=self._ranges("denylist-source-range"),
            block=self._ranges("block-cidrs"),
            no_auth=self._list("no-auth-locations", plain.no_auth),
            no_redirect=self._list("no-tls-redirect-locations", plain.no_redirect),
            response_headers=self._list("global-allowed-response-headers", ()),
            service_upstream=self._flag("service-upstream", plain.service_upstream),
            limit_req_status=self._error_code("limit-req-status-code", plain.limit_req_status),
            limit_conn_status=self._error_code("limit-conn-status-code", plain.limit_conn_status),
            error_codes=self._codes("custom-http-errors"),
            intercepts_errors=not self._flag("disable-proxy-intercept-errors", False),
            responses=ResponseValues(
                redirect_from=self._text("proxy-redirect-from", "") or "off",
                redirect_to=self._text("proxy-redirect-to", "") or "off",
                cookie_domain=self._text("proxy-cookie-domain", "") or "off",
                cookie_path=self._text("proxy-cookie-path", "") or "off",
            ),
            port_in_redirects=self._flag("use-port-in-redirects", plain.port_in_redirects),
            relative_redirects=self._flag("relative-redirects", plain.relative_redirects),
        )
        self._note_validation()
        self._note_others()
        return msgspec.structs.replace(
            made, closed=closed_by or self._closed, notes=tuple(self._notes)
        )

    def _read_closing(self) -> str:
        closed = ""
        for name, why in _CLOSING.items():
            value = self._text(name, "")
            if not value or value in ("false", "[]"):
                continue
            closed = closed or name
            message = f"{why} and is not served; all locations answer 503"
            self._notes.append(Note(name=name, message=message, error=True, reason="NotSupported"))
        return closed

    def _auth(self) -> AuthUrl | None:
        """Read global-auth-url; what is not valid of it closes the locations (auth_url.py)."""
        url = self._text("global-auth-url", "")
        method = self._text("global-auth-method", "")
        headers = self._list("global-auth-response-headers", ())
        signin = self._text("global-auth-signin", "")
        parameter = self._text("global-auth-signin-redirect-param", "") or "rd"
        redirect = self._text("global-auth-request-redirect", "")
        always = self._flag("global-auth-always-set-cookie", False)
        self._seen.update(("global-auth-cache-duration", "global-auth-cache-key"))
        if not url:
            return None
        return AuthUrl(
            name="global-auth-url",
            url=url,
            method=method,
            response_headers=headers,
            signin=signin,
            signin_parameter=parameter,
            request_redirect=redirect,
            always_set_cookie=always,
        )

    def _note_validation(self) -> None:
        if not self._flag("enable-annotation-validations", True):
            message = "no effect: edgefast checks the values of annotations; it serves variables in redirects and in the path of auth-url"
            note = Note(name="enable-annotation-validations", message=message)
            self._notes.append(msgspec.structs.replace(note, reason="NotSupported"))

    def _note_others(self) -> None:
        for name in sorted(self._data.keys() - self._seen - _HARMLESS):
            message = "edgefast does not serve this setting of ingress-nginx; it has no effect"
            self._notes.append(Note(name=name, message=message, reason="NotSupported"))

    def _text(self, name: str, default: str) -> str:
        self._seen.add(name)
        return self._data.get(name, default).strip()

    def _invalid(self, name: str, expected: str, default: object) -> None:
        message = f"not valid (expected {expected}); edgefast uses {default}, as ingress-nginx does"
        self._notes.append(Note(name=name, message=message))

    def _flag(self, name: str, default: bool) -> bool:
        value = self._text(name, "")
        if not value:
            return default
        if not is_bool(value):
            self._invalid(name, "true or false", str(default).lower())
            return default
        return value in ("1", "t", "T", "TRUE", "true", "True")

    def _number(self, name: str, default: int) -> int:
        value = self._text(name, "")
        if not value:
            return default
        if not is_integer(value) or int(value) < 0:
            self._invalid(name, "a number", default)
            return default
        return int(value)

    def _code(self, name: str, default: int) -> int:
        found = self._number(name, default)
        if found not in (301, 302, 307, 308):
            self._invalid(name, "301, 302, 307 or 308", default)
            return default
        return found

    def _error_code(self, name: str, default: int) -> int:
        found = self._number(name, default)
        if not 400 <= found <= 599:
            self._invalid(name, "400 to 599", default)
            return default
        return found

    def _size(self, name: str, default: int) -> int:
        value = self._text(name, "")
        if not value:
            return default
        found = parse_size(value)
        if found is None:
            self._invalid(name, "a size such as 8m", default)
            return default
        return found

    def _list(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        if name not in self._data:
            self._seen.add(name)
            return default
        parts = (one.strip() for one in self._text(name, "").split(","))
        return tuple(one for one in parts if one)

    def _codes(self, name: str) -> tuple[int, ...]:
        """Read a list of statuses from 300 to 599; others have no effect, as in ingress-nginx."""
        found = []
        for one in self._list(name, ()):
            if one.isdecimal() and len(one) == 3 and 300 <= int(one) <= 599:
                found.append(int(one))
            else:
                message = "a status is not valid (expected 300 to 599); edgefast ignores it, as ingress-nginx does"
                self._notes.append(Note(name=name, message=message))
        return tuple(sorted(set(found)))

    def _ranges(self, name: str) -> tuple[str, ...]:
        """Read a list of ranges; one that is not valid closes all locations."""
        found = []
        for one in self._list(name, ()):
            known = read_range(one)
            if known is None:
                message = "a range is not valid; all locations answer 503"
                self._notes.append(Note(name=name, message=message, error=True))
                self._closed = name
            else:
                found.append(known)
        return tuple(sorted(found))
