"""A collector in a test: OTLP over HTTP and over gRPC, as its specification says.

In: exports. Out: what came, as opentelemetry-proto's messages. Must never: take anything that is no export.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Received:
    """Spans with the attributes of their resources, in the order they came."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.spans: list[tuple[dict[str, Any], Any]] = []
        self.requests = 0

    def add(self, request: ExportTraceServiceRequest) -> None:
        """Take in one export."""
        with self.lock:
            self.requests += 1
            for part in request.resource_spans:
                resource = attributes_of(part.resource)
                for scope in part.scope_spans:
                    self.spans += [(resource, span) for span in scope.spans]

    def named(self, kind: int) -> list[Any]:
        """The spans of a kind: 2 server, 3 client."""
        with self.lock:
            return [span for _, span in self.spans if span.kind == kind]


def attributes_of(one: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    found: dict[str, Any] = {}
    for item in one.attributes:
        kind = item.value.WhichOneof("value")
        value = getattr(item.value, kind)
        found[item.key] = (
            [each.string_value for each in value.values] if kind == "array_value" else value
        )
    return found


@contextmanager
def http_collector() -> Iterator[tuple[str, Received]]:
    """A collector at its address; answers 200 to what it understands."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            received.add(request)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serve(Handler) as endpoint:
        yield endpoint, received


@contextmanager
def redirect(status: int, endpoint: str) -> Iterator[str]:
    """A server that redirects every export to another collector."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("location", endpoint + self.path)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serve(Handler) as first:
        yield first


@contextmanager
def _serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def grpc_collector() -> Iterator[tuple[str, Received]]:
    """The same over gRPC."""
    received = Received()

    class Servicer(TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            received.add(request)
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}", received
    finally:
        server.stop(0).wait()
