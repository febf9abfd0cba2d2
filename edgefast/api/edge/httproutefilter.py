"""HTTPRouteFilter: what the standard's filters of a rule cannot do, attached by an ExtensionRef filter.

In: `gateway.edge.io/v1alpha1` documents. Out: `HTTPRouteFilter`, the object. Its fields have the
names that Envoy Gateway gives them. `gateway/httproutefilter.py` has the filters of a route's list,
with a Struct of the same name.
Must never: read a ConfigMap; translate does.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import (
    Element,
    HTTPHeaderName,
    HTTPHeaderValue,
    Resource,
    by_keys,
    expects,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import LocalObjectReference

#: Characters of an answer that stands in the filter, and bytes of one that a ConfigMap has.
MAX_ANSWER_BODY = 64 * 1024

_SUBSTITUTION = r"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2}|\\[0-9])*\Z"


class ReplaceRegexMatch(Element, frozen=True, kw_only=True):
    r"""Parts of the path that an expression finds, and what they become; `\1` is what the first group found."""

    pattern: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)],
        Meta(description="RE2 expression. Every match in the path is replaced."),
    ]
    substitution: Annotated[
        Annotated[
            str,
            Meta(
                max_length=1024,
                pattern=_SUBSTITUTION,
                extra=expects(r"characters of a path, with \1 to \9 for groups"),
            ),
        ],
        Meta(description=r"Replacement: \1 to \9 are the groups, \0 all of it."),
    ]


class RegexPathModifier(Element, frozen=True, kw_only=True):
    """A change of the path towards the backend."""

    type: Annotated[Literal["ReplaceRegexMatch"], Meta(description="The only supported type.")]
    replace_regex_match: Annotated[
        ReplaceRegexMatch | None,
        Meta(description="Expression and replacement; required with type ReplaceRegexMatch."),
    ] = None


class RegexURLRewrite(Element, frozen=True, kw_only=True):
    """A change of the request towards the backend."""

    path: Annotated[RegexPathModifier, Meta(description="Change of the path.")]


class DirectResponseBody(Element, frozen=True, kw_only=True):
    """The body of an answer."""

    type: Annotated[
        Literal["Inline", "ValueRef"],
        Meta(
            description="Inline: the field `inline` contains the body. ValueRef: a ConfigMap contains "
            "it."
        ),
    ] = "Inline"
    inline: Annotated[
        Annotated[str, Meta(max_length=MAX_ANSWER_BODY)] | None,
        Meta(description="The body; required with type Inline."),
    ] = None
    value_ref: Annotated[
        LocalObjectReference | None,
        Meta(
            description="ConfigMap of the filter's namespace: its key response.body, or its only one. Required with type "
            "ValueRef."
        ),
    ] = None


class DirectResponse(Element, frozen=True, kw_only=True):
    """An answer of the proxy without a backend."""

    status_code: Annotated[
        Annotated[int, Meta(ge=200, le=599)], Meta(description="Status of the answer.")
    ] = 200
    content_type: Annotated[
        HTTPHeaderValue | None, Meta(description="Its content-type. Absent: none.")
    ] = None
    body: Annotated[DirectResponseBody | None, Meta(description="Its body. Absent: none.")] = None


class RedirectLocation(Element, frozen=True, kw_only=True):
    """A Location that is made of parts of the request."""

    template: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)],
        Meta(
            description=r"The Location: an address of http or https, or a path. \1 to \9 are groups of the pattern. Variables: {host} (name in "
            "Host), {authority} (Host with its port), {scheme}, {target} (path and query), {escapedTarget} (as a value in a query), "
            "{path}, {query}. Groups, {query} and {escapedTarget} must follow a slash."
        ),
    ]
    pattern: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | None,
        Meta(
            description="RE2 expression that is searched in the path. Without a match the rule answers 500. Absent: no groups."
        ),
    ] = None


class RedirectForm(Element, frozen=True, kw_only=True):
    """The form of the Location of a redirect."""

    trailing_slash: Annotated[
        Literal["Keep", "Remove"],
        Meta(description="Remove: the Location has no slash at its end, in path or query."),
    ] = "Keep"
    port: Annotated[
        Literal["Default", "Always"],
        Meta(description="Always: the Location has a port, also the default port of its scheme."),
    ] = "Default"
    query: Annotated[
        Literal["Keep", "Remove"],
        Meta(description="Remove: the Location has no query of the request."),
    ] = "Keep"
    location: Annotated[
        RedirectLocation | None,
        Meta(
            description="Location in place of scheme, hostname, port and path of the RequestRedirect. The query of the request follows, "
            "unless `query` is Remove."
        ),
    ] = None


class HTTPCookieMatch(Element, frozen=True, kw_only=True):
    """A cookie that a request must have."""

    type: Annotated[
        Literal["Exact", "RegularExpression"],
        Meta(description="RegularExpression (RE2) must match all of the cookie's value."),
    ] = "Exact"
    name: Annotated[HTTPHeaderName, Meta(description="Name of the cookie, case-sensitive.")]
    value: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)],
        Meta(description="Value or expression."),
    ]


class HTTPRouteFilterMatch(Element, frozen=True, kw_only=True):
    """Conditions. All must match."""

    cookies: Annotated[
        tuple[HTTPCookieMatch, ...],
        Meta(
            min_length=1,
            max_length=16,
            extra=by_keys("name"),
            description="Cookies. All must match.",
        ),
    ]


class HTTPRouteFilterSpec(Element, frozen=True, kw_only=True):
    """`spec` of an HTTPRouteFilter."""

    url_rewrite: Annotated[
        RegexURLRewrite | None, Meta(description="A change of the path by a regular expression.")
    ] = None
    direct_response: Annotated[
        DirectResponse | None,
        Meta(
            description="An answer without a backend. The rule needs no backendRefs; existing ones get "
            "no requests."
        ),
    ] = None
    redirect: Annotated[
        RedirectForm | None,
        Meta(
            description="The form of the Location of the rule's RequestRedirect, which must exist."
        ),
    ] = None
    backend_protocol: Annotated[
        Literal["HTTP2"] | None,
        Meta(
            description="HTTP2: backends of the rule get HTTP/2, whatever the appProtocol of their port. Absent: appProtocol "
            "decides."
        ),
    ] = None
    matches: Annotated[
        tuple[HTTPRouteFilterMatch, ...],
        Meta(
            max_length=8,
            description="Further conditions of the rule. A request must match one of the rule's "
            "matches and one of these.",
        ),
    ] = ()


class HTTPRouteFilter(Resource, frozen=True, kw_only=True):
    """Rewrites by expression, answers of the proxy, forms of redirects and matches of cookies, for a rule of an HTTPRoute."""

    metadata: ObjectMeta
    spec: HTTPRouteFilterSpec
    #: Written by the decoder and never by a document: it only stands for one with a mistake.
    closed: Closed | None = None
