"""The `clientAddress` part of EdgeProxy: which peers may set a client's address.

In: `spec.clientAddress` of an EdgeProxy. Out: `ProxyClientAddress`. Must never: hold a default; edgeproxy_defaults.py has them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.resources.model.fields import AS_SET, CIDR, Element


class ProxyClientAddress(Element, frozen=True, kw_only=True):
    """Trusted sources of the client address, for x-forwarded-for, x-edge-internal, sourceCIDR and the access log."""

    trusted_hops: Annotated[
        Annotated[int, Meta(ge=0, le=255)] | None,
        Meta(description="Entries of x-forwarded-for, from the right, that trusted proxies added."),
    ] = None
    trusted_cidrs: Annotated[
        Annotated[tuple[CIDR, ...], Meta(max_length=256, extra=AS_SET)] | None,
        Meta(
            description="Peers that are trusted to set x-forwarded-for and x-forwarded-proto. edgefast forwards "
            "their Forwarded, X-Real-IP, X-Forwarded-Host and similar headers."
        ),
    ] = field(default=None, name="trustedCIDRs")
    proxy_protocol: Annotated[
        Literal["off", "optional", "required"] | None,
        Meta(
            description="Whether connections begin with a PROXY protocol header (v1 or v2); on HTTPS "
            "before the TLS handshake."
        ),
    ] = None
    proxy_protocol_cidrs: Annotated[
        Annotated[tuple[CIDR, ...], Meta(max_length=256, extra=AS_SET)] | None,
        Meta(
            description="Peers that are trusted to send a PROXY protocol header. Absent: `trustedCIDRs`. edgefast closes a connection of another "
            "peer if it sends a header, or if `proxyProtocol` is `required`."
        ),
    ] = field(default=None, name="proxyProtocolCIDRs")
