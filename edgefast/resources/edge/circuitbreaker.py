"""How much of a backend requests may have at once, as a BackendTrafficPolicy says it.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Must never: fill in what is not said; each number is merged on its own.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.resources.model.fields import Element

_Count = Annotated[int, Meta(ge=0, le=4294967295)]


class RetryShare(Element, frozen=True, kw_only=True):
    """numerator / denominator, 1 at most."""

    numerator: Annotated[
        Annotated[int, Meta(ge=0, le=2147483647)], Meta(description="Of so many requests ...")
    ]
    denominator: Annotated[
        Annotated[int, Meta(ge=1, le=2147483647)],
        Meta(description="... out of so many."),
    ] = 100


class RetryBudget(Element, frozen=True, kw_only=True):
    """Requests that may be repeats, as a part of all that a backend has at the time."""

    percent: Annotated[
        RetryShare,
        Meta(description="Of the requests that are on their way, waiting ones included."),
    ]
    min_retry_concurrency: Annotated[
        Annotated[int, Meta(ge=0, le=4294967295)],
        Meta(description="So many there may be at least."),
    ] = 3


class PerEndpointCircuitBreakers(Element, frozen=True, kw_only=True):
    """Bounds of what one endpoint has of all workers of a proxy together."""

    max_connections: Annotated[
        _Count | None,
        Meta(
            description="Connections to it; past them another one is chosen, and when all have so many requests wait for one."
        ),
    ] = None


class CircuitBreaker(Element, frozen=True, kw_only=True):
    """Bounds of what a backend has of all workers of a proxy together, whichever routes it comes from. Each proxy counts for itself."""

    max_connections: Annotated[
        _Count | None,
        Meta(
            description="Connections; past them requests wait for one. A worker has 1024 at most without."
        ),
    ] = None
    per_endpoint: Annotated[
        PerEndpointCircuitBreakers | None, Meta(description="Bounds of each of its endpoints.")
    ] = None
    max_requests_per_connection: Annotated[
        _Count | None,
        Meta(
            description="Requests that a connection carries before it is retired; it ends when its requests have. 0: any number."
        ),
    ] = None
    max_pending_requests: Annotated[
        _Count | None,
        Meta(
            description="Requests that wait for a connection because there may be no more; past them 503."
        ),
    ] = None
    max_parallel_requests: Annotated[
        _Count | None,
        Meta(description="Requests that have an endpoint, and no whole answer yet; past them 503."),
    ] = None
    max_parallel_retries: Annotated[
        _Count | None,
        Meta(description="Requests that have to be repeated; past them the failure is the answer."),
    ] = None
    retry_budget: Annotated[
        RetryBudget | None,
        Meta(
            description="The same as a part of all requests. Where both are said, both hold; where neither is, repeats are 20 percent "
            "of a worker's requests, and 3 at least."
        ),
    ] = None
