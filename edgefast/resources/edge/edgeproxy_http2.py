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
            description="Concurrent requests on one connection to a backend, if the backend allows "
            "them. At 80 percent edgefast opens another connection."
        ),
    ] = None
    initial_stream_window_size: Annotated[
        Size | None,
        Meta(description="Flow-control window of an answer in bytes, 16KiB to 2MiB."),
    ] = None
    initial_connection_window_size: Annotated[
        Size | None,
        Meta(
            description="Flow-control window of all answers of a connection in bytes, 64KiB to 64MiB."
        ),
    ] = None
    keepalive_ping: Annotated[
        Duration | None,
        Meta(
            description="Time without data from a backend with open requests after which edgefast "
            "sends a PING, at least 1s. 0s: never."
        ),
    ] = None


class ProxyHTTP2(Element, frozen=True, kw_only=True):
    """HTTP/2 with clients, and with backends (docs/reference/http2.md)."""

    enabled: Annotated[
        bool | None,
        Meta(
            description="Enables HTTP/2 with clients: on HTTPS listeners by ALPN, on HTTP listeners "
            "with prior knowledge."
        ),
    ] = None
    max_concurrent_streams: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Concurrent requests of a client on one connection."),
    ] = None
    initial_stream_window_size: Annotated[
        Size | None,
        Meta(description="Flow-control window of a request body in bytes, 16KiB to 2MiB."),
    ] = None
    initial_connection_window_size: Annotated[
        Size | None,
        Meta(
            description="Flow-control window of all requests of a connection in bytes, 64KiB to 64MiB."
        ),
    ] = None
    max_requests_per_connection: Annotated[
        Annotated[int, Meta(ge=1, le=2147483647)] | None,
        Meta(description="Requests on one connection; after them edgefast sends GOAWAY."),
    ] = None
    keepalive_ping: Annotated[
        Duration | None,
        Meta(
            description="Time without data from a client after which edgefast sends a PING. 0s: never."
        ),
    ] = None
    upstream: Annotated[
        ProxyHTTP2Upstream | None,
        Meta(description="HTTP/2 with backends. Open connections keep their settings."),
    ] = None
