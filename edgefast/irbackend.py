"""Which endpoint of a backend gets a request, as policies say it.

In: written by `translate` only. Out: leaves of an ir.Traffic. Names of headers are lower case. Durations are seconds here: they go into cookies.
Must never: be what decides which backend a request goes to; rules do.
"""

from __future__ import annotations

from typing import Literal

from edgefast.irtelemetry import Struct


class HashCookie(Struct, frozen=True, gc=False):
    """A cookie whose value requests are told apart by."""

    name: str
    # Of one that clients without it are given: 0 is till the client's session ends; None: they are given none.
    ttl: int | None = None
    attributes: str = ""  # of such a one: "; Path=/; Secure", as they are written


class HashPolicy(Struct, frozen=True, gc=False):
    """What of a request decides which endpoint it gets: one of its parts (BackendTrafficPolicy loadBalancer.consistentHash).

    A request that has nothing of it gets one by least requests.
    """

    source: bool = False  # the client's address
    headers: tuple[str, ...] = ()  # those that the request has, together
    cookie: HashCookie | None = None
    params: tuple[str, ...] = ()  # of its query, as well


class LoadBalancer(Struct, frozen=True, gc=False):
    """By what a request's endpoint is chosen (BackendTrafficPolicy loadBalancer). Weights of endpoints count with all of them."""

    # The less busy one of two, as without any policy; each in its turn; any; the one that `hash` finds.
    type: Literal["least_request", "round_robin", "random", "hash"] = "least_request"
    hash: HashPolicy | None = None  # of "hash", and of nothing else
