"""Benchmark of the request path alone: scan, match, rewrite both heads, count, by headers and by filters.

In: a real Engine between two unix sockets, whose other ends are in here. Out: `ns_each` in the extra info: nanoseconds per exchange,
with what the same bytes cost without an engine taken off; rows differ in one thing only, so the difference of two rows is the
price of that thing. Run: pytest bench/test_bench_rewrite.py --benchmark-enable. Must never assert a time.
"""

from __future__ import annotations

import mmap
import socket
import tempfile
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import uvloop
from pytest_benchmark.fixture import BenchmarkFixture

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.core import Engine, TlsContext
from edgefast.table import compile_fleet, diff

LISTENER = "ns/gw/http"
PORT = 8080
TURNS = 2_000
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Sat, 01 Jan 2022 00:00:00 GMT\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 13\r\n\r\nhello, world\n"
)


def make_limits() -> memoryview:
    """Room for a few counters of rate limits; no rule here has one."""
    size = int(lib.ef_store_size(1, 1))
    segment = mmap.mmap(-1, size)
    assert lib.ef_store_init(ffi.from_buffer(segment), size, 1, 1, bytes(16), 0) == 0
    return memoryview(segment)


class Path:
    """An engine with one client and one backend connection."""

    def __init__(self, rule: ir.Rule, http: ir.HttpSettings) -> None:
        self.loop = uvloop.new_event_loop()
        self.last = b""
        self._folder = tempfile.TemporaryDirectory()
        self._front, back = (listener(f"{self._folder.name}/{name}") for name in ("a", "b"))
        self._back = back
        self._sockets = [self._front, back]
        arena = mmap.mmap(-1, 1 << 20)
        size = lib.ef_stat_size(8)
        stats = mmap.mmap(-1, size)
        assert lib.ef_stat_init(ffi.from_buffer(stats), size, 8) == 0
        self.engine: Any = Engine(
            self.loop,
            memoryview(arena).toreadonly(),
            memoryview(stats),
            worker=0,
            upstream_tls=lambda tls: TlsContext(server=False),
            access_log=lambda lines: None,
            limits=make_limits(),
        )
        changes = []
        at = 64
        for one in diff(None, compile_fleet(make_fleet(rule, http, back.getsockname()))).put:
            arena[at : at + len(one.data)] = one.data
            changes.append(("put", one.type, one.name, at, len(one.data)))
            at = (at + len(one.data) + 63) & ~63
        assert self.engine.apply(changes, "1") == []
        self._accepting = self.engine.listen(self._front.fileno(), PORT)
        self.client = socket.socket(socket.AF_UNIX)
        self._sockets.append(self.client)
        self.client.connect(self._front.getsockname())
        self.turn()

    def turn(self) -> None:
        """One look of the loop at everybody."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def dial(self, request: bytes) -> None:
        """The first exchange makes the backend connection."""
        self.client.send(request)
        for _ in range(100):
            self.turn()
        self.backend = self._back.accept()[0]
        self._sockets.append(self.backend)
        self.turn()
        assert self.backend.recv(65536)
        self.backend.send(RESPONSE)
        self.turn()
        self.last = self.client.recv(65536)

    def exchange(self, request: bytes) -> int:
        """Many of them."""
        client, backend, turn = self.client, self.backend, self.turn
        for _ in range(TURNS):
            client.send(request)
            turn()
            backend.recv(65536)
            backend.send(RESPONSE)
            turn()
            self.last = client.recv(65536)
        return TURNS

    def answer(self, request: bytes) -> int:
        """Many that the proxy answers itself."""
        client, turn = self.client, self.turn
        for _ in range(TURNS):
            client.send(request)
            turn()
            self.last = client.recv(65536)
        return TURNS

    def close(self) -> None:
        self._accepting.stop()
        self.engine.close()
        for sock in self._sockets:
            sock.close()
        self.turn()
        self.loop.close()
        self._folder.cleanup()


def listener(path: str) -> socket.socket:
    """A unix socket that waits for connections."""
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    sock.listen(8)
    sock.setblocking(False)
    return sock


def make_fleet(rule: ir.Rule, http: ir.HttpSettings, backend: str) -> ir.Fleet:
    """One listener without a log, one host, one cluster."""
    entry = ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0)
    endpoint = ir.Endpoint(address=backend)
    return ir.Fleet(
        name="bench",
        listeners=(
            ir.Listener(
                name=LISTENER,
                port=PORT,
                bind_port=PORT,
                protocol="HTTP",
                http=http,
                access_log=ir.AccessLog(off=True),
            ),
        ),
        virtual_hosts=(
            ir.VirtualHost(listener=LISTENER, hostname="*", rules=(rule,), entries=(entry,)),
        ),
        clusters=(ir.Cluster(name="backend", endpoints=(endpoint,)),),
    )


def make_request(headers: int) -> bytes:
    lines = ["GET /api/v1/items/4711?expand=owner HTTP/1.1", "Host: shop.example.com"]
    lines += [f"X-Header-{i}: a value of usual length {i}" for i in range(headers - 1)]
    return "\r\n".join([*lines, "", ""]).encode()


def bare(path: Path, *sent: bytes) -> float:
    """Seconds that the same bytes, as often, cost without an engine."""
    near, far = socket.socketpair()
    begin = path.loop.time()
    with near, far:
        for _ in range(TURNS):
            for data in sent:
                near.send(data)
                path.turn()
                far.recv(65536)
    return path.loop.time() - begin


def report(benchmark: BenchmarkFixture, path: Path, *sent: bytes) -> None:
    """Nanoseconds per exchange, without the sending."""
    if benchmark.stats is None:  # benchmarks are disabled
        return
    cost = min(bare(path, *sent) for _ in range(10))
    for name in ("min", "median"):
        total = benchmark.stats.stats.as_dict()[name] - cost
        benchmark.extra_info[f"ns_each_{name}"] = round(total / TURNS * 1e9)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")


def measure(benchmark: BenchmarkFixture, call: Callable[[bytes], int], request: bytes) -> object:
    """A few rounds; returns what the last one did."""
    pedantic: Any = benchmark.pedantic  # it has no annotations
    return pedantic(call, (request,), rounds=15, iterations=1, warmup_rounds=1)


def run(
    benchmark: BenchmarkFixture,
    request_bytes: bytes,
    rule: ir.Rule,
    http: ir.HttpSettings | None = None,
) -> None:
    """Measure exchanges through one rule."""
    settings = http or ir.HttpSettings()
    unlimited = {"max_requests_per_connection": 1 << 30}
    path = Path(rule, msgspec.structs.replace(settings, **unlimited))
    try:
        path.dial(request_bytes)
        done = measure(benchmark, path.exchange, request_bytes)
        assert done == TURNS
        assert path.last.endswith(b"hello, world\n")
        assert path.engine.active == 0
        report(benchmark, path, request_bytes, RESPONSE)
    finally:
        path.close()


def make_rule(**settings: Any) -> ir.Rule:
    backend = ir.BackendRef(cluster="backend")
    return ir.Rule(route="ns/web", index=0, backends=(backend,), **settings)


@pytest.mark.parametrize("headers", [1, 6, 16, 40, 90])
def test_headers(benchmark: BenchmarkFixture, headers: int) -> None:
    run(benchmark, make_request(headers), make_rule())


FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "remove one": {"request_headers": ir.HeaderOps(remove=("x-header-2",))},
    "remove five": {
        "request_headers": ir.HeaderOps(remove=tuple(f"x-header-{i}" for i in range(5)))
    },
    "set one": {"request_headers": ir.HeaderOps(set=(("x-header-2", "new"),))},
    "add five": {"request_headers": ir.HeaderOps(add=tuple((f"x-{i}", "v") for i in range(5)))},
    "response set one": {"response_headers": ir.HeaderOps(set=(("x-served-by", "edge"),))},
    "rewrite host": {"rewrite": ir.Rewrite(hostname="internal.test")},
    "rewrite path": {"rewrite": ir.Rewrite(path=ir.PathRewrite(kind="full", value="/new"))},
    "rewrite prefix": {"rewrite": ir.Rewrite(path=ir.PathRewrite(kind="prefix", value="/new"))},
    "cors": {"cors": ir.Cors(allow_origins=("*",))},
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(benchmark: BenchmarkFixture, name: str) -> None:
    request = make_request(5)[:-2] + b"Origin: https://shop.example.com\r\n\r\n"
    run(benchmark, request, make_rule(**FILTERS[name]))


@pytest.mark.parametrize("forwarded", ["none", "one", "trusted"])
def test_forwarded_for(benchmark: BenchmarkFixture, forwarded: str) -> None:
    """A request that came through other proxies."""
    request = make_request(6)
    if forwarded != "none":
        request = request[:-2] + b"X-Forwarded-For: 203.0.113.7, 10.0.0.9\r\n\r\n"
    hops = ir.ClientAddress(trusted_hops=1) if forwarded == "trusted" else ir.ClientAddress()
    run(benchmark, request, make_rule(), ir.HttpSettings(client_address=hops))


def test_own_answer(benchmark: BenchmarkFixture) -> None:
    """Scan, match and an answer of the proxy's own: all but the backend and its two heads."""
    rule = ir.Rule(route="ns/web", index=0, status=500)
    path = Path(rule, ir.HttpSettings(max_requests_per_connection=1 << 30))
    request = make_request(6)
    try:
        done = measure(benchmark, path.answer, request)
        assert done == TURNS
        assert path.last.startswith(b"HTTP/1.1 500 ")
        report(benchmark, path, request)
    finally:
        path.close()
