"""Tracing through a real proxy: from a client's traceparent to a collector that is asked for what came."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Exemplar

from origin.recording import RecordingOrigin
from proxy.otlp_receiver import Received, attributes_of, http_collector
from wire.harness import objects as make
from wire.harness.site import Site

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


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
    with Site(objects(origin), settings={"tracing": tracing}) as site:
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
        # The span was counted before it was sent away.
        assert site.metric("edgefast_spans_recorded_total") == 1
        assert site.metric("edgefast_spans_dropped_total") == 0
        site.wait_until(
            lambda: site.metric("edgefast_spans_exported_total") == 1, "the export counted"
        )


def ask_metrics(site: Site, accept: str) -> tuple[str, str]:
    """The content type and the page, for who takes `accept`."""
    connection = http.client.HTTPConnection(*site.metrics, timeout=10)
    with closing(connection):
        connection.request("GET", "/metrics", headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.headers["Content-Type"], answer.read().decode()


def exemplars_of(site: Site) -> list[tuple[dict[str, str], Exemplar]]:
    kind, page = ask_metrics(site, OPENMETRICS)
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    return [
        (one.labels, one.exemplar)
        for family in text_string_to_metric_families(page)
        for one in family.samples
        if one.exemplar is not None
    ]


def test_the_histogram_names_the_trace(
    origin: RecordingOrigin, collector: tuple[str, Received]
) -> None:
    """A client's trace is the exemplar of the bucket that counted it; who does not take OpenMetrics gets text."""
    endpoint, received = collector
    before = len(received.spans)
    tracing = {"endpoint": endpoint, "sampling": 100, "exemplars": True}
    with Site(objects(origin), settings={"tracing": tracing}) as site:
        site.ask("GET", "/nobodys", host="b")  # no rule takes it: it has a trace, and no exemplar
        site.ask("GET", "/one", headers=[("traceparent", f"00-{TRACE}-{PARENT}-01")])
        site.wait_until(lambda: exemplars_of(site), "an exemplar", 20)
        ((labels, found),) = exemplars_of(site)
        assert labels["route"] == "default/all" and labels["rule"] == "0"
        assert found.labels["trace_id"] == TRACE
        spans = [one for _, one in received.spans[before:] if one.trace_id.hex() == TRACE]
        (server,) = [one for one in spans if one.parent_span_id.hex() == PARENT]
        assert found.labels["span_id"] == server.span_id.hex()
        took = (server.end_time_unix_nano - server.start_time_unix_nano) / 1e9
        assert found.value == pytest.approx(took, abs=1e-9) and found.value <= float(labels["le"])
        assert float(found.timestamp) == pytest.approx(server.end_time_unix_nano / 1e9, abs=0.001)
        for accept in ("", "text/plain", f"{OPENMETRICS};q=0"):
            kind, page = ask_metrics(site, accept)
            assert kind == "text/plain; version=0.0.4; charset=utf-8"
            assert "trace_id" not in page and "EOF" not in page
        assert site.metric("edgefast_requests_total", route="default/all") == 1
