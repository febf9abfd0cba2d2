"""EdgeProxy `spec.grpc`: calls that are tried again by their status, calls of browsers.

In: documents of EdgeProxy. Out: `ProxyGRPC`. Source: docs/guides/grpc.md.
Must never: carry a default; `edgeproxy_defaults.py` has them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.resources.model.fields import AS_SET, Duration, Element

#: Statuses that say that a call went wrong (github.com/grpc/grpc doc/statuscodes.md).
GRPCCode = Literal[
    "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
]  # fmt: skip
MAX_GRPC_ATTEMPTS = 16


class ProxyGRPCRetry(Element, frozen=True, kw_only=True):
    """Retries of gRPC calls."""

    codes: Annotated[
        Annotated[tuple[GRPCCode, ...], Meta(min_length=1, max_length=16, extra=AS_SET)] | None,
        Meta(
            description="gRPC statuses after which edgefast retries a call, if no part of an answer "
            "has arrived. Absent: none."
        ),
    ] = None
    attempts: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_GRPC_ATTEMPTS)] | None,
        Meta(description="Most retries of a call. 0: no retries."),
    ] = None
    backoff: Annotated[
        Duration | None,
        Meta(
            description="Shortest pause before a retry. It doubles with jitter, up to ten times this "
            "value."
        ),
    ] = None


class ProxyGRPC(Element, frozen=True, kw_only=True):
    """gRPC (docs/guides/grpc.md)."""

    web: Annotated[
        bool | None,
        Meta(
            description="Translates gRPC-Web (application/grpc-web and application/grpc-web-text) "
            "of browsers to gRPC and back. false: it is forwarded unchanged."
        ),
    ] = None
    retry: Annotated[
        ProxyGRPCRetry | None, Meta(description="Retries of calls by their status.")
    ] = None
