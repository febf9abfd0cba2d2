"""Calls of authorisation services on their way to a collector."""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.netaddr import ANY_NETWORK
from edgefast.proxy.traces.otlp_exporter import OtlpExporter
from edgefast.proxy.traces.span_record import AuthRecord
from proxy.otlp_receiver import attributes_of, http_collector
from proxy.spans import SPAN


def test_calls_of_services_are_spans_below_their_request() -> None:
    called = AuthRecord(
        span_id=b"\x09" * 8, cluster=b"service/ns/auth/80/h2", began=500, took=700, grpc=1, status=0, decision=b"denied",
        error=b"", endpoint=b"10.1.1.2:9000", protocol=b"HTTP/2", shared=1,
    )  # fmt: skip
    failed = AuthRecord(
        span_id=b"\x0a" * 8, cluster=b"service/ns/auth/80", began=1_200, took=50, grpc=0, status=503, decision=b"error",
        error=b"no_answer", endpoint=b"", protocol=b"HTTP/1.1", shared=0,
    )  # fmt: skip
    with http_collector() as (endpoint, received):
        exporter = OtlpExporter(ir.Tracing(endpoint=endpoint, allowed=ANY_NETWORK))
        assert exporter.export([msgspec.structs.replace(SPAN, tries=(), asked=(called, failed))])
        exporter.shutdown()
    (first, second) = received.named(3)
    for span, told in ((first, called), (second, failed)):
        assert (span.trace_id, span.span_id, span.parent_span_id) == (
            *(SPAN.trace_id, told.span_id, SPAN.span_id),
        )
        assert span.name == "ext_authz"
        assert span.start_time_unix_nano == (SPAN.start + told.began) * 1000
        assert span.end_time_unix_nano == (SPAN.start + told.began + told.took) * 1000
    assert (first.status.code, second.status.code) == (0, 2)
    assert attributes_of(first) == {
        "edgefast.backend": "service/ns/auth/80/h2",
        "edgefast.decision": "denied",
        "edgefast.shared": True,
        "network.peer.address": "10.1.1.2",
        "network.peer.port": 9000,
        "network.protocol.version": "2",
        "rpc.system": "grpc",
        "rpc.service": "envoy.service.auth.v3.Authorization",
        "rpc.method": "Check",
        "rpc.grpc.status_code": 0,
    }
    assert attributes_of(second) == {
        "edgefast.backend": "service/ns/auth/80",
        "edgefast.decision": "error",
        "error.type": "no_answer",
        "http.response.status_code": 503,
        "network.protocol.version": "1.1",
    }
