"""Every name of edgefast/core/cells.py GLOBALS has a scene in which it moves, and the other rare ones do not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from httptools import HttpParserError

from core.backend import say
from core.certificates import Site
from core.client import make_request
from core.counters import GAUGES
from core.fleets import make_cluster, make_fleet, make_listener, make_rule
from core.world import World
from edgefast import ir
from edgefast.core import fastpath
from edgefast.core.cells import GLOBALS, HEAD_ERRORS

Scene = Callable[[World, pytest.MonkeyPatch], Awaitable[None]]


async def plain(world: World, patch: pytest.MonkeyPatch) -> None:
    """A request; a second one on the same connections."""
    _, client = await world.pair(say("x"))
    await client.get()
    await client.get()


async def tls(world: World, patch: pytest.MonkeyPatch) -> None:
    site = Site("a.test")
    world.apply(make_fleet(make_listener(protocol="HTTPS")))
    port = await world.listen(choose=site.choose)
    client = await world.tls_client(port, site.client(), "a.test")
    await client.get()


async def refused_connection(world: World, patch: pytest.MonkeyPatch) -> None:
    await (await world.client(await world.listen(81))).ending()


async def connect_failure(world: World, patch: pytest.MonkeyPatch) -> None:
    fleet = make_fleet(make_cluster(world.refusing_port(), world.refusing_port()))
    client = await world.client_of(fleet)
    for _ in range(8):
        await client.get()


async def bad_answer(world: World, patch: pytest.MonkeyPatch) -> None:
    backend = await world.backend(lambda call: b"what\r\n\r\n")
    await (await world.client_of(make_fleet(make_cluster(backend.port)))).get()


async def retries(world: World, patch: pytest.MonkeyPatch) -> None:
    """Five at once: three may be tried again."""
    backend = await world.backend()
    rule = make_rule(retry=ir.Retry(codes=(503,), attempts=1, backoff=1))
    port = await world.serve(make_fleet(rule, make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(5)]
    for client in clients:
        await client.send(make_request())
    for call in await backend.calls(5):
        call.reply(status=503)
    for call in await backend.calls(3):
        call.reply()
    for client in clients:
        await client.response()


async def mirrors(world: World, patch: pytest.MonkeyPatch) -> None:
    backend = await world.backend(say("x"))
    rule = make_rule(mirrors=(ir.Mirror(cluster="nowhere"),))
    await (await world.client_of(make_fleet(rule, make_cluster(backend.port)))).get()


async def no_listener(world: World, patch: pytest.MonkeyPatch) -> None:
    port = await world.serve(make_fleet(make_listener(hostname="a.test")))
    await (await world.client(port)).get(host="b.test")


async def no_route(world: World, patch: pytest.MonkeyPatch) -> None:
    await (await world.client_of(make_fleet())).get()


async def misdirected(world: World, patch: pytest.MonkeyPatch) -> None:
    site = Site("a.test", "b.test")
    listeners = [
        make_listener(f"ns/gw/{name}", hostname=name, protocol="HTTPS")
        for name in ("a.test", "b.test")
    ]
    world.apply(make_fleet(*listeners))
    port = await world.listen(choose=site.choose)
    client = await world.tls_client(port, site.client(), "a.test")
    assert (await client.get(host="b.test")).status == 421


async def disagreement(world: World, patch: pytest.MonkeyPatch) -> None:
    """The second parser refuses what the scan takes."""

    class Doubtful:
        def __init__(self, protocol: object) -> None:
            pass

        def feed_data(self, data: object) -> None:
            raise HttpParserError

        def should_keep_alive(self) -> bool:
            return True

        def get_method(self) -> bytes:
            return b"GET"

        def get_http_version(self) -> str:
            return "1.1"

        def set_dangerous_leniencies(self, *, lenient_keep_alive: bool) -> None:
            pass

    patch.setattr(fastpath, "HttpRequestParser", Doubtful)
    client = await world.client_of(make_fleet(make_cluster(1)))
    assert (await client.get()).status == 400
    await client.ending()


async def large_body(world: World, patch: pytest.MonkeyPatch) -> None:
    port = await world.serve(make_fleet(make_listener(body_size=1), make_cluster(1)))
    await (await world.client(port)).ask(make_request(method="POST", body=b"12"))


async def malformed_body(world: World, patch: pytest.MonkeyPatch) -> None:
    _, client = await world.pair()
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    assert (await client.ask(head + b"zz\r\n")).status == 400
    await client.ending()


async def slow_head(world: World, patch: pytest.MonkeyPatch) -> None:
    port = await world.serve(make_fleet(make_listener(head_timeout=40)))
    await (await world.client(port)).response()


async def refused_resource(world: World, patch: pytest.MonkeyPatch) -> None:
    world.engine.apply([("put", "what", "x", 0, 0)], "1")


async def pending(world: World, patch: pytest.MonkeyPatch) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=1, max_pending=0)
    port = await world.serve(make_fleet(cluster))
    one, two = await world.client(port), await world.client(port)
    await one.send(make_request())
    call = await backend.call()
    assert (await two.get()).status == 503
    call.reply()
    await one.response()


async def preamble(world: World, patch: pytest.MonkeyPatch) -> None:
    listener = make_listener(
        client_address=ir.ClientAddress(proxy_protocol="required", proxy_senders=("127.0.0.0/8",))
    )
    client = await world.client_of(make_fleet(listener))
    await client.send(make_request())
    await client.ending()


async def bad_path(world: World, patch: pytest.MonkeyPatch) -> None:
    await (await world.client_of(make_fleet())).get("/%zz")


async def tunnel(world: World, patch: pytest.MonkeyPatch) -> None:
    backend, client = await world.pair()
    upgrade = [("connection", "upgrade"), ("upgrade", "x")]
    await client.send(make_request(headers=upgrade))
    (await backend.call()).send(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")
    await client.response()


SCENES: dict[Scene, dict[str, int]] = {
    plain: {
        "connections_total": 1,
        "connections_active": 1,
        "downstream_bytes_received": -1,
        "downstream_bytes_sent": -1,
        "upstream_bytes_received": -1,
        "upstream_bytes_sent": -1,
        "upstream_connects": 1,
        "upstream_connections_active": 1,
        "upstream_reuses": 1,
        "access_log_lines": 2,
        "applies": 1,
        "turns": -1,
        "turn_events": -1,
        "turns_us": -1,
        "turn_longest_us": -1,
    },
    tls: {"connections_tls_total": 1, "no_route": 1},
    refused_connection: {"connections_refused": 1},
    connect_failure: {"upstream_connect_failures": -1, "endpoint_ejections": 1, "retries": -1},
    bad_answer: {"upstream_protocol_errors": 1},
    retries: {"retries": 3, "retries_over_budget": 2},
    mirrors: {"mirrored": 1, "mirrors_dropped": 1, "mirror_drops_unreachable": 1},
    no_listener: {"no_listener": 1},
    no_route: {"no_route": 1},
    misdirected: {"misdirected": 1, "connections_tls_total": 1},
    disagreement: {"parser_disagreements": 1},
    large_body: {"body_too_large": 1},
    malformed_body: {"body_malformed": 1},
    slow_head: {"head_timeouts": 1},
    refused_resource: {"resources_refused": 1},
    pending: {"pending_refused": 1},
    preamble: {"proxy_protocol_refused": 1},
    bad_path: {"path_refused": 1},
    tunnel: {"tunnels_active": 1, "requests_active": 1},
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_scene(world: World, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene(world, monkeypatch)
    named = SCENES[scene]
    for name, count in named.items():
        assert world.counters[name] > 0 if count < 0 else world.counters[name] == count, name
    everywhere = SCENES[plain].keys() | GAUGES
    rare = {name for scene_names in SCENES.values() for name in scene_names} - everywhere
    stray = {name for name in rare - named.keys() if world.counters[name]}
    assert not stray


def test_every_name_has_its_scene() -> None:
    written = {name for names in SCENES.values() for name in names}
    by_the_log_writer = {"access_log_dropped"}  # proxy/access_log/writer.py
    refusals = {f"head_refused_{name}" for name in HEAD_ERRORS}  # test_head_counters.py
    limits = {
        name for name in GLOBALS if name.startswith("limit_")
    }  # test_limits.py, test_limit_waits.py
    handshakes = {
        name for name in GLOBALS if name.startswith("handshakes_")
    }  # test_handshakes.py, tests/proxy/tls
    spans = {"spans_recorded", "spans_dropped"}  # test_trace.py
    slow = {"bodies_gave_way", "bodies_not_gathered", "answers_gave_way"}  # test_slow_*.py
    slow.add("pending_gave_way")  # test_pending_clients.py
    slow |= {"connections_gave_way", "streams_gave_way"}  # test_places.py, test_long_streams.py
    slow |= {name for name in GLOBALS if name.startswith("health_checks")}  # test_checks.py
    faults = {"faults"}  # test_faults.py
    injected = {"faults_delayed", "faults_aborted"}  # policy/test_fault.py
    injected |= {"compressed", "compressed_in", "compressed_out"}  # policy/test_compress.py
    http2 = {name for name in GLOBALS if name.startswith("http2_")}  # tests/wire/http2
    http2 |= {name for name in GLOBALS if name.startswith("upstream_http2_")}  # tests/core/h2
    streams = {name for name in GLOBALS if name.startswith("stream_")}  # tests/core/stream
    calls = {"grpc_retries", "grpc_web_requests"}  # exchange/test_grpc_retry.py, test_grpc_web.py
    calls |= {"http10_requests"}  # h1/test_http10.py
    elsewhere = (
        by_the_log_writer | refusals | limits | handshakes | spans | slow | faults | injected
    )
    calls |= {
        name for name in GLOBALS if name.startswith("mirror_drops_")
    }  # exchange/test_mirror.py
    services = {
        name for name in GLOBALS if name.startswith(("auth_", "error_calls"))
    }  # tests/core/policy
    checks = {name for name in GLOBALS if name.startswith("health_checks")}  # test_checks.py
    checks |= {"zone_own", "zone_other"}  # upstream/test_zones.py
    elsewhere |= http2 | streams | calls | services | checks
    assert written | elsewhere == set(GLOBALS)
