"""EdgeProxy `spec.http2`: HTTP/2 with clients and with backends.

In: documents of EdgeProxy. Out: `ProxyHTTP2`. Source: docs/reference/http2.md.
Must never: carry a default; `edgeproxy_defaults.py` has them.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.resources.model.fields import Duration, Element, Size


class ProxyHTTP2Upstream(Element, frozen=True, kw_only=True):
    """HTTP/2 with backends (docs/reference/http2.md)."""

    max_concurrent_streams: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(
            description="Requests on one connection to a backend, where that allows as many; "
            "at 80 percent of them another one is made."
        ),
    ] = None
    initial_stream_window_size: Annotated[
        Size | None,
        Meta(
            description="Bytes of an answer that may be under way while its client takes none; "
            "16KiB to 2MiB."
        ),
    ] = None
    initial_connection_window_size: Annotated[
        Size | None,
        Meta(description="The same of all answers of a connection; 64KiB to 64MiB."),
    ] = None
    keepalive_ping: Annotated[
        Duration | None,
        Meta(
            description="Silence of a backend, with requests open, after which it is asked whether "
            "it is still there, 1s or more; 0s: never."
        ),
    ] = None


class ProxyHTTP2(Element, frozen=True, kw_only=True):
    """HTTP/2 with clients, and with backends (docs/reference/http2.md)."""

    enabled: Annotated[
        bool | None,
        Meta(
            description="Speaks HTTP/2 with clients: on HTTPS listeners where they offer it (ALPN), "
            "on HTTP listeners where they begin with it."
        ),
    ] = None
    max_concurrent_streams: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Requests that a client may have open on one connection."),
    ] = None
    initial_stream_window_size: Annotated[
        Size | None,
        Meta(description="Bytes of a request body that may be under way; 16KiB to 2MiB."),
    ] = None
    initial_connection_window_size: Annotated[
        Size | None,
        Meta(description="The same of all requests of a connection; 64KiB to 64MiB."),
    ] = None
    max_requests_per_connection: Annotated[
        Annotated[int, Meta(ge=1, le=2147483647)] | None,
        Meta(description="Requests on one connection before it takes no more (GOAWAY)."),
    ] = None
    keepalive_ping: Annotated[
        Duration | None,
        Meta(
            description="Silence of a client after which it is asked whether it is still there; "
            "0s: never."
        ),
    ] = None
    upstream: Annotated[
        ProxyHTTP2Upstream | None,
        Meta(description="HTTP/2 with backends. Connections that are there keep what they have."),
    ] = None
