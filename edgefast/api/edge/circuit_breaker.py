"""Circuit breaker: circuitBreaker of a BackendTrafficPolicy: the limits of concurrent use of a backend.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy
Gateway gives them.
Must never: fill in a field that is not set; each number is merged on its own.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.api.model.fields import Element

_Count = Annotated[int, Meta(ge=0, le=4294967295)]


class RetryShare(Element, frozen=True, kw_only=True):
    """numerator / denominator, 1 at most."""

    numerator: Annotated[Annotated[int, Meta(ge=0, le=2147483647)], Meta(description="Numerator.")]
    denominator: Annotated[
        Annotated[int, Meta(ge=1, le=2147483647)],
        Meta(description="Denominator."),
    ] = 100


class RetryBudget(Element, frozen=True, kw_only=True):
    """Limit of retries, as a part of the requests in flight to a backend."""

    percent: Annotated[
        RetryShare,
        Meta(description="Percentage of the requests in flight, including waiting requests."),
    ]
    min_retry_concurrency: Annotated[
        Annotated[int, Meta(ge=0, le=4294967295)],
        Meta(description="Number of retries that is always allowed."),
    ] = 3


class PerEndpointCircuitBreakers(Element, frozen=True, kw_only=True):
    """Limits of one endpoint, for all workers of a proxy together."""

    max_connections: Annotated[
        _Count | None,
        Meta(
            description="Most connections to an endpoint. At this number another endpoint is chosen; "
            "if all are at it, requests wait."
        ),
    ] = None


class CircuitBreaker(Element, frozen=True, kw_only=True):
    """Limits of a backend, for all routes and workers of a proxy together. Each proxy counts separately."""

    max_connections: Annotated[
        _Count | None,
        Meta(
            description="Most connections; at this number requests wait. Absent: 1024 for each worker."
        ),
    ] = None
    per_endpoint: Annotated[
        PerEndpointCircuitBreakers | None, Meta(description="Limits of each endpoint.")
    ] = None
    max_requests_per_connection: Annotated[
        _Count | None,
        Meta(
            description="Requests on one connection; after them edgefast closes it when its requests "
            "have ended. 0: no limit."
        ),
    ] = None
    max_pending_requests: Annotated[
        _Count | None,
        Meta(description="Most requests that wait for a connection; further requests get 503."),
    ] = None
    max_parallel_requests: Annotated[
        _Count | None,
        Meta(description="Most requests in flight; further requests get 503."),
    ] = None
    max_parallel_retries: Annotated[
        _Count | None,
        Meta(description="Most retries in flight; above it a failure is not retried."),
    ] = None
    retry_budget: Annotated[
        RetryBudget | None,
        Meta(
            description="Most retries as a part of all requests. If both fields are set, both apply. "
            "If neither is set, retries are at most 20 percent of a worker's requests, and "
            "3 are always allowed."
        ),
    ] = None
