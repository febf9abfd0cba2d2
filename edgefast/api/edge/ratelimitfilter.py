"""RateLimitFilter: limits shared by all proxies or of each machine, attached to a rule by an ExtensionRef filter.

In: `gateway.edge.io/v1alpha1` documents. Out: `RateLimitFilter`.
Source: spec sections 2 (RateLimitFilter) and 8 (limits).
Must never: name a counter or a store; that belongs to translate and ratelimit.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import CIDR, Element, HTTPHeaderName, Resource, by_keys
from edgefast.api.model.meta import ObjectMeta


class RateLimitHeaderMatch(Element, frozen=True, kw_only=True):
    """A header that a request must have."""

    name: Annotated[HTTPHeaderName, Meta(description="Header name, not case-sensitive.")]
    type: Annotated[
        Literal["Exact", "RegularExpression", "Distinct"],
        Meta(
            description="Exact and RegularExpression (RE2) compare `value`; Distinct gives each "
            "value of the header a counter of its own."
        ),
    ] = "Exact"
    value: Annotated[
        Annotated[str, Meta(max_length=1024)] | None,
        Meta(description="Value or expression; absent with Distinct."),
    ] = None


class RateLimitSourceCIDR(Element, frozen=True, kw_only=True):
    """Client addresses of a request."""

    value: Annotated[
        CIDR | None,
        Meta(
            description="Range of client addresses, IPv4 or IPv6. Absent, with type Distinct: all addresses."
        ),
    ] = None
    type: Annotated[
        Literal["Exact", "Distinct"],
        Meta(description="Exact: one counter for the range. Distinct: one for each address."),
    ] = "Exact"
    except_: Annotated[
        tuple[CIDR, ...],
        Meta(
            max_length=256,
            description="Exempt ranges: requests of these clients are not counted.",
        ),
    ] = field(default=(), name="except")


class RateLimitSelector(Element, frozen=True, kw_only=True):
    """Conditions on a request. All must match."""

    headers: Annotated[
        tuple[RateLimitHeaderMatch, ...],
        Meta(max_length=16, extra=by_keys("name"), description="Headers. All must match."),
    ] = ()
    source_cidr: Annotated[RateLimitSourceCIDR | None, Meta(description="Client addresses.")] = (
        field(default=None, name="sourceCIDR")
    )


class RateLimitValue(Element, frozen=True, kw_only=True):
    """Limit of requests for each window. Windows begin at whole units of Unix time."""

    requests: Annotated[
        int,
        Meta(
            ge=0, le=4294967295, description="Requests that are allowed in a window. 0 denies all."
        ),
    ]
    unit: Annotated[
        Literal["Second", "Minute", "Hour", "Day", "Week", "Month", "Year"],
        Meta(
            description="Length of the window. Week: 7 days, Month: 30 days, Year: 365 days; all "
            "are counted from the beginning of 1970, UTC."
        ),
    ]


class RateLimitRule(Element, frozen=True, kw_only=True):
    """One limit. Every rule with matching selectors counts a request, and each can deny it."""

    client_selectors: Annotated[
        tuple[RateLimitSelector, ...],
        Meta(
            max_length=8,
            description="Selects the requests that are counted; all selectors must match. Absent: all "
            "requests of the route rule.",
        ),
    ] = ()
    limit: Annotated[RateLimitValue, Meta(description="The limit.")]
    shadow: Annotated[
        bool, Meta(description="Counts and reports, but never refuses a request.")
    ] = False
    algorithm: Annotated[
        Literal["FixedWindow", "SlidingWindow"],
        Meta(
            description="FixedWindow: windows follow the clock. SlidingWindow: the previous window "
            "counts in part, which prevents bursts at a boundary."
        ),
    ] = "FixedWindow"


class GlobalRateLimit(Element, frozen=True, kw_only=True):
    """Limits with counters that all proxies share."""

    rules: Annotated[
        tuple[RateLimitRule, ...],
        Meta(min_length=1, max_length=16, description="Limits; each applies on its own."),
    ]


class LocalRateLimitRule(Element, frozen=True, kw_only=True):
    """One limit of each machine. Every rule with matching selectors counts a request, and each can deny it."""

    client_selectors: Annotated[
        tuple[RateLimitSelector, ...],
        Meta(
            max_length=8,
            description="Selects the requests that are counted; all selectors must match. Absent: all "
            "requests of the route rule.",
        ),
    ] = ()
    limit: Annotated[
        RateLimitValue | None,
        Meta(
            description="Rate of a token bucket: `requests` tokens arrive evenly in each `unit`. Set this or `maxParallelRequests`."
        ),
    ] = None
    burst: Annotated[
        Annotated[int, Meta(ge=1, le=4294967295)] | None,
        Meta(
            description="Tokens of a full bucket: most requests that pass at once. Absent: `limit.requests`."
        ),
    ] = None
    max_parallel_requests: Annotated[
        Annotated[int, Meta(ge=0, le=4294967295)] | None,
        Meta(description="Most requests in progress. Set this or `limit`."),
    ] = None
    status_code: Annotated[
        int, Meta(ge=400, le=599, description="Status of a refused request.")
    ] = 429
    shared: Annotated[
        bool,
        Meta(
            description="true: all rules of routes that use this filter count together. false: each has its own counters."
        ),
    ] = False
    shadow: Annotated[
        bool, Meta(description="Counts and reports, but never refuses a request.")
    ] = False


class LocalRateLimit(Element, frozen=True, kw_only=True):
    """Limits that the workers of one machine count together."""

    rules: Annotated[
        tuple[LocalRateLimitRule, ...],
        Meta(min_length=1, max_length=16, description="Limits; each applies on its own."),
    ]


class RateLimitFilterSpec(Element, frozen=True, kw_only=True):
    """`spec` of a RateLimitFilter."""

    type: Annotated[
        Literal["Global", "Local"],
        Meta(
            description="Global: counters are shared by all proxies. Local: each machine counts for itself, without a store."
        ),
    ]
    global_: Annotated[
        GlobalRateLimit | None,
        Meta(description="The limits; required with type Global, and only allowed there."),
    ] = field(default=None, name="global")
    local: Annotated[
        LocalRateLimit | None,
        Meta(description="The limits; required with type Local, and only allowed there."),
    ] = None


class RateLimitFilter(Resource, frozen=True, kw_only=True):
    """Limits for the requests of an HTTPRoute rule."""

    metadata: ObjectMeta
    spec: RateLimitFilterSpec
    #: Written by the decoder and never by a document: it only stands for one with a mistake.
    closed: Closed | None = None
