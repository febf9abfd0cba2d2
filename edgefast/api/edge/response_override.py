"""Response override: responseOverride of a BackendTrafficPolicy.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy
Gateway gives them.
Must never: look a ConfigMap up.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.edge.httproutefilter import DirectResponseBody
from edgefast.api.model.fields import (
    Element,
    HTTPHeaderValue,
    PortNumber,
    PreciseHostname,
    expects,
)

Status = Annotated[int, Meta(ge=200, le=599)]


class StatusCodeRange(Element, frozen=True, kw_only=True):
    """Statuses from one to another."""

    start: Annotated[Status, Meta(description="The first.")]
    end: Annotated[Status, Meta(description="The last.")]


class StatusCodeMatch(Element, frozen=True, kw_only=True):
    """A status, or a range of them."""

    type: Annotated[Literal["Value", "Range"], Meta(description="Selects `value` or `range`.")] = (
        "Value"
    )
    value: Annotated[Status | None, Meta(description="The status.")] = None
    range: Annotated[StatusCodeRange | None, Meta(description="The range.")] = None


class CustomResponseMatch(Element, frozen=True, kw_only=True):
    """Selects answers."""

    status_codes: Annotated[
        tuple[StatusCodeMatch, ...],
        Meta(min_length=1, max_length=50, description="Statuses to match."),
    ]


class CustomResponse(Element, frozen=True, kw_only=True):
    """The new answer."""

    status_code: Annotated[Status | None, Meta(description="New status. Absent: unchanged.")] = None
    content_type: Annotated[
        HTTPHeaderValue | None, Meta(description="New content-type. Absent: none.")
    ] = None
    body: Annotated[DirectResponseBody | None, Meta(description="New body. Absent: empty.")] = None


class ReplacedPath(Element, frozen=True, kw_only=True):
    """A path."""

    type: Annotated[Literal["ReplaceFullPath"], Meta(description="Always this.")] = (
        "ReplaceFullPath"
    )
    replace_full_path: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=1024,
                pattern=r"^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})*\Z",
                extra=expects("a path such as /sorry"),
            ),
        ],
        Meta(description="The path."),
    ]


class CustomRedirect(Element, frozen=True, kw_only=True):
    """A redirect as the new answer."""

    scheme: Annotated[
        Literal["http", "https"] | None, Meta(description="Absent: the request's.")
    ] = None
    hostname: Annotated[PreciseHostname, Meta(description="Where to.")]
    port: Annotated[
        PortNumber | None, Meta(description="Absent: the default port of the scheme.")
    ] = None
    path: Annotated[ReplacedPath | None, Meta(description="Absent: /.")] = None
    status_code: Annotated[Literal[301, 302], Meta(description="Its status.")] = 302


class ResponseOverride(Element, frozen=True, kw_only=True):
    """Replaces an answer. The first override with a matching `match` applies."""

    match: Annotated[CustomResponseMatch, Meta(description="Selects answers.")]
    response: Annotated[
        CustomResponse | None, Meta(description="Answer that replaces the original one.")
    ] = None
    redirect: Annotated[
        CustomRedirect | None, Meta(description="Redirect that replaces the original answer.")
    ] = None
