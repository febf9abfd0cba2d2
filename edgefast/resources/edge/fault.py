"""Faults on purpose, as a BackendTrafficPolicy asks for them.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Must never: be on by default.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.resources.model.fields import Duration, Element

Share = Annotated[
    float, Meta(ge=0, le=100, description="Percentage of the requests, in steps of 0.0001.")
]


class FaultDelay(Element, frozen=True, kw_only=True):
    """A delay before a request continues."""

    fixed_delay: Annotated[
        Duration,
        Meta(
            description="Length of the delay, more than 0s and at most 60s. It counts towards the "
            "request's timeout."
        ),
    ]
    percentage: Share = 100


class FaultAbort(Element, frozen=True, kw_only=True):
    """An answer instead of a request to the backend."""

    http_status: Annotated[
        Annotated[int, Meta(ge=200, le=599)] | None,
        Meta(
            description="HTTP status of the answer; gRPC calls get the matching gRPC status. Set this "
            "or `grpcStatus`."
        ),
    ] = None
    grpc_status: Annotated[
        Annotated[int, Meta(ge=0, le=16)] | None,
        Meta(description="gRPC status of the answer. Requests other than gRPC calls pass."),
    ] = None
    percentage: Share = 100


class FaultInjection(Element, frozen=True, kw_only=True):
    """Delays or aborts allowed requests."""

    delay: Annotated[FaultDelay | None, Meta(description="A wait.")] = None
    abort: Annotated[
        FaultAbort | None,
        Meta(description="An answer instead of a request to the backend, after the delay."),
    ] = None
