"""Redirect annotations: the values of temporal-redirect, permanent-redirect, from-to-www-redirect and relative-redirects.

In: the annotations of an Ingress. Out: a `Redirection` and both switches; redirects.py makes filters of it. A value that is not valid
makes ingress-nginx ignore all redirects, or refuse the Ingress.
Source: ingress-nginx internal/ingress/annotations/redirect/redirect.go.
Must never: serve a part of a redirect.
"""

from __future__ import annotations

from edgefast.translate.ingress.annotation_fields import Redirection
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.redirect_variables import has_variables, translate_location
from edgefast.translate.ingress.values import URL, URL_WITH_VARIABLES, Missing, NoValue, Rejected

__all__ = ["read_redirects"]


def read_redirects(reader: AnnotationReader) -> tuple[Redirection | None, bool, bool]:
    """Return the redirect, from-to-www-redirect and relative-redirects."""
    values = reader.values
    try:
        www = _read_flag(reader, "from-to-www-redirect")
        relative = _read_flag(reader, "relative-redirects")
        temporal = _read_text(reader, "temporal-redirect")
        if temporal:
            code = _read_code(reader, "temporal-redirect-code", 300, 307, 302)
            if not temporal.startswith("http"):
                message = "not a URL of http or https; edgefast ignores all redirects of the Ingress, as ingress-nginx does"
                reader.warn("temporal-redirect", message)
                return None, False, False
            values.seen.update(("permanent-redirect", "permanent-redirect-code"))
            return _make(reader, "temporal-redirect", temporal, code), www, relative
        permanent = _read_text(reader, "permanent-redirect")
        code = _read_code(reader, "permanent-redirect-code", 300, 308, 301)
    except NoValue:
        return None, False, False
    values.seen.add("temporal-redirect-code")
    if not permanent:
        return None, www, relative
    return _make(reader, "permanent-redirect", permanent, code), www, relative


def _make(reader: AnnotationReader, name: str, url: str, code: int) -> Redirection:
    """Return a redirect; one with variables that are not served is refused, as ingress-nginx refuses all variables."""
    template = ""
    if has_variables(url):
        template, wrong = translate_location(url)
        if not wrong and code not in (301, 302, 303, 307, 308):
            wrong = f"status {code} is not served with variables"
        if wrong:
            reader.refuse(name, wrong)
    return Redirection(name=name, url=url, code=code, template=template)


def _read_flag(reader: AnnotationReader, name: str) -> bool:
    try:
        return reader.values.flag(name)
    except Missing:
        return False
    except Rejected:
        reader.refuse(name)
        raise


def _read_text(reader: AnnotationReader, name: str) -> str:
    try:
        # ingress-nginx takes variables if the validation of annotations is off.
        return reader.values.text(name, lambda one: URL(one) or URL_WITH_VARIABLES(one))
    except Missing:
        return ""
    except Rejected:
        reader.refuse(name)
        raise


def _read_code(reader: AnnotationReader, name: str, least: int, most: int, default: int) -> int:
    try:
        found = reader.values.number(name)
    except Missing:
        return default
    except Rejected:
        reader.refuse(name)
        raise
    return found if least <= found <= most else default
