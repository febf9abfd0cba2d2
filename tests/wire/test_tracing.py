"""Tracing through a real proxy: from a client's traceparent to a collector that is asked for what came."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from proxy.otlp_receiver import Received, attributes_of, http_collector
from wire.harness import objects as make
from wire.harness.ports import free_port
from wire.harness.site import Site

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def collector() -> Iterator[tuple[str, Received]]:
    with http_collector() as running:
        yield running


def objects(origin: RecordingOrigin) -> list[make.Object]:
    return [
        make.route("all", [make.rule("origin")], ["a"]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
    ]


def test_one_trace_from_client_to_backend(
    origin: RecordingOrigin, collector: tuple[str, Received]
) -> None:
    endpoint, received = collector
    tracing = {"endpoint": endpoint, "sampling": 0, "attributes": {"service.name": "edge"}}
    with Site(objects(origin), settings={"tracing": tracing}, workers=2) as site:
        origin.take()
        site.ask("GET", "/unsampled")
        site.ask("GET", "/traced?q=1", headers=[("traceparent", f"00-{TRACE}-{PARENT}-01")])
        origin.turn()
        unsampled, traced = origin.take().messages
        site.wait_until(lambda: len(received.spans) >= 2, "two spans", 20)
        ((resource, server), (_, client)) = received.spans
        assert resource["service.name"] == "edge"
        assert server.trace_id.hex() == client.trace_id.hex() == TRACE
        assert server.parent_span_id.hex() == PARENT and client.parent_span_id == server.span_id
        assert traced.value(b"traceparent") == f"00-{TRACE}-{client.span_id.hex()}-01".encode()
        assert unsampled.value(b"traceparent").endswith(b"-00")
        assert attributes_of(server)["url.path"] == "/traced"
        assert attributes_of(client)["server.port"] == 80  # as the backend is told in Host
        assert attributes_of(client)["network.peer.port"] == origin.port
        site.wait_until(lambda: TRACE in site.access_log, "the line with the trace's id")
        assert site.metric("edgefast_spans_recorded_total") == 1
        assert site.metric("edgefast_spans_dropped_total") == 0
        site.wait_until(
            lambda: site.metric("edgefast_spans_exported_total") == 1, "the export counted"
        )


def test_a_collector_that_is_away_costs_spans_only(origin: RecordingOrigin) -> None:
    tracing = {"endpoint": f"http://127.0.0.1:{free_port()}"}
    with Site(objects(origin), settings={"tracing": tracing}) as site, site.client() as client:
        for number in range(200):
            assert client.request("GET", f"/{number}").status == 200
        assert site.metric("edgefast_spans_recorded_total") == 200
        site.wait_until(lambda: site.metric("edgefast_spans_lost_total") == 200, "the losses", 30)
        site.expected_log.append("127.0.0.1")
