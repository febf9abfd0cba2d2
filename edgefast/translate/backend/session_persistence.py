"""Session persistence: of a route's rule, a BackendTrafficPolicy or an XBackend -> ir.SessionPersistence.

In: the field. Out: names and times in the form of the IR; a problem for every mistake.
Source: GEP-1619 as of Gateway API v1.7; RFC 6265 4.1.1 (cookies).
Must never: put anything into a cookie's line that is not its name or its path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from edgefast import ir
from edgefast.api.edge.backendtrafficpolicy import TrafficCookie, TrafficSession
from edgefast.api.model.session_persistence import Session, SessionPersistence
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.session_persistence import (
    check_lifetime,
    check_own_type,
    check_release,
    check_type,
)
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_session"]

_TYPES = ("Cookie", "Header")
_LIFETIMES = ("Session", "Permanent")
_COOKIE = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}")
_DOMAIN = re.compile(r"(?=.{1,253}$)\.?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?")
_SAME_SITE: Mapping[str, Literal["strict", "lax", "none", "none_if_supported", "unset"]] = {
    "Strict": "strict",
    "Lax": "lax",
    "None": "none",
    "NoneIfSupported": "none_if_supported",
    "Unset": "unset",
}
_PATH = re.compile(r"/[!-:<-~]{0,1023}")
#: Headers that HTTP, CORS, gRPC and proxies give a meaning, of requests and of answers.
_OTHERS = re.compile(
    r"(?:accept|access-control|content|grpc|if|proxy|ratelimit|sec|x-forwarded)-.+|accept|age|allow|alt-svc|authorization|"
    r"cache-control|cdn-loop|clear-site-data|cookie2?|date|dnt|early-data|etag|expires|forwarded|from|http2-settings|"
    r"last-modified|link|location|max-forwards|nel|origin|pragma|prefer|preference-applied|priority|range|referer|"
    r"referrer-policy|refresh|report-to|reporting-endpoints|retry-after|server|server-timing|set-cookie2?|"
    r"strict-transport-security|traceparent|tracestate|user-agent|vary|via|warning|www-authenticate|"
    r"x-content-type-options|x-frame-options|x-real-ip|x-request-id|x-requested-with"
)


def translate_session(
    given: Session | None,
    report: Report,
    path: str,
    condition: Word = "UnsupportedValue",
) -> ir.SessionPersistence | None:
    """Translate it; None: nothing is said. Of what a report refuses nothing is to be used."""
    if given is None:
        return None
    one = _Session(report, path, condition)
    one.check_word(given.type, _TYPES, "type")
    older = given if isinstance(given, SessionPersistence) else None
    found = (*check_lifetime(given), *(check_release(older) if older is not None else ()))
    found += tuple(
        check_own_type(given) if isinstance(given, TrafficSession) else check_type(given)
    )
    refuse_violations(found, report, path, condition)
    header = given.type == "Header"
    name, cookie_path, lifetime = (older and older.session_name) or "", "/", "Session"
    where = "sessionName"
    if given.cookie is not None:
        name, where = given.cookie.name or "", "cookie.name"
        cookie_path, lifetime = given.cookie.path, given.cookie.lifetime_type
        one.check_word(lifetime, _LIFETIMES, "cookie.lifetimeType")
    elif older is not None and older.cookie_config is not None:
        lifetime = older.cookie_config.lifetime_type
        one.check_word(lifetime, _LIFETIMES, "cookieConfig.lifetimeType")
    if given.header is not None:
        name, where = given.header.name, "header.name"
    one.check_name(name, where, header=header)
    if not _PATH.fullmatch(cookie_path):
        one.refuse("cookie.path", f'"{cookie_path}" (expected a path such as /shop, without ;)')
    elif cookie_path != "/" and name.lower().startswith("__host-"):
        one.doubt("cookie.path", f'clients accept a cookie "{name}" only with the path /')
    idle = one.read_time(
        given.idle_timeout if isinstance(given, TrafficSession) else None, "idleTimeout"
    )
    absolute = one.read_time(given.absolute_timeout, "absoluteTimeout")
    if 0 < absolute <= idle:
        one.doubt("idleTimeout", "absoluteTimeout ends each session earlier")
    made = ir.SessionPersistence(
        name=name.lower() if header else name,
        header=header,
        absolute=absolute,
        idle=idle,
        permanent=lifetime == "Permanent" and not header,
        path=cookie_path,
    )
    return one.add_traffic(made, given) if isinstance(given, TrafficSession) else made


class _Session:
    def __init__(self, report: Report, path: str, condition: Word) -> None:
        self.report = report
        self.path = path
        self.condition = condition

    def refuse(self, field: str, message: str) -> None:
        """Refuse what a field says."""
        self.report.refuse(f"{self.path}.{field}", "Invalid", message, condition=self.condition)

    def doubt(self, field: str, message: str) -> None:
        """Tell of what a field says, and nobody will see."""
        self.report.warn(f"{self.path}.{field}", "Ignored", message)

    def check_word(self, word: str, words: tuple[str, ...], field: str) -> None:
        """Refuse a word that nobody knows."""
        if word not in words:
            message, hint = supported_text(word, words), did_you_mean(word, words)
            where = f"{self.path}.{field}"
            self.report.refuse(where, "NotSupported", message, hint, condition=self.condition)

    def check_name(self, name: str, field: str, *, header: bool) -> None:
        """Refuse what is no name; "" is one that is made."""
        if name and header and (message := check_header_name(name)):
            self.refuse(field, message)
        elif name and header and _OTHERS.fullmatch(name.lower()):
            self.refuse(field, f'"{name}" contradicts it')
        elif name and not header and not _COOKIE.fullmatch(name):
            self.refuse(field, f'"{name}" is not the name of a cookie')

    def add_traffic(
        self, made: ir.SessionPersistence, given: TrafficSession
    ) -> ir.SessionPersistence:
        """Add what only a BackendTrafficPolicy sets."""
        self.check_word(given.precedence, ("Weights", "Session"), "precedence")
        cookie = given.cookie or TrafficCookie()
        self.check_word(cookie.same_site, tuple(_SAME_SITE), "cookie.sameSite")
        self.check_word(cookie.secure, ("Auto", "Always"), "cookie.secure")
        domain = cookie.domain or ""
        if domain and not _DOMAIN.fullmatch(domain):
            self.refuse("cookie.domain", f'"{domain}" (expected a domain such as example.com)')
        elif domain and made.name.lower().startswith("__host-"):
            self.doubt("cookie.domain", f'clients accept a cookie "{made.name}" only without it')
        if cookie.same_site == "None" and cookie.secure == "Auto":
            message = (
                "clients accept SameSite=None only with Secure: over TLS, or with secure: Always"
            )
            self.doubt("cookie.sameSite", message)
        return msgspec.structs.replace(
            made,
            domain=domain,
            same_site=_SAME_SITE.get(cookie.same_site, "strict"),
            secure=cookie.secure == "Always",
            stays=not given.change_on_failure,
            first=given.precedence == "Session",
        )

    def read_time(self, given: str | None, field: str) -> int:
        """Return milliseconds, 0 for what is not said."""
        if given is None:
            return 0
        try:
            found = parse_duration(given)
        except ValueError:
            found = 0
        if found <= 0:
            self.refuse(field, f'"{given}" (expected more than 0s, such as 1h30m)')
        return found
