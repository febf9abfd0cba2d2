"""Backend: the endpoint choice of a backend, as policies set it.

In: written by `translate` only. Out: leaves of an ir.Traffic. Names of headers are lower case.
Durations are seconds here: they go into cookies.
Must never: decide which backend a request goes to; rules do.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from edgefast.ir.telemetry import Struct


class ZoneAware(Struct, frozen=True, gc=False):
    """How far endpoints in the proxy's own zone come first (BackendTrafficPolicy loadBalancer.zoneAware).

    Endpoints are those that are well. What does not hold leaves endpoints of all zones alike.
    """

    percent: int = 100  # of requests that this is for; 0: none, whatever the backend's Service says
    min_endpoints: int = 6  # so many of all zones at least
    # So many in the own zone at least, and every request stays there; 0: only as many stay as keeps endpoints of all zones equally busy.
    force: int = 0
    # By zone, sorted: how much each gets, whichever zone the proxy is in; one that is not here weighs 1. (): the own zone comes first.
    weights: tuple[tuple[str, int], ...] = ()


class Proxies(Struct, frozen=True, gc=False):
    """The proxies of a fleet, whose zones count somewhere: of a fleet that has no zoned backend there is none of it."""

    shares: tuple[tuple[str, int], ...] = ()  # by zone, sorted: proxies that are ready there
    zones: tuple[tuple[str, str], ...] = ()  # by a proxy's name, sorted: its zone, ready or not


class HashCookie(Struct, frozen=True, gc=False):
    """A cookie whose value requests are told apart by."""

    name: str
    # Of one that clients without it are given: 0 is till the client's session ends; None: they are given none.
    ttl: int | None = None
    attributes: str = ""  # of such a one: "; Path=/; Secure", as they are written


class OutlierDetection(Struct, frozen=True, gc=False):
    """Endpoints that are left out for a while (BackendTrafficPolicy healthCheck.passive). Times are milliseconds here."""

    server: int = 5  # answers of 5xx in a row; 0: never
    gateway: int = 0  # answers of 502, 503, 504 in a row
    # Connects and connections that fail in a row; None: they count as an answer of 502 would.
    local: int | None = None
    base: int = 30_000  # out for so long, times how often it was
    interval: int = 0  # till the next multiple of this; 0: to the millisecond
    # Percent of an interval's answers that fail, and it is out; 0: none are too many. Without an interval it is 3 seconds.
    failures: int = 0
    percent: int = 50  # of a cluster's endpoints that may be out
    always_one: bool = False  # one may, however few there are


class HealthCheck(Struct, frozen=True, gc=False):
    """What endpoints are asked (BackendTrafficPolicy healthCheck.active). Times are milliseconds here."""

    kind: Literal["http", "tcp", "grpc"]
    interval: int = 3000
    timeout: int = 1000
    jitter: int = 0  # the first one comes within this time
    unhealthy: int = 3  # failures in a row, and it gets no requests
    healthy: int = 1  # good answers in a row, and it gets them again
    port: int = 0  # where it is asked; 0: where it serves
    path: str = ""  # of http
    host: str = ""  # "": the endpoint's own name or address
    method: str = "GET"
    statuses: tuple[int, ...] = (200,)  # sorted; that are good
    counted: tuple[
        int, ...
    ] = ()  # sorted; of which it takes `unhealthy` in a row; any other is enough at once
    expects: bytes = b""  # somewhere in the first 64 KiB of a good answer's body, or of what comes on the connection
    sends: bytes = b""  # of tcp; of http the request's body
    service: str = ""  # of grpc; "": all of the server


class RetryBudget(Struct, frozen=True, gc=False):
    """Repeats as a part of a cluster's requests (BackendTrafficPolicy circuitBreaker.retryBudget)."""

    numerator: int
    denominator: int = 100
    least: int = 3  # so many at least


class RetryConstraint(Struct, frozen=True, gc=False):
    """Repeats as a part of all tries of a cluster in an interval (XBackendTrafficPolicy retryConstraint). Times are milliseconds here."""

    percent: int = 20
    interval: int = 10_000
    count: int = 10  # so many in `count_interval` at least
    count_interval: int = 1000


class HashPart(Struct, frozen=True, gc=False):
    """One of several parts of a request that decide together."""

    kind: Literal["source", "host", "target", "path", "query", "header", "cookie", "param"]
    name: str = ""  # of the last three; of a header in lower case


class HashPolicy(Struct, frozen=True, gc=False):
    """What of a request decides which endpoint it gets: one of its parts (BackendTrafficPolicy loadBalancer.consistentHash).

    A request that has nothing of it gets one by least requests.
    """

    source: bool = False  # the client's address
    headers: tuple[str, ...] = ()  # those that the request has, together
    cookie: HashCookie | None = None
    params: tuple[str, ...] = ()  # of its query, as well
    parts: tuple[HashPart, ...] = ()  # all of them, in their order


class LoadBalancer(Struct, frozen=True, gc=False):
    """By what a request's endpoint is chosen (BackendTrafficPolicy loadBalancer). Weights of endpoints count with all of them."""

    # The less busy one of two, as without any policy; each in its turn; any; the one that `hash` finds.
    type: Literal["least_request", "round_robin", "random", "hash"] = "least_request"
    hash: HashPolicy | None = None  # of "hash", and of nothing else
    slow_start: int = (
        0  # milliseconds in which a new endpoint comes to its share; of the first two; 0: at once
    )
    zones: ZoneAware | None = None  # never of "hash"; None: as the backend's Service says


class SessionPersistence(Struct, frozen=True, gc=False):
    """Clients that stay with the endpoint that served them first (XBackend, BackendTrafficPolicy, HTTPRoute, GRPCRoute sessionPersistence)."""

    name: str = (
        ""  # of the cookie or header, that one in lower case; "": `name_session` of the rule
    )
    header: bool = False
    # Milliseconds here; 0: without end.
    absolute: int = 0
    idle: int = 0
    permanent: bool = False  # the cookie says when it ends, which is after `absolute`
    path: str = "/"  # of cookies
    domain: str = ""  # of cookies; "": the host of the request alone
    # of cookies: none_if_supported leaves it out for clients that reject None
    same_site: Literal["strict", "lax", "none", "none_if_supported", "unset"] = "strict"
    secure: bool = False  # of cookies, also without TLS
    stays: bool = False  # when its endpoint fails, while that exists
    first: bool = False  # before weights: it keeps its backend, too


def name_session(route: str, rule: str | int) -> str:
    """Return what sessions of a rule, or of an XBackend, are called where nobody says it: as no other rule's, and the same everywhere."""
    named = f"{route}\0{rule}".encode()
    return f"edge-session-{hashlib.blake2s(named, digest_size=8).hexdigest()}"
