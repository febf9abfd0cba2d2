"""EdgeProxy headers: `spec.headers`: request headers that tell backends about the client.

In: documents of EdgeProxy. Out: `ProxyHeaders`. Source: docs/guides/headers.md.
Must never: carry a default; `edgeproxy_defaults.py` has them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.model.fields import AS_SET, Element

#: Headers that edgefast writes for backends if an EdgeProxy names them.
ForwardedHeader = Literal[
    "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Scheme", "X-Scheme",
    "X-Original-Forwarded-For", "X-Original-Forwarded-Host", "X-Original-URI",
]  # fmt: skip


class ProxyHeaders(Element, frozen=True, kw_only=True):
    """Request headers that tell backends about the client (docs/guides/headers.md)."""

    forwarded: Annotated[
        Annotated[tuple[ForwardedHeader, ...], Meta(max_length=8, extra=AS_SET)] | None,
        Meta(
            description="Headers that edgefast adds to requests to backends. It removes those that the client "
            "sent; X-Forwarded-Host and X-Forwarded-Port of a trusted peer stay. Absent: none."
        ),
    ] = None
    x_forwarded_for: Annotated[
        Literal["Append", "Overwrite"] | None,
        Meta(
            description="Append: X-Forwarded-For is the received value and the address of the peer. "
            "Overwrite: it is the client address alone."
        ),
    ] = None
    request_id: Annotated[
        Literal["Generate", "PreserveInternal", "PreserveOrGenerate"] | None,
        Meta(
            description="Whether X-Request-ID of a request stays: never, for internal clients, or for all "
            "clients. edgefast generates a missing one, and replaces one of more than 64 bytes."
        ),
    ] = field(default=None, name="requestID")
