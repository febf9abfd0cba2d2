"""From a worker's batch to a collector: bounded, counted, never in anybody's way; attributes by the semantic conventions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from edgefast import ir
from edgefast.netaddr import ANY_NETWORK
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.traces import export_thread, otlp_exporter
from edgefast.proxy.traces.collector import open_session
from edgefast.proxy.traces.export_thread import SpanExport, has_tracing
from edgefast.proxy.traces.otlp_exporter import OtlpExporter
from edgefast.proxy.traces.span_record import SpanRecord, count_spans
from proxy.otlp_receiver import attributes_of, grpc_collector, http_collector, redirect
from proxy.spans import CONNECTION, FIRST, SECOND, SPAN, pack


def listener(endpoint: str, name: str = "ns/gw/http", **more: Any) -> ir.Listener:
    tracing = ir.Tracing(**{"endpoint": endpoint, "allowed": ANY_NETWORK, **more})
    return ir.Listener(name=name, port=80, bind_port=80, protocol="HTTP", tracing=tracing)


def until(holds: Callable[[], object], what: str = "it") -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, f"{what} never came true"
        time.sleep(0.005)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_spans_reach_a_collector(protocol: Any) -> None:
    with (http_collector if protocol == "http" else grpc_collector)() as (endpoint, received):
        export = SpanExport()
        attributes = (
            ("deployment.environment.name", "test"),
            ("service.name", "shop-edge"),
            ("team", "a"),
        )
        export.use([listener(endpoint, protocol=protocol, attributes=attributes)])
        export.take(pack(SPAN, msgspec.structs.replace(SPAN, tries=())))
        until(lambda: export.exported + export.lost == 2, "an export")
        export.close(5)
    assert (export.exported, export.lost) == (2, 0)
    (server, alone), (first, client) = received.named(2), received.named(3)
    resource = received.spans[0][0]
    assert (
        resource["service.name"] == "shop-edge"
        and resource["deployment.environment.name"] == "test"
    )
    assert (server.trace_id, server.span_id, server.parent_span_id) == (
        SPAN.trace_id,
        SPAN.span_id,
        SPAN.parent_id,
    )
    for span, told in ((first, FIRST), (client, SECOND)):
        assert (span.trace_id, span.span_id) == (SPAN.trace_id, told.span_id)
        assert (span.name, span.parent_span_id) == ("GET", SPAN.span_id)
        assert span.start_time_unix_nano == (SPAN.start + told.began) * 1000
        assert span.end_time_unix_nano == (SPAN.start + told.began + told.took) * 1000
    assert alone.span_id == SPAN.span_id
    assert (server.name, server.trace_state) == ("GET ns/web", "a=1,b=2")
    assert (server.start_time_unix_nano, server.end_time_unix_nano) == (
        SPAN.start * 1000,
        (SPAN.start + 9_000) * 1000,
    )
    assert attributes_of(server) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "network.protocol.version": "2",
        "url.scheme": "https",
        "url.path": "/a%20b",
        "url.query": "x=1&sig=REDACTED&y=2",
        "server.address": "shop.test",
        "server.port": 8080,
        "client.address": "203.0.113.9",
        "network.peer.address": "10.0.0.1",
        "user_agent.original": "curl/8",
        "http.request.header.x-request-id": ["id-1"],
        "tls.protocol.name": "tls",
        "tls.protocol.version": "1.3",
        "tls.cipher": "TLS_AES_256_GCM_SHA384",
        "tls.curve": "x25519",
        "tls.resumed": True,
        "http.request.body.size": 3,
        "http.response.body.size": 5,
        "edgefast.listener": "ns/gw/http",
        "edgefast.route": "ns/web",
        "edgefast.rule": 2,
        "edgefast.details": "via_upstream",
        "team": "a",
    }
    both = {
        "http.request.method": "GET",
        "network.protocol.version": "1.1",
        "server.address": "inner.test",
        "server.port": 81,
        "network.peer.port": 9000,
        "url.full": "http://inner.test:81/b?x=1&sig=REDACTED",
        "edgefast.backend": "service/ns/web/80",
        "team": "a",
    }
    assert attributes_of(first) == both | {
        "network.peer.address": "10.1.1.1",
        "error.type": "connection_termination",
    }
    assert attributes_of(client) == both | {
        "network.peer.address": "::1",
        "http.response.status_code": 200,
        "http.request.resend_count": 1,
    }
    assert (first.status.code, client.status.code) == (2, 0)


def test_a_connection_is_a_span() -> None:
    refused = msgspec.structs.replace(
        CONNECTION, connected=-1, server_name=b"", end=b"connect_failed"
    )
    nobody = msgspec.structs.replace(
        refused, client=b"", route=b"", rule=-1, cluster=b"", endpoint=b"", tries=0, end=b"no_route"
    )
    with http_collector() as (endpoint, received):
        export = SpanExport()
        export.use([listener(endpoint, "ns/gw/db", exemplars=True)])
        export.take(pack(CONNECTION, refused, nobody))
        until(lambda: export.exported + export.lost == 3, "an export")
        export.close(5)
    assert export.exported == 3
    assert export.exemplars.marks() == {}  # durations are those of requests
    whole, failed, lost = [span for _, span in received.spans]
    assert (whole.trace_id, whole.span_id) == (CONNECTION.trace_id, CONNECTION.span_id)
    assert (whole.name, whole.parent_span_id, lost.name) == ("TLS ns/db", b"", "TLS")
    assert whole.start_time_unix_nano == CONNECTION.start * 1000
    assert whole.end_time_unix_nano == (CONNECTION.start + 9_000) * 1000
    told: dict[str, object] = {
        "network.transport": "tcp",
        "server.port": 5432,
        "client.address": "203.0.113.9",
        "client.port": 40_000,
        "edgefast.listener": "ns/gw/db",
        "edgefast.route": "TLSRoute ns/db",
        "edgefast.rule": 0,
        "edgefast.backend": "service/ns/db/5432",
        "edgefast.endpoint": "10.1.1.1:5432",
        "edgefast.tries": 2,
        "edgefast.bytes_received": 3,
        "edgefast.bytes_sent": 5,
        "edgefast.end": "done",
    }
    more = {"tls.client.server_name": "db.test", "edgefast.connect_ms": 1.5}
    assert attributes_of(whole) == told | more
    ended = {"edgefast.end": "connect_failed", "error.type": "connect_failed"}
    assert attributes_of(failed) == told | ended
    assert (whole.status.code, failed.status.code, lost.status.code) == (0, 2, 0)
    assert not {"edgefast.route", "edgefast.backend", "error.type"} & attributes_of(lost).keys()


@pytest.mark.parametrize(
    ("status", "server", "client"),
    [(200, 0, 0), (404, 0, 2), (503, 2, 2), (0, 0, 2)],
)
def test_errors_are_those_of_the_conventions(status: int, server: int, client: int) -> None:
    with http_collector() as (endpoint, received):
        exporter = OtlpExporter(ir.Tracing(endpoint=endpoint, allowed=ANY_NETWORK))
        assert exporter.export(
            [
                msgspec.structs.replace(
                    SPAN,
                    status=status,
                    details=b"why",
                    method=b"BREW",
                    state=b"=,=\xff",
                    target=b"*",
                    sent_target=b"*",
                    sent_host=b"[2001:db8::1]",
                    backend_tls=1,
                    tries=(
                        msgspec.structs.replace(
                            FIRST,
                            status=status,
                            error=b"" if status else b"why",
                            endpoint=b"unix:/s",
                        ),
                    ),
                )
            ]
        )
        exporter.shutdown()
    ((_, ours), (_, theirs)) = received.spans
    assert (ours.status.code, theirs.status.code) == (server, client)
    found = attributes_of(ours)
    assert (found["http.request.method"], found["http.request.method_original"]) == (
        "_OTHER",
        "BREW",
    )
    assert ours.name == "HTTP ns/web" and ours.trace_state == ""
    assert found.get("error.type") == {200: None, 404: None, 503: "503", 0: "why"}[status]
    found = attributes_of(theirs)
    assert found.get("error.type") == {200: None, 404: "404", 503: "503", 0: "why"}[status]
    assert found["network.peer.address"] == "/s" and "network.peer.port" not in found
    assert (found["server.address"], found["server.port"]) == ("2001:db8::1", 443)
    assert found["url.full"] == "https://[2001:db8::1]"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("%73ig=AAA", "%73ig=REDACTED"),
        ("a=1&s%69%67=AAA&b=2", "a=1&s%69%67=REDACTED&b=2"),
        ("%41WSAccess%4beyId=AAA", "%41WSAccess%4beyId=REDACTED"),
        ("%41WSAccess%4BeyId=AAA", "%41WSAccess%4BeyId=REDACTED"),
        ("X%2dAmz%2DSignature=AAA", "X%2dAmz%2DSignature=REDACTED"),
        ("X-Goog-Signature=AAA", "X-Goog-Signature=REDACTED"),
        ("Signature=", "Signature=REDACTED"),
        ("a=b?sig=AAA", "a=b?sig=REDACTED"),
        ("sig%3DAAA", "sig%3DAAA"),  # a name without a value
        ("%2573ig=AAA", "%2573ig=AAA"),  # "%73ig", decoded once
        ("design=AAA&sigh=AAA&%73ig", "design=AAA&sigh=AAA&%73ig"),
    ],
)
def test_credentials_in_queries_are_redacted_however_their_names_are_written(
    query: str, told: str
) -> None:
    sent = f"/x?{query}".encode()
    with http_collector() as (endpoint, received):
        exporter = OtlpExporter(ir.Tracing(endpoint=endpoint, allowed=ANY_NETWORK))
        assert exporter.export([msgspec.structs.replace(SPAN, target=sent, sent_target=sent)])
        exporter.shutdown()
    (_, server), *clients = received.spans
    assert attributes_of(server)["url.query"] == told
    urls = {attributes_of(span)["url.full"] for _, span in clients}
    assert urls == {f"http://inner.test:81/x?{told}"}


class Slow:
    """An exporter that waits until it may go on."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        self.taken = 0

    def export(self, records: list[SpanRecord]) -> bool:
        self.begun.set()
        assert self.go.wait(20)
        self.taken += len(records)
        return True

    def shutdown(self) -> None:
        pass


def test_a_slow_collector_blocks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pack(*[SPAN] * 50)
    monkeypatch.setattr(export_thread, "QUEUE_BYTES", 4 * len(batch))
    slow = Slow()
    export = SpanExport(lambda tracing: slow)
    export.use([listener("http://127.0.0.1:1")])
    export.take(batch)
    assert slow.begun.wait(20)
    for _ in range(10):
        export.take(batch)
    assert export.lost == 7 * 50
    slow.go.set()
    export.close(20)
    assert (export.exported, export.lost, slow.taken) == (4 * 50, 7 * 50, 4 * 50)


def test_a_collector_that_is_away_is_told_once_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Away(Slow):
        def export(self, records: list[SpanRecord]) -> bool:
            raise ConnectionRefusedError("nobody is there")

    export = SpanExport(lambda tracing: Away())
    export.use([listener("http://127.0.0.1:1")])
    for _ in range(3):
        export.take(pack(SPAN, SPAN))
    export.close(20)
    assert (export.exported, export.lost) == (0, 6)
    assert sum("nobody is there" in one.message for one in caplog.records) == 1


def test_what_is_no_batch_and_whose_listener_is_gone_is_lost() -> None:
    slow = Slow()
    slow.go.set()
    export = SpanExport(lambda tracing: slow)
    export.use([listener("http://127.0.0.1:1", "other")])
    export.take(pack(SPAN))
    export.take(b"\xdc\x00\x03garbage")
    export.close(20)
    assert (export.exported, export.lost) == (0, 4)


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert has_tracing()
    monkeypatch.setattr(export_thread, "has_tracing", lambda: False)
    export = SpanExport()
    for _ in range(2):
        export.use([listener("http://127.0.0.1:1")])
    export.take(pack(SPAN))
    assert export.lost == 1
    assert [one.message for one in caplog.records if "edgefast[tracing]" in one.message] == [
        "tracing: a package that spec.tracing needs is not installed; spans are dropped: pip "
        "install 'edgefast[tracing]'"
    ]


def test_a_batch_tells_how_many_it_has() -> None:
    assert count_spans(pack(*[SPAN] * 300)) == 300


def test_a_collector_that_is_away_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    class Known(Slow):
        def __init__(self, tracing: ir.Tracing) -> None:
            super().__init__()
            self.endpoint = tracing.endpoint

        def export(self, records: list[SpanRecord]) -> bool:
            tried.append(self.endpoint)
            return self.endpoint.endswith(":2")

    monkeypatch.setattr(export_thread, "_PAUSE", 1000.0)
    export = SpanExport(Known)
    export.use([listener("http://127.0.0.1:1"), listener("http://127.0.0.1:2", "ns/gw/other")])
    away, there = SPAN, msgspec.structs.replace(SPAN, listener=b"ns/gw/other")
    for number in range(1, 4):
        export.take(pack(away, there))
        until(lambda number=number: export.exported + export.lost == 2 * number, "an export")
    export.close(20)
    assert (export.exported, export.lost) == (3, 3)
    assert sorted(tried) == ["http://127.0.0.1:1", *["http://127.0.0.1:2"] * 3]


def test_exemplars_are_what_a_collector_took_and_a_listener_asks_for() -> None:
    class Picky(Slow):
        def __init__(self, tracing: ir.Tracing) -> None:
            super().__init__()
            self.takes = tracing.endpoint.endswith(":1")

        def export(self, records: list[SpanRecord]) -> bool:
            return self.takes

    export = SpanExport(Picky)
    asks, plain, away = (
        listener("http://127.0.0.1:1", exemplars=True),
        listener("http://127.0.0.1:1", "ns/gw/plain"),
        listener("http://127.0.0.1:2", "ns/gw/away", exemplars=True),
    )
    export.use([plain])
    assert not export.marking
    export.use([asks, plain, away])
    assert export.marking
    rows = {b"ns/gw/http": b"a\t0", b"ns/gw/plain": b"b\t0", b"ns/gw/away": b"c\t0"}
    export.take(
        pack(*(msgspec.structs.replace(SPAN, listener=one, row=row) for one, row in rows.items()))
    )
    until(lambda: export.exported + export.lost == 3, "an export")
    assert export.exemplars.marks().keys() == {b"a\t0"}
    export.use([asks, plain, away, listener("http://127.0.0.1:1", "ns/gw/new", exemplars=True)])
    assert export.exemplars.marks().keys() == {b"a\t0"}
    export.use([asks, plain])  # one that had them is gone
    assert export.exemplars.marks() == {} and export.marking
    export.close(20)


def test_exemplars_have_as_many_rows_as_counters() -> None:
    slow = Slow()
    slow.go.set()
    export = SpanExport(lambda tracing: slow, rows=2)
    export.use([listener("http://127.0.0.1:1", exemplars=True)])
    export.take(pack(*(msgspec.structs.replace(SPAN, row=b"r\t%d" % n) for n in range(5))))
    export.close(20)
    assert export.exemplars.marks().keys() == {b"r\t3", b"r\t4"}


def test_what_was_switched_off_while_a_collector_took_its_time_is_no_exemplar() -> None:
    slow = Slow()
    export = SpanExport(lambda tracing: slow)
    export.use([listener("http://127.0.0.1:1", exemplars=True)])
    export.take(pack(SPAN))
    assert slow.begun.wait(20)
    export.use([listener("http://127.0.0.1:1")])
    slow.go.set()
    export.close(20)
    assert export.exported == 1 and export.exemplars.marks() == {} and not export.marking


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_collector_name_that_resolves_to_a_refused_address(
    protocol: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At each resolution; spans arrive once the administrator allows the range. No proxy of the environment connects instead."""
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("grpc_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with (http_collector if protocol == "http" else grpc_collector)() as (endpoint, received):
        named = endpoint.replace("127.0.0.1", "localhost")
        for allowed, taken in ((("10.0.0.0/8",), 0), (("127.0.0.0/8", "::1/128"), 1)):
            export = SpanExport()
            export.use([listener(named, protocol=protocol, allowed=allowed)])
            export.take(pack(msgspec.structs.replace(SPAN, tries=())))
            until(lambda one=export: one.exported + one.lost == 1, "an export")
            export.close(5)
            assert (export.exported, received.requests) == (taken, taken)
    assert (protocol == "http") or "never a collector (loopback)" in caplog.text


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_own_servers_of_the_proxy_get_no_spans(
    protocol: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with (http_collector if protocol == "http" else grpc_collector)() as (endpoint, received):
        agent = Agent(ProxySettings(workers=1, arena_bytes=1 << 20, stat_rows=4), ("false",))
        agent.listeners.server_ports = (int(endpoint.rpartition(":")[2]),)
        export = agent.spans
        export.use([listener(endpoint, protocol=protocol, allowed=("127.0.0.0/8",))])
        export.take(pack(SPAN))
        until(lambda: export.lost == 1, "a lost span")
        export.close(5)
        assert not received.requests
    assert (protocol == "http") or "a server of this proxy" in caplog.text


def test_every_connection_of_a_guarded_session_is_checked() -> None:
    with http_collector() as (endpoint, received):
        session = open_session(ir.Tracing(endpoint="http://192.0.2.1:4318"), ())
        with pytest.raises(OSError, match="never a collector"):
            session.get(endpoint)
        assert not received.requests


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("allowed", [ANY_NETWORK, ("127.0.0.0/8",)])
def test_a_redirect_is_a_failure(status: int, allowed: tuple[str, ...]) -> None:
    with http_collector() as (endpoint, received), redirect(status, endpoint) as first:
        exporter = OtlpExporter(ir.Tracing(endpoint=first, allowed=allowed))
        assert not exporter.export([SPAN])
        exporter.shutdown()
        assert not received.requests


class Pinned:
    """Stands in for gRPC's exporter; `made` lists the targets."""

    made: ClassVar[list[str]] = []
    broken = False
    taken: Any = SpanExportResult.SUCCESS

    def __init__(self, endpoint: str, **_: object) -> None:
        if Pinned.broken:
            raise ValueError("a broken certificate")
        Pinned.made.append(endpoint)
        self.open = True

    def export(self, spans: object) -> Any:
        assert self.open, "a closed exporter is in use"
        return Pinned.taken

    def shutdown(self) -> None:
        self.open = False


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the addresses of every name; gRPC exporters are `Pinned`, and names are resolved for each batch."""
    for name, value in (("made", []), ("broken", False), ("taken", SpanExportResult.SUCCESS)):
        monkeypatch.setattr(Pinned, name, value)
    monkeypatch.setattr(otlp_exporter, "GrpcSpanExporter", Pinned)
    monkeypatch.setattr(otlp_exporter, "_RESOLVE_EVERY", 0.0)

    def become(*addresses: str) -> None:
        found = [(2, 1, 6, "", (one, 4317)) for one in addresses]
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)

    return become


def _pinned() -> OtlpExporter:
    return OtlpExporter(
        ir.Tracing(endpoint="http://c.test:4317", protocol="grpc", allowed=("192.0.2.0/24",))
    )


def test_another_order_of_addresses_keeps_the_channel(names: Callable[..., None]) -> None:
    """Also of more addresses than a channel has. After a failure the new order is used."""
    many = [f"192.0.2.{n}" for n in range(12)]
    exporter = _pinned()
    for turn in range(4):
        names(*many[turn:], *many[:turn])
        assert exporter.export([SPAN])
    assert len(Pinned.made) == 1 and Pinned.made[0].startswith("ipv4:192.0.2.0:4317,")
    names(*many[1:])
    assert exporter.export([SPAN])
    assert len(Pinned.made) == 2
    Pinned.taken = SpanExportResult.FAILURE
    assert not exporter.export([SPAN])
    names(*many[9:], *many[1:9])
    assert not exporter.export([SPAN])
    assert len(Pinned.made) == 3 and Pinned.made[2].startswith("ipv4:192.0.2.9:4317,")


def test_a_channel_that_cannot_be_opened_is_tried_again(
    names: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and never with the channel that was closed."""
    exporter = _pinned()
    names("192.0.2.1")
    assert exporter.export([SPAN])
    names("192.0.2.2")
    Pinned.broken = True
    for _ in range(2):
        with pytest.raises(ValueError, match="broken certificate"):
            exporter.export([SPAN])
        monkeypatch.setattr(otlp_exporter, "_RESOLVE_EVERY", 1000.0)
    Pinned.broken = False
    assert exporter.export([SPAN])
    assert Pinned.made == ["ipv4:192.0.2.1:4317", "ipv4:192.0.2.2:4317"]
