"""Traffic annotations: the values of body size, timeouts, repeats and session cookies.

In: the annotations of an Ingress, the settings of the ConfigMap. Out: bytes, seconds, statuses, `Affinity`; traffic.py makes a
BackendTrafficPolicy of them, emit.py the retry of a rule.
Source: ingress-nginx internal/ingress/annotations (proxy, sessionaffinity).
"""

from __future__ import annotations

import re

from edgefast.translate.ingress.annotation_fields import Affinity
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.configmap import MOST_RATE, parse_size
from edgefast.translate.ingress.values import BASIC, SIZE, URL_SPACED, is_integer, one_of, pattern

__all__ = [
    "read_affinity",
    "read_body_size",
    "read_connect_timeout",
    "read_next_upstream",
    "read_rate",
]

#: The bound of these two keeps the search of a long value short.
_AGE = pattern(r"^(?=.{0,64}$)(0|.*-?[1-9]\d*$)")
_NEXT = pattern(
    r"^((error|timeout|invalid_header|http_500|http_502|http_503|http_504|http_403|http_404|http_429|non_idempotent|off)\s?)+$"
)
_EXPIRES = pattern(r"^(?=.{0,64}$)(0|.*-?[1-9]\d*$)", spaces=True)
_DOMAIN = re.compile(r"(?=.{1,253}$)\.?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?")
_SAME_SITE = one_of("none", "lax", "strict", folded=True)
_CANARY_BEHAVIOR = one_of("sticky", "legacy")


def read_body_size(reader: AnnotationReader) -> int:
    """Return proxy-body-size in bytes."""
    text = reader.read("", reader.values.text, "proxy-body-size", SIZE)
    if not text:
        return reader.settings.body_size
    found = parse_size(text)
    return reader.settings.body_size if found is None else found


def read_connect_timeout(reader: AnnotationReader) -> int:
    """Return proxy-connect-timeout in seconds."""
    name, default = "proxy-connect-timeout", reader.settings.connect_timeout
    found = reader.read(default, reader.values.number, name)
    if found < 1:
        reader.note(name, f"not served: {found} seconds; edgefast uses {default}")
        return default
    return found


def read_rate(reader: AnnotationReader, name: str, default: int) -> int:
    """Return limit-rate or limit-rate-after in KiB; 0: none. In place of 0 where the ConfigMap has a rate: the most."""
    found = min(max(0, reader.read(default, reader.values.number, name)), MOST_RATE)
    return found or (MOST_RATE if default > 0 and name == "limit-rate" else 0)


def read_next_upstream(reader: AnnotationReader) -> tuple[int, tuple[int, ...]]:
    """Return the most tries of a request, and the statuses after which it is tried again."""
    values = reader.values
    tries = reader.read(reader.settings.tries, values.number, "proxy-next-upstream-tries")
    text = reader.read("error timeout", values.text, "proxy-next-upstream", _NEXT)
    words = text.split()
    if "off" in words:
        return 1, ()
    if "non_idempotent" in words:
        message = "non_idempotent has no effect: edgefast never repeats such requests"
        reader.warn("proxy-next-upstream", message)
    codes = {int(one[5:]) for one in words if one.startswith("http_")}
    return tries, tuple(sorted(codes))


def read_affinity(reader: AnnotationReader) -> Affinity | None:
    """Return affinity: cookie, None without it."""
    values = reader.values
    cookie = [one for one in values.names() if one.startswith("session-cookie-")]
    kind = reader.read("", values.text, "affinity", one_of("cookie"))
    values.seen.add("affinity-mode")
    if not kind:
        values.seen.update(cookie)
        return None
    age = reader.read("", values.text, "session-cookie-max-age", _AGE)
    expires = reader.read("", values.text, "session-cookie-expires", _EXPIRES)
    age = age or expires  # clients use Max-Age if they get both
    domain = reader.read("", values.text, "session-cookie-domain", BASIC)
    if domain and not _DOMAIN.fullmatch(domain):
        reader.note("session-cookie-domain", "not served: not a domain; the cookie has none")
        domain = ""
    if reader.read("", values.text, "affinity-canary-behavior", _CANARY_BEHAVIOR) == "legacy":
        message = "not served: clients stay with the canary that served them, as with sticky"
        reader.warn("affinity-canary-behavior", message)
    return Affinity(
        name=reader.read("INGRESSCOOKIE", values.text, "session-cookie-name", BASIC),
        max_age=max(0, int(age)) if is_integer(age) else 0,
        path=reader.read("", values.text, "session-cookie-path", URL_SPACED),
        domain=domain,
        same_site=reader.read("", values.text, "session-cookie-samesite", _SAME_SITE).strip(),
        conditional=reader.read(False, values.flag, "session-cookie-conditional-samesite-none"),
        secure=reader.read(False, values.flag, "session-cookie-secure"),
        change_on_failure=reader.read(False, values.flag, "session-cookie-change-on-failure"),
    )
