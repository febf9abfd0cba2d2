"""Access annotations: the values of allowlist-source-range, denylist-source-range, auth-type and auth-url.

In: the annotations of an Ingress, the lists and the global-auth-url of the ConfigMap. Out: ranges of addresses, `BasicAuth`, `AuthUrl`;
access.py and auth_url.py make access rules of them.
Source: ingress-nginx internal/ingress/annotations (ipallowlist, ipdenylist, auth, authreq).
Must never: open a location by a value that is not valid; its locations answer 503, or the Ingress is refused.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from edgefast.translate.ingress.annotation_fields import BasicAuth
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.auth_url import AuthUrl
from edgefast.translate.ingress.values import (
    AUTH_PARTS,
    BASIC,
    HEADERS,
    METHODS,
    URL,
    URL_WITH_VARIABLES,
    WORDS,
    Missing,
    NoValue,
    Rejected,
    is_addresses,
    pattern,
    read_range,
)

__all__ = ["read_addresses", "read_auth_url", "read_basic"]

_AUTH_TYPE = pattern(r"basic|digest", spaces=True)
_SECRET_TYPE = pattern(r"auth-file|auth-map", spaces=True)


def read_addresses(reader: AnnotationReader) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the allowed and the denied ranges, and whether one of both lists is of the Ingress."""
    allow, own_allow = _read_list(
        reader, "allowlist-source-range", ("whitelist-source-range",), reader.settings.allow
    )
    deny, own_deny = _read_list(reader, "denylist-source-range", (), reader.settings.deny)
    return allow, deny, own_allow or own_deny


def _read_list(
    reader: AnnotationReader, name: str, aliases: tuple[str, ...], default: tuple[str, ...]
) -> tuple[tuple[str, ...], bool]:
    try:
        text = reader.values.text(name, is_addresses, aliases)
    except Missing:
        return default, False
    except NoValue:
        given = reader.values.find_name(name, aliases)
        reader.close(given, "not a list of addresses and ranges")
        return default, True
    found = {known for one in text.split(",") if (known := read_range(one.strip()))}
    return tuple(sorted(found)), True


def read_basic(reader: AnnotationReader) -> BasicAuth | None:
    """Return auth-type basic; None without it, or where it is refused or closes."""
    values = reader.values
    values.seen.update(("auth-type", "auth-secret", "auth-secret-type", "auth-realm"))
    try:
        kind = values.text("auth-type", _AUTH_TYPE)
    except Missing:
        for name in ("auth-secret", "auth-secret-type", "auth-realm"):
            if values.has(name):
                reader.warn(name, "no effect without auth-type")
        return None
    except Rejected:
        reader.refuse("auth-type", "not basic or digest")
        return None
    except NoValue:
        reader.warn("auth-type", "empty; edgefast ignores it, as ingress-nginx does")
        return None
    try:
        secret_type = values.text("auth-secret-type", _SECRET_TYPE)
    except Rejected:
        reader.refuse("auth-secret-type", "not auth-file or auth-map")
        return None
    except NoValue:
        secret_type = "auth-file"
    try:
        secret = values.text("auth-secret", BASIC)
    except NoValue:
        reader.close("auth-secret", "it must name a Secret")
        return None
    if values.has("auth-realm"):
        try:
            values.text("auth-realm", WORDS)
            reader.warn("auth-realm", "the realm of the answer 401 is always gateway")
        except Rejected:
            reader.refuse("auth-realm")
        except NoValue:
            pass
    if kind != "basic":
        reader.close("auth-type", f"{kind[:32]} is not served (allowed: basic)")
        return None
    if secret_type not in ("auth-file", "auth-map"):
        reader.close("auth-secret-type", "not auth-file or auth-map")
        return None
    return BasicAuth(secret=secret, is_map=secret_type == "auth-map")


def read_auth_url(reader: AnnotationReader) -> AuthUrl | None:
    """Return auth-url, else global-auth-url; None without both."""
    values, name = reader.values, "auth-url"
    values.seen.update(AUTH_PARTS)
    wanted = reader.read(True, values.flag, "enable-global-auth")
    url = reader.validate_text(name, URL_WITH_VARIABLES)
    if not url:
        return reader.settings.auth if wanted else None
    parts = urlsplit(url.strip())
    reader.closes_no_auth = not (parts.scheme and parts.netloc) or ".." in parts.netloc
    try:
        listed = values.text("auth-response-headers", HEADERS)
    except Rejected:
        reader.close("auth-response-headers", "not a list of header names")
        listed = ""
    except NoValue:
        listed = ""
    method = reader.read("", values.text, "auth-method", lambda one: True)
    if method and method not in METHODS:
        reader.close("auth-method", "not a method of HTTP in upper case")
        method = ""
    return AuthUrl(
        name=name,
        url=url.strip(),
        method=method,
        response_headers=tuple(one.strip() for one in listed.split(",") if one.strip()),
        signin=reader.read("", values.text, "auth-signin", URL_WITH_VARIABLES),
        signin_parameter=reader.read("rd", values.text, "auth-signin-redirect-param", URL),
        request_redirect=reader.read("", values.text, "auth-request-redirect", URL),
        always_set_cookie=reader.read(False, values.flag, "auth-always-set-cookie"),
        headers=reader.read("", values.text, "auth-proxy-set-headers", BASIC),
    )
