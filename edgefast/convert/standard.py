r"""Standard: fields of the Gateway API in place of edgefast's annotation and HTTPRouteFilters, and what is lost by that.

In: pieces and the filters that their rules name. Out: the pieces changed in place, and a `Loss` for each thing that requests notice.
Policies stay: the Gateway API has none. A filter stays where no field of the Gateway API is near: a rewrite with groups, an answer
503 or 404.

| of edgefast | of the Gateway API |
|---|---|
| the order of rules | precedence: the longest path first |
| expressions of a host that are literal, or end in `(/|$)(.*)` | PathPrefix |
| rewrite of `/api(/|$)(.*)` to `/\2` | URLRewrite ReplacePrefixMatch |
| an answer with a Location | RequestRedirect |
| a cookie | a match of the header Cookie |

The order and the expressions stay on hosts with access rules or closed rules: which rule takes a request decides access there.
Must never: open what a rule closes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast
from urllib.parse import urlsplit

import msgspec

from edgefast.api.edge.httproutefilter import (
    HTTPCookieMatch,
    HTTPRouteFilterSpec,
)
from edgefast.api.edge.httproutefilter import HTTPRouteFilter as EdgeFilter
from edgefast.api.gateway.httproute import HTTPHeaderMatch, HTTPPathMatch, HTTPRouteRule
from edgefast.api.gateway.httproutefilter import (
    HTTPPathModifier,
    HTTPRequestRedirectFilter,
    HTTPRouteFilter,
    HTTPURLRewriteFilter,
)
from edgefast.api.model.origin import RuleOrigin
from edgefast.api.snapshot import Key
from edgefast.convert.comments import name_setting
from edgefast.convert.pieces import HTTP_FILTER, SECURITY, Piece, filter_names
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.ingress.redirects import Code

__all__ = ["Loss", "use_standard_fields"]

_LITERAL = r"/[A-Za-z0-9_~/-]*"
#: Expressions of locations.rule (path_pattern) whose path is literal, or a prefix with all below it.
_PLAIN = re.compile(rf"\(\?i:({_LITERAL})\)\(\?s:\.\*\)")
_BELOW = re.compile(rf"\(\?s:\.\*\?\)\(\?i:\^({_LITERAL})\(/\|\$\)\(\.\*\)\)\(\?s:\.\*\)")
#: The expression of a rewrite with such a path.
_REWRITE = re.compile(rf"\(\?s:\^\.\*\?\)\(\?i:({_LITERAL})\(/\|\$\)\(\.\*\)\)\(\?s:\.\*\)\$")
#: A target that is a prefix with what is below the path.
_TARGET = re.compile(rf"({_LITERAL})\\2")
_REDIRECTS = (301, 302, 303, 307, 308)
Rule = tuple[HTTPRouteRule, RuleOrigin]
Filters = Mapping[Key, EdgeFilter]


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that requests notice."""

    ingress: ObjectRef
    setting: str  # annotation or field
    how: str


def use_standard_fields(pieces: Sequence[Piece], filters: Filters) -> tuple[Loss, ...]:
    """Change the rules of the pieces; return what is lost, each once."""
    losses: dict[Loss, None] = {}
    hosts: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        hosts.setdefault((piece.parents, piece.hostnames), []).append(piece)
    for together in hosts.values():
        losses.update(dict.fromkeys(_Host(together, filters).change()))
    return tuple(losses)


class _Host:
    """All rules of the same hosts."""

    def __init__(self, pieces: Sequence[Piece], filters: Filters) -> None:
        self._pieces = pieces
        self._filters = filters
        rules = [(piece, rule) for piece in pieces for rule, _ in piece.rules]
        paths = [rule.matches[0].path for _, rule in rules]
        expressions = [one.value for one in paths if one.type == "RegularExpression"]
        # Which rule takes a request decides access where some rules of the host are closed or have access rules.
        self._is_guarded = any(self._is_closed(rule, piece) for piece, rule in rules)
        self._is_plain = (
            not self._is_guarded and bool(expressions) and all(map(_prefix_of, expressions))
        )

    def change(self) -> Iterator[Loss]:
        """Change the rules; give what is lost."""
        for piece in self._pieces:
            kept: list[Rule] = []
            for rule, origin in piece.rules:
                if _is_preflight(rule):
                    how = "redirects and access rules apply to preflight requests before CORS"
                    yield Loss(ingress=piece.ingress, setting="enable-cors", how=how)
                else:
                    change = _Change(rule, origin, piece, self._filters)
                    kept.append((change.apply(plain=self._is_plain), origin))
                    yield from change.losses
            if piece.ordered and not self._is_guarded:
                piece.ordered = False
                how = "the precedence of the Gateway API orders expressions and rules with equal paths"
                yield Loss(ingress=piece.ingress, setting="spec", how=how)
            piece.rules = kept

    def _is_closed(self, rule: HTTPRouteRule, piece: Piece) -> bool:
        specs = specs_of(rule, piece, self._filters)
        answers = [one.direct_response for one in specs if one.direct_response is not None]
        return any(table == SECURITY for table, _ in piece.policies) or any(
            one.status_code > 404 for one in answers
        )


def specs_of(rule: HTTPRouteRule, piece: Piece, filters: Filters) -> list[HTTPRouteFilterSpec]:
    """Return the HTTPRouteFilters of a rule."""
    return [filters[piece.namespace, name].spec for name in filter_names(rule)]


def _is_preflight(rule: HTTPRouteRule) -> bool:
    return rule.matches[0].method == "OPTIONS" and not rule.backend_refs


def _prefix_of(expression: str) -> str:
    """Return the prefix that an expression stands for, "" without one."""
    found = _PLAIN.fullmatch(expression) or _BELOW.fullmatch(expression)
    return found[1] if found is not None else ""


class _Change:
    """The change of one rule."""

    def __init__(
        self, rule: HTTPRouteRule, origin: RuleOrigin, piece: Piece, filters: Filters
    ) -> None:
        self.losses: list[Loss] = []
        self._rule = rule
        self._origin = origin
        self._piece = piece
        self._filters = filters

    def apply(self, *, plain: bool) -> HTTPRouteRule:
        """Return the rule with fields of the Gateway API; `plain`: all expressions of the host are prefixes."""
        origin = self._origin
        if origin.trim_slash or origin.write_port or origin.drop_query:
            self._lose(
                "the Location keeps a final slash and the query, and has no default port, as in the Gateway API"
            )
        if origin.http2:
            how = "backends get HTTP/2 only if the port of the Service has appProtocol kubernetes.io/h2c"
            self._lose(how, "backend-protocol")
        if plain:
            self._use_prefix()
        for one in self._rule.filters:
            if one.extension_ref is not None and one.extension_ref.kind == HTTP_FILTER:
                spec = self._filters[self._piece.namespace, one.extension_ref.name].spec
                self._replace(one, spec)
        return self._rule

    def _lose(self, how: str, setting: str = "") -> None:
        name = setting or name_setting(self._origin.path)
        if name.startswith("spec") or not name:
            name = "spec"
        self.losses.append(Loss(ingress=self._piece.ingress, setting=name, how=how))

    def _use_prefix(self) -> None:
        match = self._rule.matches[0]
        if match.path.type != "RegularExpression":
            return
        prefix = _prefix_of(match.path.value)
        if prefix != "/":
            how = "paths are case-sensitive and take whole segments; the longest one is tried first"
            self._lose(how, "spec")
        path = HTTPPathMatch(type="PathPrefix", value=prefix.removesuffix("/") or "/")
        self._set(matches=(msgspec.structs.replace(match, path=path),))

    def _set(self, **fields: object) -> None:
        self._rule = msgspec.structs.replace(self._rule, **fields)

    def _replace(self, filter: HTTPRouteFilter, spec: HTTPRouteFilterSpec) -> None:
        others = tuple(one for one in self._rule.filters if one is not filter)
        if spec.direct_response is not None:
            self._replace_answer(others, spec.direct_response.status_code)
        elif spec.url_rewrite is not None:
            rewrite = self._find_rewrite(spec)
            if rewrite is not None:
                made = HTTPURLRewriteFilter(path=rewrite)
                given = next((one for one in others if one.url_rewrite is not None), None)
                if given is not None and given.url_rewrite is not None:
                    made = msgspec.structs.replace(given.url_rewrite, path=rewrite)
                    others = tuple(one for one in others if one is not given)
                changed = HTTPRouteFilter(type="URLRewrite", url_rewrite=made)
                self._set(filters=(*others, changed))
        elif spec.matches and len(spec.matches) == len(spec.matches[0].cookies) == 1:
            match = self._rule.matches[0]
            headers = (*match.headers, _match_cookie(spec.matches[0].cookies[0]))
            changed_match = msgspec.structs.replace(match, headers=headers)
            self._set(filters=others, matches=(changed_match,))

    def _replace_answer(self, others: tuple[HTTPRouteFilter, ...], status: int) -> None:
        if status >= 400:
            return  # without its filter the rule would be a mistake, and answer 500
        for one in others:
            headers = one.response_header_modifier
            found = (
                next((each for each in headers.set if each.name == "location"), None)
                if headers
                else None
            )
            if headers is None or found is None:
                continue
            redirect = _redirect_to(found.value, status)
            if redirect is None:
                return
            left = tuple(each for each in headers.set if each is not found)
            kept = tuple(each for each in others if each is not one)
            if left:
                modifier = msgspec.structs.replace(headers, set=left)
                kept += (msgspec.structs.replace(one, response_header_modifier=modifier),)
            self._lose("the Location keeps the query of the request")
            made = HTTPRouteFilter(type="RequestRedirect", request_redirect=redirect)
            self._set(filters=(made, *kept))

    def _find_rewrite(self, spec: HTTPRouteFilterSpec) -> HTTPPathModifier | None:
        """Return the change of the path as a field of the Gateway API, None without one."""
        assert spec.url_rewrite is not None
        found = spec.url_rewrite.path.replace_regex_match
        if found is None:
            return None
        if "\\" not in found.substitution:
            return HTTPPathModifier(type="ReplaceFullPath", replace_full_path=found.substitution)
        target = _TARGET.fullmatch(found.substitution)
        whole = _REWRITE.fullmatch(found.pattern)
        path = self._rule.matches[0].path
        if target is None or whole is None or path.type != "PathPrefix" or path.value != whole[1]:
            return None
        if target[1] != "/":
            self._lose(
                "the path itself is rewritten without the slash at its end", "rewrite-target"
            )
        return HTTPPathModifier(type="ReplacePrefixMatch", replace_prefix_match=target[1])


def _match_cookie(cookie: HTTPCookieMatch) -> HTTPHeaderMatch:
    value = cookie.value if cookie.type == "RegularExpression" else re.escape(cookie.value)
    expression = f"(?s)(.*;)? *{re.escape(cookie.name)}={value} *(;.*)?"
    return HTTPHeaderMatch(type="RegularExpression", name="cookie", value=expression)


def _redirect_to(url: str, status: int) -> HTTPRequestRedirectFilter | None:
    """Return a redirect to a URL; None if the URL has parts that a redirect does not have."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or status not in _REDIRECTS:
        return None
    if parts.query or parts.fragment or parts.username:
        return None
    return HTTPRequestRedirectFilter(
        scheme="https" if parts.scheme == "https" else "http",
        hostname=parts.hostname,
        port=port,
        path=HTTPPathModifier(type="ReplaceFullPath", replace_full_path=parts.path or "/"),
        status_code=cast("Code", status),
    )
