"""Annotations: the annotations of one Ingress as one validated struct, with the effect of each invalid one.

In: the annotations of an Ingress, the settings of the ConfigMap. Out: `Annotations`. An invalid annotation has one of three
effects, as in ingress-nginx: the default applies, the locations answer 503 (`closed`), or the Ingress is not served (`refused`).
Annotations that edgefast does not serve, and unknown ones, become notes.
Source: ingress-nginx internal/ingress/annotations (one package for each group).
Must never: look up an object, or show the value of a snippet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from edgefast.api.edge.load_balancer import LoadBalancer
from edgefast.api.edge.response_rewrite import ResponseRewrite
from edgefast.api.limits import MAX_SHOWN_NAME
from edgefast.api.model.regex import check_regex
from edgefast.diagnostics.problem import did_you_mean
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.ingress.annotation_fields import (
    Affinity,
    Annotations,
    BasicAuth,
    Canary,
    Cors,
    Redirection,
)
from edgefast.translate.ingress.auth_url import AuthUrl
from edgefast.translate.ingress.backend_tls import BackendTls, read_backend_tls
from edgefast.translate.ingress.balancing import ALGORITHMS, translate_balancing
from edgefast.translate.ingress.client_tls import ClientTls, read_client_tls
from edgefast.translate.ingress.configmap import Globals, Note, parse_size
from edgefast.translate.ingress.error_annotations import (
    ErrorPages,
    read_codes,
    read_default_backend,
)
from edgefast.translate.ingress.known import KNOWN
from edgefast.translate.ingress.limits import DEFAULT_MULTIPLIER, MAX_EXEMPT, Limits
from edgefast.translate.ingress.redirect_variables import has_variables, translate_location
from edgefast.translate.ingress.response_rewrite import read_responses, translate_responses
from edgefast.translate.ingress.snippet import (
    Refused,
    Snippet,
    read_server_snippet,
    read_snippet,
)
from edgefast.translate.ingress.unserved import CLOSING, CRITICAL, DIFFERS, HARMLESS, LOST, PARTS
from edgefast.translate.ingress.values import (
    AUTH_PARTS,
    BASIC,
    HEADERS,
    METHODS,
    PATH_WITH_GROUPS,
    REGEX,
    SIZE,
    URL,
    URL_SPACED,
    URL_WITH_VARIABLES,
    WORDS,
    Missing,
    NoValue,
    Rejected,
    Values,
    is_addresses,
    is_integer,
    is_server_name,
    one_of,
    pattern,
    read_range,
)

__all__ = [
    "Affinity",
    "Annotations",
    "BasicAuth",
    "Canary",
    "Cors",
    "Redirection",
    "read_annotations",
]

_T = TypeVar("_T")

#: Unknown annotations of one Ingress that are reported one by one.
_MOST_UNKNOWN = 32

#: Texts of notes about values that ingress-nginx serves.
_LESS = re.compile(r"not served|is always|have the|decide access|\bno effect: edgefast")
_PROTOCOLS = ("auto_http", "http", "https", "grpc", "grpcs", "fcgi")
_ORIGINS = pattern(r"^((((([a-z]+://)?(\*\.)?[A-Za-z0-9\-.]*(:\d+)?,?)|null)+)|\*)?$", spaces=True)
_ORIGIN = re.compile(r"([a-z]+://(\*\.)?[A-Za-z0-9\-.]*(:\d+)?|\*|null)?")
_METHODS = pattern(r"^([A-Za-z]+,?\s?)+$", spaces=True)
_EXPOSED = pattern(r"^(([A-Za-z0-9\-\_]+|\*),?\s?)+$", spaces=True)
#: Methods of an authorization call (authreq/main.go).
_CORS_METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_CORS_HEADERS = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
_CORS_MAX_AGE = 1_728_000
#: The bound of these two keeps the search of a long value short.
_AGE = pattern(r"^(?=.{0,64}$)(0|.*-?[1-9]\d*$)")
_NEXT = pattern(
    r"^((error|timeout|invalid_header|http_500|http_502|http_503|http_504|http_403|http_404|http_429|non_idempotent|off)\s?)+$"
)
_AUTH_TYPE = pattern(r"basic|digest", spaces=True)
_SWITCH = one_of("on", "off")
_EXPIRES = pattern(r"^(?=.{0,64}$)(0|.*-?[1-9]\d*$)", spaces=True)
_DOMAIN = re.compile(r"(?=.{1,253}$)\.?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?")
_SAME_SITE = one_of("none", "lax", "strict", folded=True)
_CANARY_BEHAVIOR = one_of("sticky", "legacy")
_HASH_KEY = pattern(r"^[A-Za-z0-9\-_${}]*$", spaces=True)
_SECRET_TYPE = pattern(r"auth-file|auth-map", spaces=True)


def read_annotations(
    annotations: Mapping[str, str], settings: Globals, namespace: str = ""
) -> Annotations:
    """Return the annotations of an Ingress; those of other projects are left out."""
    return _Reader(annotations, settings, namespace).read()


class _Reader:
    def __init__(self, annotations: Mapping[str, str], settings: Globals, namespace: str) -> None:
        self._namespace = namespace
        self._values = Values(annotations)
        self._settings = settings
        self._notes: list[Note] = []
        self._refused = ""
        self._closed: dict[str, None] = {}
        self._closes_host = False
        self._closes_no_auth = False
        self._snippet = Snippet()

    def read(self) -> Annotations:
        values, settings = self._values, self._settings
        self._check_snippets()
        redirection, www, relative = self._redirects()
        allow, deny, own_lists = self._addresses()
        tries, codes = self._next_upstream()
        made = Annotations(
            rewrite=self._or("", values.text, "rewrite-target", PATH_WITH_GROUPS),
            use_regex=self._or(False, values.flag, "use-regex"),
            ssl_redirect=self._or(settings.ssl_redirect, values.flag, "ssl-redirect"),
            force_ssl_redirect=self._or(
                settings.force_ssl_redirect, values.flag, "force-ssl-redirect"
            ),
            preserve_trailing_slash=self._or(
                settings.preserve_trailing_slash, values.flag, "preserve-trailing-slash"
            ),
            app_root=self._app_root(),
            redirection=redirection,
            from_to_www=www,
            aliases=self._aliases(),
            canary=self._canary(),
            allow=allow or self._snippet.allow,
            deny=deny or self._snippet.deny,
            own_lists=own_lists or bool(self._snippet.allow or self._snippet.deny),
            basic=self._basic(),
            auth=self._auth_url(),
            satisfy_any=self._or("", values.text, "satisfy", one_of("any", "all")) == "any",
            cors=self._cors(),
            body_size=self._body_size(),
            read_timeout=self._or(settings.read_timeout, values.number, "proxy-read-timeout"),
            send_timeout=self._or(settings.send_timeout, values.number, "proxy-send-timeout"),
            connect_timeout=self._connect_timeout(),
            retry_timeout=max(
                0,
                self._or(settings.retry_timeout, values.number, "proxy-next-upstream-timeout"),
            ),
            tries=tries,
            retry_codes=codes,
            affinity=self._affinity(),
            limits=self._limits(),
            balancer=self._balancer(),
            upstream_vhost=self._required("upstream-vhost", is_server_name),
            protocol=self._protocol(),
            verifies_backend=self._or("off", values.text, "proxy-ssl-verify", _SWITCH) == "on",
            backend_tls=self._backend_tls(),
            passthrough=self._or(False, values.flag, "ssl-passthrough"),
            client_tls=self._client_tls(),
            custom_headers=self._or("", values.text, "custom-headers", BASIC),
            mirror=self._mirror(),
            prefix_header=self._prefix_header(),
            service_upstream=self._or(settings.service_upstream, values.flag, "service-upstream"),
            pages=self._pages(),
            snippet=self._snippet,
            responses=self._responses(),
            port_in_redirects=self._or(
                settings.port_in_redirects, values.flag, "use-port-in-redirects"
            ),
            relative_redirects=relative or settings.relative_redirects,
        )
        self._note_others(made)
        return msgspec.structs.replace(
            made,
            refused=self._refused,
            closed=("ConfigMap",) if settings.closed else tuple(self._closed),
            closes_host=self._closes_host,
            closes_no_auth=self._closes_no_auth,
            notes=tuple(self._notes),
        )

    # --- effects of what is not valid ---

    def _or(self, default: _T, read: Callable[..., _T], name: str, *rest: object) -> _T:
        """Read a value; ingress-nginx uses the default in place of one that is not valid."""
        try:
            return read(name, *rest)
        except Missing:
            return default
        except NoValue:
            shown = str(default).lower() if isinstance(default, bool) else str(default)
            with_default = f"uses {shown}" if shown else "ignores it"
            self._warn(name, f"not valid; edgefast {with_default}, as ingress-nginx does")
            return default

    def _required(self, name: str, check: Callable[[str], bool]) -> str:
        """Read a text; ingress-nginx serves no Ingress that has one which is not valid."""
        try:
            return self._values.text(name, check)
        except Rejected:
            self._refuse(name)
        except NoValue:
            pass
        return ""

    def _refuse(self, name: str, message: str = "not valid", hint: str = "") -> None:
        self._refused = self._refused or name
        effect = "the Ingress is not served, as ingress-nginx serves no such Ingress"
        self._note(name, f"{message}; {effect}", hint)

    def _close(self, name: str, message: str, hint: str = "") -> None:
        self._closed[name] = None
        self._note(name, f"{message}; its locations answer 503", hint)

    def _close_host(self, name: str, message: str) -> None:
        self._close(name, message)
        self._closes_host = True

    def _note(self, name: str, message: str, hint: str = "") -> None:
        self._add(Note(name=name, message=message, hint=hint, error=True))

    def _warn(self, name: str, message: str, hint: str = "") -> None:
        self._add(Note(name=name, message=message, hint=hint))

    def _add(self, note: Note) -> None:
        """Note a value; the reason is NotSupported where edgefast serves less than ingress-nginx."""
        less = _LESS.search(note.message) is not None
        reason: Word = "NotSupported" if less and note.name != self._refused else "Invalid"
        if note.name not in KNOWN:
            reason = "Ignored"
        self._notes.append(msgspec.structs.replace(note, reason=reason))

    # --- groups ---

    def _check_snippets(self) -> None:
        for name in CRITICAL:
            self._values.seen.add(name)
            if not self._values.has(name):
                continue
            if not self._settings.critical:
                message = "needs annotations-risk-level Critical in the ConfigMap of ingress-nginx"
                self._refuse(name, message, "remove the annotation")
            elif not self._settings.allow_snippets:
                message = (
                    "ingress-nginx ignores it without allow-snippet-annotations; so does edgefast"
                )
                self._warn(name, message)
            elif name == "configuration-snippet":
                self._read_snippet(name)
            elif name == "server-snippet":
                refused = read_server_snippet(self._snippet_text(name))
                self._closes_host = self._closes_host or bool(refused)
                self._note_refused(name, refused)
            else:
                self._close(name, "directives of nginx are not served and can decide access")

    def _snippet_text(self, name: str) -> str:
        return self._or("", self._values.text, name, lambda _: True)

    def _read_snippet(self, name: str) -> None:
        self._snippet = found = read_snippet(self._snippet_text(name))
        settings = self._settings
        lists = ("allowlist-source-range", "whitelist-source-range", "denylist-source-range")
        others = any(self._values.has(one) for one in lists)
        others = others or bool(settings.allow or settings.deny or settings.block)
        if (found.allow or found.deny) and others:
            message = "allow and deny beside other lists of addresses are not served"
            self._close(name, message, "write one list of addresses")
        self._note_refused(name, found.refused)

    def _note_refused(self, name: str, refused: Iterable[Refused]) -> None:
        for one in refused:
            what = f"{one.directive} " if one.directive else ""
            message = f"line {one.line}: {what}is not served; {one.effect}"
            fix = one.fix or (
                "remove the line, or write an object of edgefast" if one.closes else ""
            )
            if one.closes:
                self._closed[name] = None
                self._note(name, message, fix)
            else:
                self._warn(name, message, fix)

    def _app_root(self) -> str:
        found = self._or("", self._values.text, "app-root", PATH_WITH_GROUPS)
        if not found:
            return ""
        if not found.startswith("/"):
            self._warn(
                "app-root", "not an absolute path; edgefast ignores it, as ingress-nginx does"
            )
            return ""
        if "$" in found:
            self._note("app-root", "variables of nginx are not served; / is not redirected")
            return ""
        return found

    def _prefix_header(self) -> str:
        found = self._required("x-forwarded-prefix", PATH_WITH_GROUPS)
        if "$" in found:
            message = (
                "groups and variables of nginx are not served; backends get no X-Forwarded-Prefix"
            )
            self._warn("x-forwarded-prefix", message)
            return ""
        return found

    def _redirects(self) -> tuple[Redirection | None, bool, bool]:
        """Return the redirect, from-to-www-redirect and relative-redirects."""
        values = self._values
        try:
            www = self._flag_or_refuse("from-to-www-redirect")
            relative = self._flag_or_refuse("relative-redirects")
            temporal = self._text_or_refuse("temporal-redirect")
            if temporal:
                code = self._code("temporal-redirect-code", 300, 307, 302)
                if not temporal.startswith("http"):
                    message = "not a URL of http or https; edgefast ignores all redirects of the Ingress, as ingress-nginx does"
                    self._warn("temporal-redirect", message)
                    return None, False, False
                values.seen.update(("permanent-redirect", "permanent-redirect-code"))
                return self._redirection("temporal-redirect", temporal, code), www, relative
            permanent = self._text_or_refuse("permanent-redirect")
            code = self._code("permanent-redirect-code", 300, 308, 301)
        except NoValue:
            return None, False, False
        values.seen.add("temporal-redirect-code")
        if not permanent:
            return None, www, relative
        return self._redirection("permanent-redirect", permanent, code), www, relative

    def _redirection(self, name: str, url: str, code: int) -> Redirection:
        """Return a redirect; one with variables that are not served is refused, as ingress-nginx refuses all variables."""
        template = ""
        if has_variables(url):
            template, wrong = translate_location(url)
            if not wrong and code not in (301, 302, 303, 307, 308):
                wrong = f"status {code} is not served with variables"
            if wrong:
                self._refuse(name, wrong)
        return Redirection(name=name, url=url, code=code, template=template)

    def _flag_or_refuse(self, name: str) -> bool:
        try:
            return self._values.flag(name)
        except Missing:
            return False
        except Rejected:
            self._refuse(name)
            raise

    def _text_or_refuse(self, name: str) -> str:
        try:
            # ingress-nginx takes variables if the validation of annotations is off.
            return self._values.text(name, lambda one: URL(one) or URL_WITH_VARIABLES(one))
        except Missing:
            return ""
        except Rejected:
            self._refuse(name)
            raise

    def _code(self, name: str, least: int, most: int, default: int) -> int:
        try:
            found = self._values.number(name)
        except Missing:
            return default
        except Rejected:
            self._refuse(name)
            raise
        return found if least <= found <= most else default

    def _aliases(self) -> tuple[str, ...]:
        text = self._required("server-alias", is_server_name)
        return tuple(sorted({one.strip() for one in text.split(",") if one.strip()}))

    def _canary(self) -> Canary | None:
        values = self._values
        enabled = self._or(False, values.flag, "canary")
        found = Canary(
            weight=self._or(0, values.number, "canary-weight"),
            total=self._or(100, values.number, "canary-weight-total"),
            header=self._or("", values.text, "canary-by-header", BASIC),
            value=self._or("", values.text, "canary-by-header-value", BASIC),
            pattern=self._or("", values.text, "canary-by-header-pattern", REGEX),
            cookie=self._or("", values.text, "canary-by-cookie", BASIC),
        )
        if enabled:
            if found.header and found.pattern and not found.value:
                wrong = check_regex(found.pattern)
                if wrong:
                    message = f"not an RE2 expression ({wrong}); no value of the header selects the canary"
                    self._note("canary-by-header-pattern", message)
            return found
        if found != Canary():
            self._warn("canary", "canary-* annotations have no effect without canary: true")
        return None

    def _addresses(self) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        allow, own_allow = self._list(
            "allowlist-source-range", ("whitelist-source-range",), self._settings.allow
        )
        deny, own_deny = self._list("denylist-source-range", (), self._settings.deny)
        return allow, deny, own_allow or own_deny

    def _list(
        self, name: str, aliases: tuple[str, ...], default: tuple[str, ...]
    ) -> tuple[tuple[str, ...], bool]:
        try:
            text = self._values.text(name, is_addresses, aliases)
        except Missing:
            return default, False
        except NoValue:
            self._close(name, "not a list of addresses and ranges")
            return default, True
        found = {known for one in text.split(",") if (known := read_range(one.strip()))}
        return tuple(sorted(found)), True

    def _basic(self) -> BasicAuth | None:
        values = self._values
        values.seen.update(("auth-type", "auth-secret", "auth-secret-type", "auth-realm"))
        try:
            kind = values.text("auth-type", _AUTH_TYPE)
        except Missing:
            for name in ("auth-secret", "auth-secret-type", "auth-realm"):
                if values.has(name):
                    self._warn(name, "no effect without auth-type")
            return None
        except Rejected:
            self._refuse("auth-type", "not basic or digest")
            return None
        except NoValue:
            self._warn("auth-type", "empty; edgefast ignores it, as ingress-nginx does")
            return None
        try:
            secret_type = values.text("auth-secret-type", _SECRET_TYPE)
        except Rejected:
            self._refuse("auth-secret-type", "not auth-file or auth-map")
            return None
        except NoValue:
            secret_type = "auth-file"
        try:
            secret = values.text("auth-secret", BASIC)
        except NoValue:
            self._close("auth-secret", "it must name a Secret")
            return None
        if values.has("auth-realm"):
            try:
                values.text("auth-realm", WORDS)
                self._warn("auth-realm", "the realm of the answer 401 is always gateway")
            except Rejected:
                self._refuse("auth-realm")
            except NoValue:
                pass
        if kind != "basic":
            self._close("auth-type", f"{kind[:32]} is not served (allowed: basic)")
            return None
        if secret_type not in ("auth-file", "auth-map"):
            self._close("auth-secret-type", "not auth-file or auth-map")
            return None
        return BasicAuth(secret=secret, is_map=secret_type == "auth-map")

    def _auth_url(self) -> AuthUrl | None:
        values, name = self._values, "auth-url"
        values.seen.update(AUTH_PARTS)
        wanted = self._or(True, values.flag, "enable-global-auth")
        url = self._required(name, URL_WITH_VARIABLES)
        if not url:
            return self._settings.auth if wanted else None
        parts = urlsplit(url.strip())
        self._closes_no_auth = not (parts.scheme and parts.netloc) or ".." in parts.netloc
        try:
            listed = values.text("auth-response-headers", HEADERS)
        except Rejected:
            self._close("auth-response-headers", "not a list of header names")
            listed = ""
        except NoValue:
            listed = ""
        method = self._or("", values.text, "auth-method", lambda one: True)
        if method and method not in METHODS:
            self._close("auth-method", "not a method of HTTP in upper case")
            method = ""
        return AuthUrl(
            name=name,
            url=url.strip(),
            method=method,
            response_headers=tuple(one.strip() for one in listed.split(",") if one.strip()),
            signin=self._or("", values.text, "auth-signin", URL_WITH_VARIABLES),
            signin_parameter=self._or("rd", values.text, "auth-signin-redirect-param", URL),
            request_redirect=self._or("", values.text, "auth-request-redirect", URL),
            always_set_cookie=self._or(False, values.flag, "auth-always-set-cookie"),
            headers=self._or("", values.text, "auth-proxy-set-headers", BASIC),
        )

    def _cors(self) -> Cors | None:
        values = self._values
        names = [one for one in values.names() if one.startswith("cors-")]
        enabled = self._or(False, values.flag, "enable-cors")
        values.seen.update(names)
        if not enabled:
            return None
        try:
            given = [one.strip() for one in values.text("cors-allow-origin", _ORIGINS).split(",")]
            origins = [one for one in given if one and _ORIGIN.fullmatch(one)]
            if "*" in given:
                origins = ["*"]
        except Missing:
            origins = ["*"]
        except NoValue:
            self._warn("cors-allow-origin", "not valid; edgefast uses *, as ingress-nginx does")
            origins = ["*"]
        return Cors(
            origins=tuple(origins),
            methods=_split(self._or(_CORS_METHODS, values.text, "cors-allow-methods", _METHODS)),
            headers=_split(self._or(_CORS_HEADERS, values.text, "cors-allow-headers", HEADERS)),
            exposed=_split(self._or("", values.text, "cors-expose-headers", _EXPOSED)),
            credentials=self._or(True, values.flag, "cors-allow-credentials"),
            max_age=self._or(_CORS_MAX_AGE, values.number, "cors-max-age"),
        )

    def _body_size(self) -> int:
        text = self._or("", self._values.text, "proxy-body-size", SIZE)
        if not text:
            return self._settings.body_size
        found = parse_size(text)
        return self._settings.body_size if found is None else found

    def _responses(self) -> ResponseRewrite | None:
        made, notes = translate_responses(
            read_responses(self._or, self._values.text, self._settings.responses)
        )
        for note in notes:
            self._add(note)
        return made

    def _connect_timeout(self) -> int:
        name, default = "proxy-connect-timeout", self._settings.connect_timeout
        found = self._or(default, self._values.number, name)
        if found < 1:
            self._note(name, f"not served: {found} seconds; edgefast uses {default}")
            return default
        return found

    def _next_upstream(self) -> tuple[int, tuple[int, ...]]:
        values = self._values
        tries = self._or(self._settings.tries, values.number, "proxy-next-upstream-tries")
        text = self._or("error timeout", values.text, "proxy-next-upstream", _NEXT)
        words = text.split()
        if "off" in words:
            return 1, ()
        if "non_idempotent" in words:
            message = "non_idempotent has no effect: edgefast never repeats such requests"
            self._warn("proxy-next-upstream", message)
        codes = {int(one[5:]) for one in words if one.startswith("http_")}
        return tries, tuple(sorted(codes))

    def _affinity(self) -> Affinity | None:
        values = self._values
        cookie = [one for one in values.names() if one.startswith("session-cookie-")]
        kind = self._or("", values.text, "affinity", one_of("cookie"))
        values.seen.add("affinity-mode")
        if not kind:
            values.seen.update(cookie)
            return None
        age = self._or("", values.text, "session-cookie-max-age", _AGE)
        # Clients use Max-Age if they get both.
        age = age or self._or("", values.text, "session-cookie-expires", _EXPIRES)
        domain = self._or("", values.text, "session-cookie-domain", BASIC)
        if domain and not _DOMAIN.fullmatch(domain):
            self._note("session-cookie-domain", "not served: not a domain; the cookie has none")
            domain = ""
        if self._or("", values.text, "affinity-canary-behavior", _CANARY_BEHAVIOR) == "legacy":
            message = "not served: clients stay with the canary that served them, as with sticky"
            self._warn("affinity-canary-behavior", message)
        return Affinity(
            name=self._or("INGRESSCOOKIE", values.text, "session-cookie-name", BASIC),
            max_age=max(0, int(age)) if is_integer(age) else 0,
            path=self._or("", values.text, "session-cookie-path", URL_SPACED),
            domain=domain,
            same_site=self._or("", values.text, "session-cookie-samesite", _SAME_SITE).strip(),
            conditional=self._or(False, values.flag, "session-cookie-conditional-samesite-none"),
            secure=self._or(False, values.flag, "session-cookie-secure"),
            change_on_failure=self._or(False, values.flag, "session-cookie-change-on-failure"),
        )

    def _limits(self) -> Limits | None:
        values, name = self._values, "limit-allowlist"
        values.seen.update((name, "limit-whitelist", "limit-burst-multiplier"))
        numbers = [self._limit(one) for one in ("limit-rps", "limit-rpm", "limit-connections")]
        try:
            listed = values.text(name, is_addresses, ("limit-whitelist",)).split(",")
        except Rejected:
            self._refuse(name, "not a list of addresses and ranges")
            return None
        except NoValue:
            listed = []
        if not any(number > 0 for number in numbers):
            return None
        exempt = {known for one in listed if (known := read_range(one.strip()))}
        if len(exempt) > MAX_EXEMPT:
            self._close(name, f"{len(exempt)} ranges are not served (at most {MAX_EXEMPT})")
            return None
        rps, rpm, connections = numbers
        return Limits(
            rps=rps,
            rpm=rpm,
            connections=connections,
            multiplier=self._or(DEFAULT_MULTIPLIER, values.number, "limit-burst-multiplier"),
            exempt=tuple(sorted(exempt)),
        )

    def _limit(self, name: str) -> int:
        """Read a limit; 0 and less set no limit, as in ingress-nginx."""
        try:
            return max(0, self._values.number(name))
        except Rejected:
            self._refuse(name, "not a number")
        except NoValue:
            pass
        return 0

    def _balancer(self) -> LoadBalancer | None:
        values = self._values
        algorithm = self._or(
            self._settings.load_balance, values.text, "load-balance", one_of(*ALGORITHMS)
        )
        key = self._required("upstream-hash-by", _HASH_KEY).replace(" ", "")
        if key and self._or(False, values.flag, "upstream-hash-by-subset"):
            self._warn("upstream-hash-by-subset", "not served: a key finds one endpoint")
        made, notes = translate_balancing(algorithm.strip(), key)
        for note in notes if key or values.has("load-balance") else ():
            self._add(note)
        return made

    def _protocol(self) -> str:
        check = one_of(*_PROTOCOLS, folded=True)
        found = self._or("HTTP", self._values.text, "backend-protocol", check).strip().upper()
        if found == "FCGI":
            self._close(
                "backend-protocol", "FCGI is not served (allowed: HTTP, HTTPS, GRPC, GRPCS)"
            )
        if found == "AUTO_HTTP":
            self._close(
                "backend-protocol", "AUTO_HTTP is not served (allowed: HTTP, HTTPS, GRPC, GRPCS)"
            )
        return found

    def _pages(self) -> ErrorPages:
        values = self._values
        name = "disable-proxy-intercept-errors"
        return ErrorPages(
            codes=self._or((), lambda _: read_codes(values), "custom-http-errors"),
            service=self._or("", lambda _: read_default_backend(values), "default-backend"),
            intercepts=not self._or(False, values.flag, name),
        )

    def _mirror(self) -> str:
        values = self._values
        target = self._or("", values.text, "mirror-target", lambda one: bool(one.strip()))
        if (
            target
            and self._or("on", values.text, "mirror-request-body", one_of("on", "off")) == "off"
        ):
            self._warn("mirror-request-body", "copies of requests always have their body")
        if target and values.has("mirror-host"):
            self._warn("mirror-host", "copies of requests have the Host of the request")
        values.seen.update(("mirror-host", "mirror-request-body"))
        return target

    def _backend_tls(self) -> BackendTls | None:
        verifies = self._values.has("proxy-ssl-verify") and self._verifies()
        return read_backend_tls(
            self._values, self._namespace, self._close, self._warn, verifies=verifies
        )

    def _verifies(self) -> bool:
        try:
            return self._values.text("proxy-ssl-verify", _SWITCH) == "on"
        except NoValue:
            return False

    def _client_tls(self) -> ClientTls | None:
        return read_client_tls(self._values, self._namespace, self._close_host, self._warn)

    # --- what is not served ---

    def _note_others(self, made: Annotations) -> None:
        values = self._values
        unknown = 0
        for name in values.names():
            if name in values.seen or name in HARMLESS:
                continue
            if name in CLOSING:
                self._close_unserved(name)
            elif name in LOST:
                self._note(name, f"not served: {LOST[name]}")
            elif name in DIFFERS:
                self._warn(name, f"not served: {DIFFERS[name]}")
            elif name not in PARTS:
                unknown += 1
                message = "not an annotation of ingress-nginx 1.15; it has no effect"
                if unknown <= _MOST_UNKNOWN:
                    self._warn(name[:MAX_SHOWN_NAME], message, did_you_mean(name, KNOWN))
        if unknown > _MOST_UNKNOWN:
            more = unknown - _MOST_UNKNOWN
            message = f"{more} more are not annotations of ingress-nginx 1.15; they have no effect"
            self._warn("metadata.annotations", message)

    def _close_unserved(self, name: str) -> None:
        if name in ("enable-modsecurity", "enable-owasp-core-rules"):
            if not self._or(False, self._values.flag, name):
                return
        elif not self._or("", self._values.text, name, lambda one: True):
            return
        self._close(name, f"not served: {CLOSING[name]}")


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in re.split(r"[,\s]+", text) if one))
