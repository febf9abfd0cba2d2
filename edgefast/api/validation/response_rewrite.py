r"""Response rewrite: rules about responseRewrite of an HTTPRouteFilter, each with its CEL twin for the CRD.

In: parts of an HTTPRouteFilter. Out: violations; `cel` is the same rule for an API server.
Translation checks that `\2` has a second group, because CEL cannot count groups.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.httproutefilter import HTTPRouteFilterSpec
from edgefast.api.edge.response_rewrite import (
    CookieDomainRewrite,
    CookiePathRewrite,
    LocationRewrite,
)
from edgefast.api.model.regex import explain_regex
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

TextRewrite = LocationRewrite | CookieDomainRewrite | CookiePathRewrite

# `in`, because `||` would swallow the error of an expression that does not compile.
_REGEX = "self.type != 'RegularExpression' || ''.matches(self.from) in [true, false]"
_REGEX_MESSAGE = "from must be an RE2 expression"
_GROUPS = r"self.type == 'RegularExpression' || !self.to.contains('\\')"
_GROUPS_MESSAGE = "to must not contain groups without type RegularExpression"


@BOOK.on(
    HTTPRouteFilterSpec,
    "response_rewrite",
    "redirect",
    "direct_response",
    cel="!has(self.responseRewrite) || !(has(self.redirect) || has(self.directResponse))",
    message="responseRewrite cannot be set together with redirect or directResponse",
)
def check_response(one: HTTPRouteFilterSpec) -> Iterable[Violation]:
    """A rule without a backend has no response to rewrite."""
    if one.response_rewrite is None or (one.redirect is None and one.direct_response is None):
        return ()
    other = "redirect" if one.redirect is not None else "directResponse"
    return (Violation(("responseRewrite",), "Forbidden", f"together with {other}"),)


@BOOK.on(CookiePathRewrite, "type", "from_", cel=_REGEX, message=_REGEX_MESSAGE)
@BOOK.on(CookieDomainRewrite, "type", "from_", cel=_REGEX, message=_REGEX_MESSAGE)
@BOOK.on(LocationRewrite, "type", "from_", cel=_REGEX, message=_REGEX_MESSAGE)
def check_from(one: TextRewrite) -> Iterable[Violation]:
    """Expressions are RE2, as the proxy compiles them."""
    message = explain_regex(one.from_) if one.type == "RegularExpression" else ""
    return (Violation(("from",), "Invalid", message),) if message else ()


@BOOK.on(CookiePathRewrite, "type", "to", cel=_GROUPS, message=_GROUPS_MESSAGE)
@BOOK.on(CookieDomainRewrite, "type", "to", cel=_GROUPS, message=_GROUPS_MESSAGE)
@BOOK.on(LocationRewrite, "type", "to", cel=_GROUPS, message=_GROUPS_MESSAGE)
def check_to(one: TextRewrite) -> Iterable[Violation]:
    """Text has no groups."""
    if one.type == "RegularExpression" or "\\" not in one.to:
        return ()
    return (Violation(("to",), "Invalid", f'"{one.to}" has groups with type {one.type}'),)
