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
    AS_SET,
    Duration,
    Element,
    HTTPHeaderName,
    HTTPHeaderValue,
    PortNumber,
    PreciseHostname,
    by_keys,
    expects,
)
from edgefast.api.model.reference import BackendObjectReference

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
    source: Annotated[
        Literal["All", "Backend", "Gateway", "NoEndpoints"],
        Meta(
            description="Whose answers match. Backend: of a backend. Gateway: of edgefast itself. NoEndpoints: 503 of edgefast "
            "for a backend without ready endpoints."
        ),
    ] = "All"


class FixedHeader(Element, frozen=True, kw_only=True):
    """A header with a fixed value."""

    name: Annotated[HTTPHeaderName, Meta(description="Name of the header.")]
    value: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)],
        Meta(description="Value: printable ASCII characters and tabs."),
    ]


FixedHeaders = Annotated[tuple[FixedHeader, ...], Meta(max_length=16, extra=by_keys("name"))]


class ResponseHeaderEdits(Element, frozen=True, kw_only=True):
    """Edits of the headers of the new answer."""

    set: Annotated[
        FixedHeaders, Meta(description="Headers in place of those of the same name.")
    ] = ()
    add: Annotated[FixedHeaders, Meta(description="Further headers.")] = ()
    remove: Annotated[
        Annotated[tuple[HTTPHeaderName, ...], Meta(max_length=16, extra=AS_SET)],
        Meta(description="Names of headers to remove."),
    ] = ()


class CustomResponse(Element, frozen=True, kw_only=True):
    """The new answer."""

    status_code: Annotated[Status | None, Meta(description="New status. Absent: unchanged.")] = None
    content_type: Annotated[
        HTTPHeaderValue | None, Meta(description="New content-type. Absent: none.")
    ] = None
    body: Annotated[DirectResponseBody | None, Meta(description="New body. Absent: empty.")] = None
    header: Annotated[
        ResponseHeaderEdits | None, Meta(description="Edits of the headers of the new answer.")
    ] = None


class ErrorService(Element, frozen=True, kw_only=True):
    """A service that writes the new answer. edgefast calls it with GET."""

    backend_ref: Annotated[BackendObjectReference, Meta(description="The service.")]
    path: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=1024,
                pattern=r"^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})*\Z",
                extra=expects("a path such as /"),
            ),
        ]
        | None,
        Meta(
            description="Path of the call. The query of the request follows. Absent: the path of the request."
        ),
    ] = None
    hostname: Annotated[
        PreciseHostname | None,
        Meta(description="Host of the call. Absent: the Host of the request."),
    ] = None
    status: Annotated[
        Literal["Original", "Service"],
        Meta(
            description="Status of the new answer. Original: that of the replaced answer. Service: that of the service."
        ),
    ] = "Original"
    request_headers: Annotated[
        Annotated[tuple[HTTPHeaderName, ...], Meta(max_length=64, extra=AS_SET)],
        Meta(description="Headers of the request that the service gets."),
    ] = ("accept", "accept-encoding", "accept-language", "user-agent")
    all_request_headers: Annotated[
        bool,
        Meta(
            description="The service gets all headers of the request, except authorization, framing headers, conditions and "
            "headers of the proxy."
        ),
    ] = False
    headers: Annotated[
        tuple[FixedHeader, ...],
        Meta(
            max_length=16,
            extra=by_keys("name"),
            description="Headers with a fixed value that the service gets, in place of those of the client.",
        ),
    ] = ()
    timeout: Annotated[
        Duration,
        Meta(description="Time for the whole call, more than 0s and at most 60s."),
    ] = "5s"


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
    service: Annotated[
        ErrorService | None,
        Meta(
            description="Service that writes the answer. It gets x-code (the original status), x-format (the request's Accept), "
            "x-original-uri and x-request-id. If it fails, the client gets the original status without a body."
        ),
    ] = None
