"""The rows of the bench by name: which scenario, which load, which measurement.

In: a `Bench`. Out: one `Table` per row. Must never hold how something is measured: one line per
row, so that this file reads as the list of what is compared.
"""

from collections.abc import Callable
from functools import partial

from bench.attacks import measure_attacks
from bench.beside import measure_beside
from bench.field import Bench, Variant
from bench.floods import measure_floods
from bench.generator import Load
from bench.latency import measure_latency
from bench.limits import measure_limits
from bench.measure import measure_load
from bench.memory import measure_idle, measure_route_memory
from bench.policies import measure_policy
from bench.scenario import Policy, Scenario, Spread
from bench.startup import measure_start
from bench.syscalls import measure_syscalls
from bench.table import Table

Row = Callable[[Bench], Table]
ONE_ROUTE = [Variant("", Scenario())]
POLICIES: dict[Policy, str] = {
    "cidr": "an address that is looked up in 100 ranges",
    "jwt": "a signed token that is known",
    "extauth": "a service that is asked about each request",
    "gzip": "gzip of 16 KiB at level 1",
    "br": "brotli of 16 KiB at level 1",
    "zstd": "zstd of 16 KiB at level 1",
    "hash": "one of 100 endpoints by a header",
    "session": "the endpoint that a session names, one of 100",
    "oidc": "the session of a login (OIDC) that is known",
}


def _load_row(name: str, title: str, load: Load, scenario: Scenario | None = None) -> Row:
    variants = [Variant("", scenario)] if scenario else ONE_ROUTE
    return partial(measure_load, name=name, title=title, load=load, variants=variants)


def _measure_routes(bench: Bench, name: str, title: str, spread: Spread) -> Table:
    counts = (1, 1_000, 10_000) if bench.quick else (1, 1_000, 10_000, 100_000)
    variants = [Variant(str(n), Scenario(routes=n, spread=spread)) for n in counts]
    return measure_load(bench, name, title, Load(), variants)


def _measure_idle(bench: Bench, name: str, title: str, tls: bool) -> Table:
    scenario = Scenario(connections=2_000 if bench.quick else 10_000, tls=tls)
    return measure_idle(bench, name, title, scenario)


def _measure_memory(bench: Bench, name: str, title: str) -> Table:
    return measure_route_memory(bench, name, title, 1_000 if bench.quick else 10_000)


def _measure_start(bench: Bench, name: str, title: str) -> Table:
    return measure_start(bench, name, title, 1_000)


def _list_rows() -> dict[str, Row]:
    post, long = Load(body=10 << 10), Load(connections=8, suffix=f"/bytes/{10 << 20}")
    tls = Scenario(tls=True)
    rows: dict[str, Row] = {}

    def add(name: str, title: str, measure: Callable[[Bench, str, str], Table]) -> None:
        rows[name] = lambda bench: measure(bench, name, title)

    def add_load(name: str, title: str, load: Load, scenario: Scenario | None = None) -> None:
        rows[name] = _load_row(name, title, load, scenario)

    add_load("get", "keep-alive GET, 128 bytes, 64 connections, logs off", Load())
    add_load("get-logs", "keep-alive GET, JSON access log on", Load(), Scenario(logs=True))
    add_load("connect", "a new client connection for each request", Load(close=True))
    add_load("post", "keep-alive POST of 10 KiB", post)
    add_load("download", "10 MiB download, 8 connections", long)
    add_load("tls", "keep-alive GET over TLS 1.3 (ECDSA P-256, AES-128-GCM)", Load(), tls)
    new, again = Load(close=True), Load(close=True, resume=True)
    add_load("handshake", "a new TLS 1.3 connection for each request", new, tls)
    add_load("handshake-resumed", "the same, each resumes the session of one before", again, tls)
    many, each = Load(connections=8, streams=16), Load(connections=64, streams=1)
    h2, both = Scenario(http2=True), Scenario(http2=True, http2_backends=True)
    calls = Scenario(http2=True, http2_backends=True, grpc=True)
    add_load("h2-8x16", "HTTP/2 in, HTTP/1.1 out: GET, 8 connections x 16 streams", many, h2)
    add_load("h2-64x1", "the same, 64 connections x 1 stream", each, h2)
    add_load("h2-both", "HTTP/2 in, HTTP/2 out: GET, 8 x 16", many, both)
    add_load("grpc", "unary calls, 8 x 16, grpc-status of each looked at", many, calls)
    bulk = Load(connections=8, body=10 << 20, suffix=f"/bytes/{10 << 20}")
    add_load("tcp-connect", "TCP passed on: a new connection each", new, Scenario(stream="tcp"))
    add_load("tcp-bulk", "TCP passed on: 10 MiB up, 10 MiB down", bulk, Scenario(stream="tcp"))
    passed = Scenario(stream="tls")
    add_load("tls-passthrough", "TLS passed on by name: a new connection each", new, passed)
    add_load("udp", "datagrams of 64 bytes, 64 clients", Load(body=64), Scenario(stream="udp"))
    beside = partial(measure_beside, load=many, scenario=h2)
    add("h2-beside", "h2-8x16 beside a client that reads nothing and a slow one", beside)
    add("h2-attacks", "what others feel while a client of HTTP/2 means no good", measure_attacks)
    add("floods", "what others feel while passwords or tokens come unpaced", measure_floods)
    for policy, title in POLICIES.items():
        add(f"policy-{policy}", f"what {title} adds", partial(measure_policy, policy=policy))
    add("latency", "open loop at a fixed rate", measure_latency)
    add("limits", "rate limits, with Redis and with shared memory", measure_limits)
    add("syscalls", "system calls per keep-alive GET", measure_syscalls)
    add("idle", "memory of an idle keep-alive connection", partial(_measure_idle, tls=False))
    add("idle-tls", "memory of an idle connection with TLS", partial(_measure_idle, tls=True))
    add("memory", "memory of a route and its backend", _measure_memory)
    add("start", "start with 1,000 routes, reload of one more", _measure_start)
    add(
        "hosts",
        "N routes on N hosts, requests at random over all",
        partial(_measure_routes, spread="hosts"),
    )
    add(
        "paths",
        "N routes on one host, requests at random over all",
        partial(_measure_routes, spread="paths"),
    )
    return rows


ROWS: dict[str, Row] = _list_rows()
