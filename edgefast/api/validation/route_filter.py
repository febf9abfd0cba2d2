r"""Route filter: rules about HTTPRouteFilter, each with its CEL twin for the CRD.

In: parts of an HTTPRouteFilter. Out: violations; `cel` is the same rule for an API server.
Translation checks that `\2` has a second group, because CEL cannot count groups.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.httproutefilter import (
    MAX_ANSWER_BODY,
    DirectResponse,
    DirectResponseBody,
    HTTPCookieMatch,
    HTTPRouteFilterSpec,
    RegexPathModifier,
    ReplaceRegexMatch,
)
from edgefast.api.model.regex import explain_regex
from edgefast.api.validation.rule import RuleBook, Violation
from edgefast.diagnostics.problem import supported_text
from edgefast.diagnostics.redact import hide, is_hidden

BOOK = RuleBook()

#: Statuses whose answers have no body (RFC 9110 15.3.5, 15.3.6, 15.4.5).
BODYLESS = (204, 205, 304)
_COOKIE = "[!-:<-~]([ -:<-~]*[!-:<-~])?"
_UNION = (
    "self.type == 'Inline' ? has(self.inline) && !has(self.valueRef) : "
    "has(self.valueRef) && !has(self.inline)"
)


@BOOK.on(
    HTTPRouteFilterSpec,
    "url_rewrite",
    "direct_response",
    cel="!has(self.urlRewrite) || !has(self.directResponse)",
    message="only one of urlRewrite and directResponse may be set",
)
def check_spec(one: HTTPRouteFilterSpec) -> Iterable[Violation]:
    """What is answered here goes to no backend, so there is nothing to rewrite."""
    if one.url_rewrite is not None and one.direct_response is not None:
        return (Violation(("urlRewrite",), "Forbidden", "together with directResponse"),)
    return ()


@BOOK.on(
    HTTPRouteFilterSpec,
    "redirect",
    "url_rewrite",
    "direct_response",
    cel="!has(self.redirect) || !(has(self.urlRewrite) || has(self.directResponse))",
    message="redirect cannot be set together with urlRewrite or directResponse",
)
def check_form(one: HTTPRouteFilterSpec) -> Iterable[Violation]:
    """A rule that redirects has neither a backend nor another answer."""
    if one.redirect is None or (one.url_rewrite is None and one.direct_response is None):
        return ()
    other = "urlRewrite" if one.url_rewrite is not None else "directResponse"
    return (Violation(("redirect",), "Forbidden", f"together with {other}"),)


@BOOK.on(
    RegexPathModifier,
    "type",
    "replace_regex_match",
    cel="has(self.replaceRegexMatch)",
    message="replaceRegexMatch must be set with type ReplaceRegexMatch",
)
def check_modifier(one: RegexPathModifier) -> Iterable[Violation]:
    """The payload that `type` names."""
    if one.replace_regex_match is None:
        return (Violation(("replaceRegexMatch",), "Required", f"with type {one.type}"),)
    return ()


@BOOK.on(
    ReplaceRegexMatch,
    "pattern",
    # `in`, because `||` would swallow the error of a pattern that does not compile.
    cel="''.matches(self.pattern) in [true, false]",
    message="pattern must be an RE2 expression",
)
def check_pattern(one: ReplaceRegexMatch) -> Iterable[Violation]:
    """Expressions are RE2, as the proxy compiles them."""
    message = explain_regex(one.pattern)
    return (Violation(("pattern",), "Invalid", message),) if message else ()


@BOOK.on(
    DirectResponse,
    "status_code",
    "body",
    cel="!has(self.body) || !(self.statusCode in [204, 205, 304])",
    message="body must not be set with status 204, 205 or 304, which have no body",
)
def check_answer(one: DirectResponse) -> Iterable[Violation]:
    """Some answers have no body."""
    if one.body is not None and one.status_code in BODYLESS:
        return (Violation(("body",), "Forbidden", f"with status {one.status_code}"),)
    return ()


@BOOK.on(
    DirectResponseBody,
    "type",
    "inline",
    "value_ref",
    cel=_UNION,
    message="inline must be set with type Inline, valueRef with type ValueRef",
)
def check_body(one: DirectResponseBody) -> Iterable[Violation]:
    """Exactly the payload that `type` names."""
    for word, name, value in (
        ("Inline", "inline", one.inline),
        ("ValueRef", "valueRef", one.value_ref),
    ):
        if one.type == word and value is None:
            yield Violation((name,), "Required", f"with type {one.type}")
        elif one.type != word and value is not None:
            yield Violation((name,), "Forbidden", f"with type {one.type} (it belongs to {word})")


@BOOK.on(
    DirectResponseBody,
    "inline",
    cel=f"!has(self.inline) || size(bytes(self.inline)) <= {MAX_ANSWER_BODY}",
    message=f"inline must be at most {MAX_ANSWER_BODY} bytes",
)
def check_body_size(one: DirectResponseBody) -> Iterable[Violation]:
    """Bytes count, not characters."""
    size = len((one.inline or "").encode())
    if size > MAX_ANSWER_BODY:
        return (Violation(("inline",), "TooLong", f"{size} bytes (at most {MAX_ANSWER_BODY})"),)
    return ()


@BOOK.on(
    DirectResponseBody,
    "value_ref",
    cel="!has(self.valueRef) || (self.valueRef.group == '' && self.valueRef.kind == 'ConfigMap')",
    message="valueRef must be a ConfigMap",
)
def check_value_ref(one: DirectResponseBody) -> Iterable[Violation]:
    """What everybody may read is in ConfigMaps."""
    ref = one.value_ref
    if ref is not None and (ref.group, ref.kind) != ("", "ConfigMap"):
        named = f"{ref.group}/{ref.kind}" if ref.group else ref.kind
        message = supported_text(named, ("ConfigMap",))
        return (Violation(("valueRef", "kind"), "NotSupported", message),)
    return ()


@BOOK.on(
    HTTPCookieMatch,
    "type",
    "value",
    cel=f"self.type != 'Exact' || self.value.matches('^{_COOKIE}$')",
    message="value must be visible ASCII without semicolon; other cookie values cannot match",
)
def check_cookie(one: HTTPCookieMatch) -> Iterable[Violation]:
    """A value that no cookie can have would never match (RFC 6265 section 5.2)."""
    if one.type == "Exact" and not _is_cookie(one.value):
        shown = hide(one.value) if is_hidden("cookie", one.value) else f'"{one.value}"'
        message = f"{shown} (expected visible ASCII without semicolon)"
        return (Violation(("value",), "Invalid", message),)
    return ()


def _is_cookie(value: str) -> bool:
    inside = all(" " <= one <= "~" and one != ";" for one in value)
    return inside and value != "" and " " not in (value[0], value[-1])


@BOOK.on(
    HTTPCookieMatch,
    "type",
    "value",
    # `in`, because `||` would swallow the error of a pattern that does not compile.
    cel="self.type != 'RegularExpression' || ''.matches(self.value) in [true, false]",
    message="value must be an RE2 expression",
)
def check_cookie_regex(one: HTTPCookieMatch) -> Iterable[Violation]:
    """Expressions are RE2, as the proxy compiles them."""
    message = explain_regex(one.value, "cookie") if one.type == "RegularExpression" else ""
    return (Violation(("value",), "Invalid", message),) if message else ()
