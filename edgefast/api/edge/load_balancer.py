"""Load balancer: loadBalancer of a BackendTrafficPolicy: the endpoint choice of a backend.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy
Gateway gives them.
Source: RFC 6265 (names and attributes of cookies).
Must never: name an endpoint.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.edge.credentials import CookieName, ParamName
from edgefast.api.edge.zone_aware import ZoneAware
from edgefast.api.model.fields import Duration, Element, HTTPHeaderName, by_keys, expects

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
    """A header as source of the hash."""

    name: Annotated[HTTPHeaderName, Meta(description="Header name, not case-sensitive.")]


class HashParam(Element, frozen=True, kw_only=True):
    """A query parameter as source of the hash."""

    name: Annotated[
        ParamName,
        Meta(description="Name of the parameter, case-sensitive, without percent-encoding."),
    ]


class HashCookie(Element, frozen=True, kw_only=True):
    """A cookie as source of the hash."""

    name: Annotated[CookieName, Meta(description="Name of the cookie, case-sensitive.")]
    ttl: Annotated[
        WholeSeconds | None,
        Meta(
            description="Lifetime of the cookie that edgefast sets for clients without one. 0s: until "
            "the client's session ends. Absent: edgefast sets no cookie."
        ),
    ] = None
    attributes: Annotated[
        dict[AttributeName, AttributeValue],
        Meta(
            max_length=16,
            description='Attributes of the cookie that edgefast sets; "" is an attribute without a '
            "value (Secure). "
            "edgefast always adds Path=/ and HttpOnly, and computes Max-Age and Expires from ttl.",
        ),
    ] = {}


class HashPart(Element, frozen=True, kw_only=True):
    """One part of a request as source of the hash."""

    type: Annotated[
        Literal[
            "SourceIP", "Host", "RequestURI", "Path", "Query", "Header", "Cookie", "QueryParam"
        ],
        Meta(
            description="SourceIP: the client address. Host: without port, in lower case. RequestURI: path and query as sent. "
            "Path, Query: each of them. Header, Cookie, QueryParam: the one with `name`."
        ),
    ]
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=256)] | None,
        Meta(description="Name of the header, cookie or query parameter."),
    ] = None


class ConsistentHash(Element, frozen=True, kw_only=True):
    """Requests with the same hash go to the same endpoint."""

    type: Annotated[
        Literal["SourceIP", "Header", "Headers", "Cookie", "QueryParams", "Parts"],
        Meta(
            description="Source of the hash: the client address, or the field with the matching name."
        ),
    ]
    header: Annotated[HashHeader | None, Meta(description="One header.")] = None
    headers: Annotated[
        Annotated[tuple[HashHeader, ...], Meta(min_length=1, max_length=16)] | None,
        Meta(description="Headers. The hash includes all that the request has."),
    ] = None
    cookie: Annotated[HashCookie | None, Meta(description="A cookie.")] = None
    query_params: Annotated[
        Annotated[tuple[HashParam, ...], Meta(min_length=1, max_length=16, extra=by_keys("name"))]
        | None,
        Meta(description="Query parameters. The hash includes all that the request has."),
    ] = None
    parts: Annotated[
        Annotated[tuple[HashPart, ...], Meta(min_length=1, max_length=16)] | None,
        Meta(description="Parts of the request. The hash includes all of them, in their order."),
    ] = None


class SlowStart(Element, frozen=True, kw_only=True):
    """Slow start of new endpoints."""

    window: Annotated[
        Duration,
        Meta(
            description="Time in which a new endpoint goes from 10 percent to its full share, at most "
            "1h. The first endpoints of a backend get their full share immediately."
        ),
    ]


class LoadBalancer(Element, frozen=True, kw_only=True):
    """Selects the endpoint of a request."""

    type: Annotated[
        Literal["ConsistentHash", "LeastRequest", "RoundRobin", "Random"],
        Meta(
            description="ConsistentHash: by a hash of the request. LeastRequest (the default without a "
            "policy): fewest requests in flight. RoundRobin: in turn. Random: at random."
        ),
    ]
    consistent_hash: Annotated[
        ConsistentHash | None,
        Meta(
            description="Source of the hash. Required with type ConsistentHash, and only allowed "
            "there."
        ),
    ] = None
    slow_start: Annotated[
        SlowStart | None,
        Meta(
            description="Slow start of new endpoints. Only with types LeastRequest and RoundRobin."
        ),
    ] = None
    zone_aware: Annotated[
        ZoneAware | None,
        Meta(
            description="Prefers endpoints by zone. Not with type ConsistentHash. Absent: "
            "spec.trafficDistribution of the Service applies."
        ),
    ] = None
