"""Faults on purpose, as a BackendTrafficPolicy asks for them.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Must never: be on by default.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.resources.model.fields import Duration, Element

Share = Annotated[
    float, Meta(ge=0, le=100, description="Percentage of the requests; parts of 0.0001 count.")
]


class FaultDelay(Element, frozen=True, kw_only=True):
    """A wait before a request goes on."""

    fixed_delay: Annotated[
        Duration,
        Meta(description="How long; more than 0s, at most 60s. The request's timeout counts it."),
    ]
    percentage: Share = 100


class FaultAbort(Element, frozen=True, kw_only=True):
    """An answer in place of the backend's."""

    http_status: Annotated[
        Annotated[int, Meta(ge=200, le=599)] | None,
        Meta(
            description="Of requests of HTTP; of gRPC what it becomes there. This or `grpcStatus`."
        ),
    ] = None
    grpc_status: Annotated[
        Annotated[int, Meta(ge=0, le=16)] | None,
        Meta(description="Of calls of gRPC; requests that are none pass."),
    ] = None
    percentage: Share = 100


class FaultInjection(Element, frozen=True, kw_only=True):
    """Requests that wait or are refused on purpose, once they are let in."""

    delay: Annotated[FaultDelay | None, Meta(description="A wait.")] = None
    abort: Annotated[FaultAbort | None, Meta(description="An answer; after the wait.")] = None
