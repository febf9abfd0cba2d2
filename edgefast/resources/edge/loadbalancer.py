"""Which endpoint of a backend gets a request, as a BackendTrafficPolicy says it.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Source: RFC 6265 (names and attributes of cookies).
Must never: name an endpoint.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.resources.edge.credentials import CookieName, ParamName
from edgefast.resources.edge.zoneaware import ZoneAware
from edgefast.resources.model.fields import Duration, Element, HTTPHeaderName, by_keys, expects

#: Of each: headers, parameters, attributes.
MAX_PARTS = 16

WholeSeconds = Annotated[
    str,
    Meta(
        pattern=r"^([0-9]{1,5}(h|m|s)){1,4}\Z",
        extra=expects("a duration of whole seconds such as 0s, 10s or 1h30m"),
    ),
]
AttributeName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9!#$%&'*+\-.^_`|~]+\Z",
        extra=expects("the name of an attribute such as SameSite"),
    ),
]
AttributeValue = Annotated[
    str,
    Meta(
        max_length=256,
        pattern=r"^[ -:<-~]*\Z",
        extra=expects("the value of an attribute: printable ASCII without ;"),
    ),
]


class HashHeader(Element, frozen=True, kw_only=True):
    """A header that requests are told apart by."""

    name: Annotated[HTTPHeaderName, Meta(description="Header name, without case.")]


class HashParam(Element, frozen=True, kw_only=True):
    """A parameter of the query that requests are told apart by."""

    name: Annotated[
        ParamName, Meta(description="Its name with its case, without percent-encoding.")
    ]


class HashCookie(Element, frozen=True, kw_only=True):
    """A cookie that requests are told apart by."""

    name: Annotated[CookieName, Meta(description="Its name with its case.")]
    ttl: Annotated[
        WholeSeconds | None,
        Meta(
            description="How long clients keep the cookie that they are given where they have none; 0s: until their session ends. "
            "Absent: they are given none."
        ),
    ] = None
    attributes: Annotated[
        dict[AttributeName, AttributeValue],
        Meta(
            max_length=16,
            description='Attributes of such a cookie; "" is one without a value (Secure). Path=/ and HttpOnly are there by '
            "themselves, Max-Age and Expires are what ttl says.",
        ),
    ] = {}


class ConsistentHash(Element, frozen=True, kw_only=True):
    """What requests have in common that get the same endpoint."""

    type: Annotated[
        Literal["SourceIP", "Header", "Headers", "Cookie", "QueryParams"],
        Meta(description="What it is: the client's address, or what the field of that name says."),
    ]
    header: Annotated[HashHeader | None, Meta(description="One header.")] = None
    headers: Annotated[
        Annotated[tuple[HashHeader, ...], Meta(min_length=1, max_length=16)] | None,
        Meta(description="Headers, all those together that a request has."),
    ] = None
    cookie: Annotated[HashCookie | None, Meta(description="A cookie.")] = None
    query_params: Annotated[
        Annotated[tuple[HashParam, ...], Meta(min_length=1, max_length=16, extra=by_keys("name"))]
        | None,
        Meta(description="Parameters of the query, all those together that a request has."),
    ] = None


class SlowStart(Element, frozen=True, kw_only=True):
    """How a new endpoint begins."""

    window: Annotated[
        Duration,
        Meta(
            description="In this time it comes to its share, from a tenth of it on; at most 1h. Not those that a backend begins with."
        ),
    ]


class LoadBalancer(Element, frozen=True, kw_only=True):
    """By what a request's endpoint is chosen."""

    type: Annotated[
        Literal["ConsistentHash", "LeastRequest", "RoundRobin", "Random"],
        Meta(
            description="By what requests have in common, by what endpoints have in flight (as without any policy), each endpoint "
            "in its turn, or by chance."
        ),
    ]
    consistent_hash: Annotated[
        ConsistentHash | None, Meta(description="With type ConsistentHash, and only there.")
    ] = None
    slow_start: Annotated[
        SlowStart | None, Meta(description="With types LeastRequest and RoundRobin.")
    ] = None
    zone_aware: Annotated[
        ZoneAware | None,
        Meta(
            description="Which zones' endpoints come first, of all types but ConsistentHash. Absent: as the Service says it "
            "(spec.trafficDistribution)."
        ),
    ] = None
