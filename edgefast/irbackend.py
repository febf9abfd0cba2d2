"""Which endpoint of a backend gets a request, as policies say it.

In: written by `translate` only. Out: leaves of an ir.Traffic. Names of headers are lower case. Durations are seconds here: they go into cookies.
Must never: be what decides which backend a request goes to; rules do.
"""

from __future__ import annotations

from edgefast.irtelemetry import Struct


class HashCookie(Struct, frozen=True, gc=False):
    """A cookie whose value requests are told apart by."""

    name: str
    # Of one that clients without it are given: 0 is till the client's session ends; None: they are given none.
    ttl: int | None = None
    attributes: str = ""  # of such a one: "; Path=/; Secure", as they are written


class HashPolicy(Struct, frozen=True, gc=False):
    """What of a request decides which endpoint it gets: one of its parts (BackendTrafficPolicy loadBalancer.consistentHash).

    Nothing of it is set: the endpoint with the fewest requests gets it, as without any policy.
    """

    source: bool = False  # the client's address
    headers: tuple[str, ...] = ()  # those that the request has, together
    cookie: HashCookie | None = None
    params: tuple[str, ...] = ()  # of its query, as well
