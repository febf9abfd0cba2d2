"""OTLP exporter: exports spans with the OpenTelemetry SDK. Needs the extra `edgefast[tracing]`; imported only on use.

In: records of requests and connections.
Out: a server span for each, and a client span for each attempt of a request at a backend, to one
collector.
Source: OpenTelemetry semantic conventions for HTTP spans; docs/guides/tracing.md describes
edgefast's own attributes. The environment's OTEL_EXPORTER_OTLP_* variables (headers, certificates)
apply as for any exporter.
Must never: use a client's text as anything but a value; query parameters with credentials are
redacted.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from edgefast import __version__, ir
from edgefast.proxy.traces.collector import Pin, is_guarded, open_session, pinned_target
from edgefast.proxy.traces.span_record import (
    AuthRecord,
    ConnectionRecord,
    Record,
    SpanRecord,
    TryRecord,
)

__all__ = ["OtlpExporter"]

#: Seconds that a collector may take for a batch, retries included.
_TIMEOUT = 5
#: Seconds after which the name of a pinned gRPC endpoint is resolved again; after a failure with the next batch.
_RESOLVE_EVERY = 30.0
_METHODS = frozenset(
    ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE")
)
#: Attributes that describe who sends spans, not a span.
_OF_RESOURCES = ("service.", "deployment.", "k8s.", "host.", "cloud.", "container.")
#: Credentials in query parameters, by the semantic conventions of url.query.
_SECRET_NAMES = (
    "AWSAccessKeyId", "Signature", "sig", "X-Goog-Signature",
    "X-Amz-Credential", "X-Amz-Security-Token", "X-Amz-Signature",
)  # fmt: skip
#: Backends decode names: any of these characters may be percent-encoded, its digits in either case.
_SECRET = re.compile(
    r"(?<![^&?])("
    + "|".join(
        "".join(f"(?:{re.escape(c)}|%(?i:{ord(c):02x}))" for c in name) for name in _SECRET_NAMES
    )
    + r")=[^&#]*"
)
# What the SDK logs holds clients' headers, and a line for every batch that fails; failures are told by export_thread.py.
_library = logging.getLogger("opentelemetry")
_library.addHandler(logging.NullHandler())
_library.propagate = False

#: UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS.
_GRPC_FAULTS = frozenset((2, 4, 12, 13, 14, 15))
#: Ends of connections that are no client's affair, and no limit's: what a status from 500 on is to a request.
_CONNECTION_FAULTS = frozenset((
    b"backend_reset", b"fault", b"no_backend", b"no_endpoint", b"connect_failed", b"connect_timeout", b"backend_tls",
))  # fmt: skip
_SCOPE = InstrumentationScope("edgefast", __version__)

_Attributes = dict[str, str | int | float | bool | list[str]]


class OtlpExporter:
    """Exports to the collector that `tracing` names."""

    def __init__(self, tracing: ir.Tracing, own_ports: tuple[int, ...] = ()) -> None:
        """`own_ports`: of this proxy's admin, metrics and readiness servers, which get no spans."""
        own = {
            name: text for name, text in tracing.attributes if not name.startswith(_OF_RESOURCES)
        }
        self._attributes: _Attributes = {**own}
        self._resource = Resource(
            {
                "service.name": "edgefast",
                "service.version": __version__,
                "host.name": os.uname().nodename,
                **{name: text for name, text in tracing.attributes if name not in own},
            }
        )
        self._tracing, self._own_ports = tracing, own_ports
        self._guarded, self._resolved = is_guarded(tracing), float("-inf")
        self._pin: Pin | None = None  # of the gRPC channel in use
        self._exporter: SpanExporter | None = None
        if tracing.protocol != "grpc":
            self._exporter = HttpSpanExporter(
                endpoint=f"{tracing.endpoint}/v1/traces",
                timeout=_TIMEOUT,
                session=open_session(tracing, own_ports),
            )
        elif not self._guarded:
            self._exporter = GrpcSpanExporter(
                endpoint=tracing.endpoint, insecure=self._insecure, timeout=_TIMEOUT
            )

    def export(self, records: list[Record]) -> bool:
        """Send the spans of these requests and connections; blocks for at most some seconds."""
        spans: list[ReadableSpan] = []
        for one in records:
            if isinstance(one, ConnectionRecord):
                spans.append(self._connection(one))
            else:
                spans.extend(self._spans(one))
        taken = self._follow_name().export(spans) is SpanExportResult.SUCCESS
        if not taken:
            self._resolved = float("-inf")
        return taken

    def shutdown(self) -> None:
        """Let go of connections."""
        if self._exporter is not None:
            self._exporter.shutdown()

    @property
    def _insecure(self) -> bool:
        return self._tracing.endpoint.startswith("http:")

    def _follow_name(self) -> SpanExporter:
        """Return the exporter; over gRPC one that is pinned to the addresses that the name has now. Raises OSError."""
        if self._tracing.protocol == "grpc" and self._guarded:
            now = time.monotonic()
            if now - self._resolved >= _RESOLVE_EVERY:
                self._pin_to(pinned_target(self._tracing, self._own_ports))
                self._resolved = now
        assert self._exporter is not None
        return self._exporter

    def _pin_to(self, pin: Pin) -> None:
        """Open a channel to other addresses. DNS servers change the order; after a failure another order counts as other addresses."""
        if (old := self._pin) is not None:
            failed = self._resolved == float("-inf")
            if pin.addresses == old.addresses and not (failed and pin.target != old.target):
                return
        last, self._exporter, self._pin = self._exporter, None, None
        self._resolved = float("-inf")  # if this fails, the next batch tries again
        if last is not None:
            last.shutdown()
        self._exporter = GrpcSpanExporter(
            endpoint=pin.target,
            insecure=self._insecure,
            timeout=_TIMEOUT,
            channel_options=pin.options,
        )
        self._pin = pin

    def _connection(self, one: ConnectionRecord) -> ReadableSpan:
        protocol, failed = _text(one.protocol), one.end in _CONNECTION_FAULTS
        return ReadableSpan(
            name=f"{protocol} {_text(one.route).partition(' ')[2]}" if one.route else protocol,
            context=_context(int.from_bytes(one.trace_id, "big"), one.span_id, None),
            resource=self._resource,
            attributes={**_connection_attributes(one), **self._attributes},
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
            start_time=one.start * 1000,
            end_time=(one.start + one.took) * 1000,
            instrumentation_scope=_SCOPE,
        )

    def _spans(self, one: SpanRecord) -> Iterator[ReadableSpan]:
        state = TraceState.from_header([_text(one.state)]) if len(one.state) < 512 else None
        trace = int.from_bytes(one.trace_id, "big")
        own = _context(trace, one.span_id, state)
        method = _text(one.method)
        known = method if method in _METHODS else "HTTP"
        yield ReadableSpan(
            name=f"{known} {_text(one.route)}" if one.route else known,
            context=own,
            parent=_context(trace, one.parent_id, state, remote=True) if one.parent_id else None,
            resource=self._resource,
            attributes={**_server_attributes(one, method), **self._attributes},
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR if _failed(one) else StatusCode.UNSET),
            start_time=one.start * 1000,
            end_time=(one.start + one.took) * 1000,
            instrumentation_scope=_SCOPE,
        )
        for call in one.asked:
            began = one.start + call.began
            yield ReadableSpan(
                name="ext_authz",
                context=_context(trace, call.span_id, state),
                parent=own,
                resource=self._resource,
                attributes={**_auth_attributes(call), **self._attributes},
                kind=SpanKind.CLIENT,
                status=Status(StatusCode.ERROR if call.error else StatusCode.UNSET),
                start_time=began * 1000,
                end_time=(began + call.took) * 1000,
                instrumentation_scope=_SCOPE,
            )
        for each in one.tries:
            failed = each.status >= 400 or bool(each.error)
            began = one.start + each.began
            yield ReadableSpan(
                name=known,
                context=_context(trace, each.span_id, state),
                parent=own,
                resource=self._resource,
                attributes={**_client_attributes(one, each, method), **self._attributes},
                kind=SpanKind.CLIENT,
                status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
                start_time=began * 1000,
                end_time=(began + each.took) * 1000,
                instrumentation_scope=_SCOPE,
            )


def _failed(one: SpanRecord) -> bool:
    """A fault of the server's, by the semantic conventions for HTTP and for RPC."""
    return one.status >= 500 or one.grpc_status in _GRPC_FAULTS


def _context(
    trace: int, span: bytes, state: TraceState | None, *, remote: bool = False
) -> SpanContext:
    return SpanContext(
        trace, int.from_bytes(span, "big"), remote, TraceFlags(TraceFlags.SAMPLED), state
    )


def _shared_attributes(
    method: str, status: int, error_from: int, error: bytes, protocol: bytes
) -> _Attributes:
    found: _Attributes = {"http.request.method": method if method in _METHODS else "_OTHER"}
    if protocol:
        found["network.protocol.version"] = _text(protocol).removeprefix("HTTP/")
    if method not in _METHODS:
        found["http.request.method_original"] = method
    if status:
        found["http.response.status_code"] = status
    if status >= error_from:
        found["error.type"] = str(status)
    elif error:
        found["error.type"] = _text(error)
    return found


def _server_attributes(one: SpanRecord, method: str) -> _Attributes:
    found = _shared_attributes(
        method, one.status, 500, b"" if one.status else one.details, one.protocol
    )
    path, _, query = _text(one.target).partition("?")
    host, port = _split(_text(one.authority))
    found |= {
        "url.scheme": "https" if one.tls else "http",
        "url.path": path,
        "server.address": host,
        "server.port": port or one.port,
        "client.address": _text(one.client),
        "network.peer.address": _text(one.peer),
        "http.request.body.size": one.bytes_in,
        "http.response.body.size": one.bytes_out,
        "edgefast.listener": _text(one.listener),
        "edgefast.details": _text(one.details),
    }
    if query:
        found["url.query"] = _redact(query)
    if one.grpc_status >= 0:
        found |= {"rpc.system": "grpc", "rpc.grpc.status_code": one.grpc_status}
        service, _, call = path.removeprefix("/").rpartition("/")
        if service:
            found |= {"rpc.service": service, "rpc.method": call}
    if one.user_agent:
        found["user_agent.original"] = _text(one.user_agent)
    if one.tls_version:
        found |= _tls_attributes(one)
    if one.request_id:
        found["http.request.header.x-request-id"] = [_text(one.request_id)]
    if one.route:
        found |= {"edgefast.route": _text(one.route), "edgefast.rule": one.rule}
    return found


def _tls_attributes(one: SpanRecord) -> _Attributes:
    found: _Attributes = {
        "tls.protocol.name": "tls",
        "tls.protocol.version": _text(one.tls_version).removeprefix("TLSv"),
        "tls.cipher": _text(one.tls_cipher),
        "tls.resumed": bool(one.tls_resumed),
    }
    if one.tls_group:
        found["tls.curve"] = _text(one.tls_group)
    return found


def _client_attributes(one: SpanRecord, each: TryRecord, method: str) -> _Attributes:
    """Of one try. Where the request goes is what its Host says (server.*, url.full), which machine took it is network.peer.*."""
    found = _shared_attributes(method, each.status, 400, each.error, each.protocol)
    authority, target = _text(one.sent_host), _redact(_text(one.sent_target))
    host, port = _split(authority)
    found |= {
        "url.full": f"{'https' if one.backend_tls else 'http'}://{authority}"
        f"{target if target[:1] == '/' else ''}",
        "server.address": host,
        "server.port": port or (443 if one.backend_tls else 80),
        "edgefast.backend": _text(one.cluster),
    }
    if each.endpoint:
        peer, port = _split(_text(each.endpoint))
        found["network.peer.address"] = peer
        if port:
            found["network.peer.port"] = port
    if each.number > 1:
        found["http.request.resend_count"] = each.number - 1
    return found


def _auth_attributes(call: AuthRecord) -> _Attributes:
    """Of one call of an authorisation service."""
    found: _Attributes = {"edgefast.decision": _text(call.decision)}
    if call.cluster:
        found["edgefast.backend"] = _text(call.cluster)
    if call.protocol:
        found["network.protocol.version"] = _text(call.protocol).removeprefix("HTTP/")
    if call.grpc:
        found |= {
            "rpc.system": "grpc",
            "rpc.service": "envoy.service.auth.v3.Authorization",
            "rpc.method": "Check",
        }
        if call.status >= 0:
            found["rpc.grpc.status_code"] = call.status
    elif call.status > 0:
        found["http.response.status_code"] = call.status
    if call.error:
        found["error.type"] = _text(call.error)
    if call.endpoint:
        peer, port = _split(_text(call.endpoint))
        found["network.peer.address"] = peer
        if port:
            found["network.peer.port"] = port
    if call.shared:
        found["edgefast.shared"] = True
    return found


def _connection_attributes(one: ConnectionRecord) -> _Attributes:
    end = _text(one.end)
    found: _Attributes = {
        "network.transport": "tcp",
        "server.port": one.port,
        "client.address": _text(one.client),
        "client.port": one.client_port,
        "edgefast.listener": _text(one.listener),
        "edgefast.tries": one.tries,
        "edgefast.bytes_received": one.received,
        "edgefast.bytes_sent": one.sent,
        "edgefast.end": end,
    }
    if one.end in _CONNECTION_FAULTS:
        found["error.type"] = end
    if one.server_name:
        found["tls.client.server_name"] = _text(one.server_name)
    if one.route:
        found |= {"edgefast.route": _text(one.route), "edgefast.rule": one.rule}
    if one.cluster:
        found["edgefast.backend"] = _text(one.cluster)
    if one.endpoint:
        found["edgefast.endpoint"] = _text(one.endpoint)
    if one.connected >= 0:
        found["edgefast.connect_ms"] = round(one.connected / 1000, 3)
    return found


def _split(authority: str) -> tuple[str, int]:
    """Cut "host:port", "[::1]:port" or "unix:/path"; port 0: there is none."""
    host, colon, port = authority.rpartition(":")
    if colon and port.isascii() and port.isdigit() and len(port) < 6:
        return host.strip("[]"), int(port)
    return authority.removeprefix("unix:").strip("[]"), 0


def _redact(query: str) -> str:
    return _SECRET.sub(r"\1=REDACTED", query)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
