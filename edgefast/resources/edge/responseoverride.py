"""Answers in place of others, as a BackendTrafficPolicy asks for them.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Must never: look a ConfigMap up.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.resources.edge.httproutefilter import DirectResponseBody
from edgefast.resources.model.fields import (
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

    type: Annotated[Literal["Value", "Range"], Meta(description="Which of the fields says it.")] = (
        "Value"
    )
    value: Annotated[Status | None, Meta(description="The status.")] = None
    range: Annotated[StatusCodeRange | None, Meta(description="The range.")] = None


class CustomResponseMatch(Element, frozen=True, kw_only=True):
    """Which answers."""

    status_codes: Annotated[
        tuple[StatusCodeMatch, ...],
        Meta(min_length=1, max_length=50, description="One of which is the answer's."),
    ]


class CustomResponse(Element, frozen=True, kw_only=True):
    """The answer that is given."""

    status_code: Annotated[Status | None, Meta(description="Its status. Absent: as it was.")] = None
    content_type: Annotated[
        HTTPHeaderValue | None, Meta(description="Its content-type. Absent: none.")
    ] = None
    body: Annotated[
        DirectResponseBody | None, Meta(description="Its body. Absent: an empty one.")
    ] = None


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
    """A redirect that is given."""

    scheme: Annotated[
        Literal["http", "https"] | None, Meta(description="Absent: the request's.")
    ] = None
    hostname: Annotated[PreciseHostname, Meta(description="Where to.")]
    port: Annotated[PortNumber | None, Meta(description="Absent: the scheme's own.")] = None
    path: Annotated[ReplacedPath | None, Meta(description="Absent: /.")] = None
    status_code: Annotated[Literal[301, 302], Meta(description="Its status.")] = 302


class ResponseOverride(Element, frozen=True, kw_only=True):
    """An answer in place of others; the first whose `match` holds is given."""

    match: Annotated[CustomResponseMatch, Meta(description="Which answers.")]
    response: Annotated[CustomResponse | None, Meta(description="What is answered.")] = None
    redirect: Annotated[CustomRedirect | None, Meta(description="Where the client is sent.")] = None
