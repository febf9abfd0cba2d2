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
    "SSL-Client-Verify", "SSL-Client-Subject-DN", "SSL-Client-Issuer-DN", "SSL-Client-Cert",
]  # fmt: skip

#: What happens to X-Forwarded-Client-Cert (Envoy Gateway, ClientTrafficPolicy).
ClientCertMode = Literal[
    "Sanitize", "ForwardOnly", "AppendForward", "SanitizeSet", "AlwaysForwardOnly"
]
#: Parts of a client's certificate in X-Forwarded-Client-Cert, besides Hash.
ClientCertDetail = Literal["Subject", "Cert", "DNS", "URI"]


class ForwardedClientCertificate(Element, frozen=True, kw_only=True):
    """X-Forwarded-Client-Cert, with the names of ClientTrafficPolicy of Envoy Gateway."""

    mode: Annotated[
        ClientCertMode | None,
        Meta(
            description="Sanitize removes the header. ForwardOnly keeps it on connections with a verified client "
            "certificate. AppendForward also appends an element of this connection. SanitizeSet replaces it. "
            "AlwaysForwardOnly keeps it on all connections. Absent: Sanitize."
        ),
    ] = None
    cert_details_to_add: Annotated[
        Annotated[tuple[ClientCertDetail, ...], Meta(max_length=4, extra=AS_SET)] | None,
        Meta(
            description="Parts of the certificate in an element besides Hash, for AppendForward and SanitizeSet. "
            "Absent: none."
        ),
    ] = None


class ProxyHeaders(Element, frozen=True, kw_only=True):
    """Request headers that tell backends about the client (docs/guides/headers.md)."""

    forwarded: Annotated[
        Annotated[tuple[ForwardedHeader, ...], Meta(max_length=12, extra=AS_SET)] | None,
        Meta(
            description="Headers that edgefast adds to requests to backends. It removes those that the client "
            "sent; X-Forwarded-Host and X-Forwarded-Port of a trusted peer stay. SSL-Client headers need a "
            "listener with client certificates. Absent: none."
        ),
    ] = None
    x_forwarded_for: Annotated[
        Literal["Append", "Overwrite"] | None,
        Meta(
            description="Append: X-Forwarded-For is the received value and the address of the peer. "
            "Overwrite: it is the client address alone."
        ),
    ] = None
    x_forwarded_client_cert: Annotated[
        ForwardedClientCertificate | None,
        Meta(
            description="X-Forwarded-Client-Cert (Envoy) of HTTPS requests. Absent: forwarded if the peer is trusted."
        ),
    ] = None
    request_id: Annotated[
        Literal["Generate", "PreserveInternal", "PreserveOrGenerate"] | None,
        Meta(
            description="Whether X-Request-ID of a request stays: never, for internal clients, or for all "
            "clients. edgefast generates a missing one, and replaces one of more than 64 bytes."
        ),
    ] = field(default=None, name="requestID")
