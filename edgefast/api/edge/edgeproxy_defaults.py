"""EdgeProxy defaults: the default values, and the merge of a Gateway's EdgeProxy with its class's.

In: the specs from least to most specific. Out: one `EdgeProxySpec`. Values: spec section 2 and the
HTTP/1.1 limits table of the reference docs.
Must never: be written into the CRD as structural defaults; then every field would look set and no
field of the class could apply.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from edgefast.api.edge.edgeproxy import (
    EdgeProxySpec,
    ProxyAccessLog,
    ProxyHTTP,
    ProxyRateLimit,
)
from edgefast.api.edge.edgeproxy_fleet import (
    FleetDeployment,
    FleetPDB,
    FleetService,
    FleetShutdown,
)
from edgefast.api.edge.edgeproxy_headers import ProxyHeaders
from edgefast.api.edge.edgeproxy_protocols import (
    ProxyClientAddress,
    ProxyGRPC,
    ProxyGRPCRetry,
    ProxyHTTP2,
    ProxyHTTP2Upstream,
    ProxyStream,
)
from edgefast.api.model.fields import Element

_Part = TypeVar("_Part", bound=Element)

#: What says how a line of the access log looks.
_OF_LINES = frozenset({"format", "fields", "json", "template"})

DEFAULT_SPEC = EdgeProxySpec(
    merge_gateways=False,
    deployment=FleetDeployment(kind="Deployment"),
    service=FleetService(type="LoadBalancer", external_traffic_policy="Local"),
    shutdown=FleetShutdown(drain_timeout="60s", min_drain_duration="10s"),
    http=ProxyHTTP(
        request_head="32KiB",
        request_line="8KiB",
        header_count=100,
        response_head="64KiB",
        buffer_bytes="32KiB",
        body_start="16KiB",
        body_start_timeout="500ms",
        body_buffer="1MiB",
        mirror_buffer="1MiB",
        body_share=75,
        body_client_share=50,
        body_rate="1KiB",
        answer_share=75,
        answer_rate="1KiB",
        head_timeout="10s",
        idle_timeout="60s",
        stream_idle_timeout="300s",
        connect_timeout="2s",
        upstream_idle="20s",
        tls_drain_timeout="10s",
        max_connections=10_000,
        stream_share=75,
        max_streams=10_000,
        address_streams=0,
        max_requests_per_connection=10_000,
        escaped_slashes="UnescapeAndRedirect",
        path_parameters="keep",
        raw_characters="Allow",
        underscores="RejectRequest",
    ),
    http2=ProxyHTTP2(
        enabled=True,
        max_concurrent_streams=100,
        initial_stream_window_size="64KiB",
        initial_connection_window_size="1MiB",
        max_requests_per_connection=10_000,
        keepalive_ping="0s",
        upstream=ProxyHTTP2Upstream(
            max_concurrent_streams=100,
            initial_stream_window_size="64KiB",
            initial_connection_window_size="1MiB",
            keepalive_ping="0s",
        ),
    ),
    stream=ProxyStream(
        connect_timeout="2s",
        idle_timeout="1h",
        hello_timeout="10s",
        session_timeout="60s",
        max_connections=10_000,
        max_sessions=10_000,
        address_connections=0,
        address_rate=0,
    ),
    grpc=ProxyGRPC(web=False, retry=ProxyGRPCRetry(attempts=1, backoff="25ms")),
    client_address=ProxyClientAddress(trusted_hops=0, trusted_cidrs=(), proxy_protocol="off"),
    headers=ProxyHeaders(forwarded=(), x_forwarded_for="Append", request_id="PreserveInternal"),
    access_log=ProxyAccessLog(sampling=100, off=False),
    rate_limit=ProxyRateLimit(headers=False, retry_after=False),
)


def merge_proxy_specs(*specs: EdgeProxySpec | None) -> EdgeProxySpec:
    """Lay specs over the defaults, later ones winning field by field.

    A list or a map is one field, and so is what excludes each other: the two bounds of `pdb`, and
    what says how a line of the access log looks.
    """
    merged = DEFAULT_SPEC
    for spec in specs:
        if spec is not None:
            merged = _overlay(merged, spec)
    return merged


def _overlay(below: _Part, above: _Part) -> _Part:
    changes: dict[str, object] = {}
    for name in above.__struct_fields__:
        value = getattr(above, name)
        if value is None:
            continue
        old = getattr(below, name)
        if isinstance(value, Element) and type(value) is type(old) is not FleetPDB:
            value = _overlay(old, value)
        changes[name] = value
    if isinstance(above, ProxyAccessLog) and not _OF_LINES.isdisjoint(changes):
        changes = {**dict.fromkeys(_OF_LINES), **changes}
    return msgspec.structs.replace(below, **changes) if changes else below
