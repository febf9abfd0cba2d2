"""Access log: one JSON line per request, whole lines in batches, and nothing a client sends can break out of its place."""

from __future__ import annotations

import json
import re

import pytest

from core.backend import make_response, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir

FIELDS = [
    "time", "client", "method", "host", "path", "status", "flags", "route", "rule", "backend", "endpoint",
    "request_id", "bytes_received", "bytes_sent", "duration_ms", "upstream_ms", "tries", "user_agent",
]  # fmt: skip


async def test_a_line_says_it_all(world: World) -> None:
    backend, client = await world.pair()
    agent = [("User-Agent", "curl/8")]
    await client.send(
        make_request("/a?b=1", method="POST", host="T.test", headers=agent, body=b"12345")
    )
    call = await backend.call()
    call.reply(b"hello world")
    await client.response()
    (line,) = world.lines()
    assert list(line) == FIELDS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line.pop("duration_ms") >= line.pop("upstream_ms") > 0
    assert line == {
        "client": "127.0.0.1",
        "method": "POST",
        "host": "T.test",
        "path": "/a?b=1",
        "status": 200,
        "flags": "",
        "route": "ns/web",
        "rule": 0,
        "backend": CLUSTER,
        "endpoint": f"127.0.0.1:{backend.port}",
        "request_id": (call.message.value(b"x-request-id") or b"").decode(),
        "bytes_received": 5,
        "bytes_sent": 11,
        "tries": 1,
        "user_agent": "curl/8",
    }


async def test_every_byte_of_a_client_is_escaped(world: World) -> None:
    _, client = await world.pair(say("x"))
    legal = bytes([9, *range(32, 127), *range(128, 256)])
    parts = [legal[i : i + 60] for i in range(0, len(legal), 60)]
    for part in parts:
        value = part.strip(b" \t")
        path = "/" + "".join(f"%{byte:02x}" for byte in part if byte not in b"/\\")
        head = f"GET {path} HTTP/1.1\r\nhost: test\r\n".encode()
        answer = await client.ask(
            head + b"user-agent: " + value + b"\r\nx-request-id: " + value + b"\r\n\r\n"
        )
        assert answer.status == 200
    lines = world.lines()
    for batch in world.batches:
        assert batch.isascii()
        assert batch.endswith(b"}\n")
    for part, line in zip(parts, lines, strict=True):
        text = part.strip(b" \t").decode("latin-1")
        assert line["user_agent"] == text
        assert line["request_id"] == text
        assert list(line) == FIELDS


async def test_bytes_that_are_refused_stay_out_of_the_log(world: World) -> None:
    port = await world.serve(make_fleet(make_cluster(1)))
    for bad in (
        b'GET /"}\n{"status":200} HTTP/1.1\r\n\r\n',
        b"\x00\x01\xff\r\n\r\n",
        b'{"a":1}\n' * 9,
    ):
        client = await world.client(port)
        await client.send(bad)
        assert (await client.response()).status >= 400
        assert await client.ending() == "closed"
    for line in world.lines():
        assert list(line) == ["time", "client", "status", "flags", "reason"]
        assert line["flags"] == "PE"


@pytest.mark.parametrize(
    "preamble",
    [
        b'PROXY TCP6 fe80::1%"},{"x":" ::1 1 2\r\n',
        b"PROXY TCP6 fe80::1%\nx-evil:1 ::1 1 2\r\n",
        b'PROXY TCP4 "1.2.3.4" 1.1.1.1 1 2\r\n',
    ],
)
async def test_an_address_in_a_preamble_cannot_break_out(world: World, preamble: bytes) -> None:
    backend = await world.backend(say("x"))
    address = ir.ClientAddress(proxy_protocol="optional", proxy_senders=("127.0.0.0/8",))
    listener = make_listener(client_address=address)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.send(preamble + make_request())
    await client.ending()
    assert world.counters["proxy_protocol_refused"] == 1
    assert world.lines() == []
    assert backend.count == 0


@pytest.mark.parametrize("setting", ["optional", "required"])
async def test_a_preamble_of_a_sender_that_is_not_trusted(world: World, setting: str) -> None:
    backend = await world.backend(say("x"))
    address = ir.ClientAddress(proxy_protocol=setting, proxy_senders=("127.0.0.2/32",))  # type: ignore[arg-type]
    listener = make_listener(client_address=address)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    client = await world.client(port)
    await client.send(b"PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n" + make_request())
    await client.ending()
    assert world.counters["proxy_protocol_refused"] == 1
    assert backend.count == 0
    own = await world.client(port)
    if setting == "optional":  # without one it speaks for itself
        assert (await own.get()).body == b"x"
        assert world.lines()[0]["client"] == "127.0.0.1"
    else:
        await own.send(make_request())
        await own.ending()


async def test_the_address_of_a_preamble_is_the_client(world: World) -> None:
    backend = await world.backend(say("x"))
    listener = make_listener(
        client_address=ir.ClientAddress(proxy_protocol="required", proxy_senders=("127.0.0.0/8",))
    )
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.ask(b"PROXY TCP6 2001:DB8::1 ::1 1 2\r\n" + make_request())
    assert world.lines()[0]["client"] == "2001:db8::1"


async def test_long_values_are_cut(world: World) -> None:
    _, client = await world.pair(say("x"))
    headers = [("user-agent", "\xe9" * 4000)]
    await client.get("/" + "p" * 4000, headers=headers, host="h" * 250)
    (line,) = world.lines()
    assert line["user_agent"] == "\xe9" * 512
    assert line["path"] == "/" + "p" * 511
    assert line["host"] == "h" * 250


async def test_names_of_the_configuration_are_escaped(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = str(tmp_path_factory.mktemp("u") / 'a"b\\c')
    backend = await world.backend(say("x"))
    await backend.start_unix(path)
    name = 'quoted "name" \u00e9'
    cluster = ir.Cluster(name=name, endpoints=(ir.Endpoint(address=path),))
    rule = ir.Rule(route="ns/w", index=1, name='r"1', backends=(ir.BackendRef(cluster=name),))
    client = await world.client_of(make_fleet(rule, cluster))
    assert (await client.get()).status == 200
    (line,) = world.lines()
    assert (line["backend"], line["endpoint"], line["rule"]) == (name, f"unix:{path}", 'r"1')


async def test_batches_are_whole_lines(world: World) -> None:
    _, client = await world.pair(say("x"))
    headers = [("user-agent", "\xff" * 512)]
    for _ in range(60):  # 3 KB each
        await client.get(headers=headers)
    await world.until(
        lambda: sum(batch.count(b"\n") for batch in world.batches) >= 60,
        "the timer hands over the rest",
    )
    assert sum(batch.count(b"\n") for batch in world.batches) == 60
    assert len(world.batches) < 60 and sum(map(len, world.batches)) > 180_000
    assert max(map(len, world.batches)) < 65536 + 8192
    for batch in world.batches:
        for line in batch.splitlines():
            json.loads(line)


async def test_a_batch_is_handed_over_without_being_asked(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    await (await world.client(port)).get()
    await world.until(lambda: world.batches)
    await (await world.client(port)).get()
    await world.until(lambda: len(world.batches) == 2)
    assert world.counters["access_log_lines"] == 2


@pytest.mark.parametrize(
    ("log", "statuses"),
    [
        (ir.AccessLog(), [200, 404, 500, 503]),
        (ir.AccessLog(off=True), []),
        (ir.AccessLog(sampling=0.0), []),
        (ir.AccessLog(min_status=404), [404, 500, 503]),
        (ir.AccessLog(min_status=500), [500, 503]),
        (ir.AccessLog(min_duration=60_000), []),
    ],
    ids=["all", "off", "none sampled", "from 404", "from 500", "slow ones"],
)
async def test_filters(world: World, log: ir.AccessLog, statuses: list[int]) -> None:
    _, client = await world.pair(
        lambda call: make_response(status=int(call.path[1:])), make_listener(log=log)
    )
    for status in (200, 404, 500, 503):
        assert (await client.get(f"/{status}")).status == status
    assert [line["status"] for line in world.lines()] == statuses
    assert world.counters["access_log_lines"] == len(statuses)


async def test_slow_requests_only(world: World) -> None:
    backend = await world.backend()
    log = ir.AccessLog(min_duration=40)
    client = await world.client_of(make_fleet(make_listener(log=log), make_cluster(backend.port)))
    await client.send(make_request("/slow"))
    call = await backend.call()
    begin = world.loop.time()
    await world.until(lambda: world.loop.time() > begin + 0.05)
    call.reply()
    await client.response()
    assert [line["path"] for line in world.lines()] == ["/slow"]


async def test_sampling(world: World) -> None:
    backend = await world.backend(say("x"))
    log = ir.AccessLog(sampling=0.25)
    client = await world.client_of(make_fleet(make_listener(log=log), make_cluster(backend.port)))
    await client.send(make_request() * 400)
    for _ in range(400):
        await client.response()
    assert 40 < len(world.lines()) < 160  # 100, give or take seven standard deviations


async def test_each_listener_of_a_port_has_its_own_settings(world: World) -> None:
    backend = await world.backend(say("x"))
    names = {"a.test": ir.AccessLog(off=True), "b.test": ir.AccessLog()}
    parts: list[ir.Listener | ir.VirtualHost | ir.Cluster] = [make_cluster(backend.port)]
    for hostname, log in names.items():
        listener = make_listener(f"ns/gw/{hostname}", hostname=hostname, log=log)
        parts += [listener, make_host(make_rule(), listener=listener.name)]
    client = await world.client_of(make_fleet(*parts))
    for hostname in ("a.test", "b.test", "c.test"):
        await client.get(host=hostname)
    lines = world.lines()
    assert [(line["host"], line["status"]) for line in lines] == [("b.test", 200), ("c.test", 404)]
    assert lines[1]["flags"] == "NR"


async def test_the_client_is_the_one_that_headers_believe(world: World) -> None:
    backend = await world.backend(say("x"))
    listener = make_listener(client_address=ir.ClientAddress(trusted_hops=1))
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.ask(make_request(headers=[("x-forwarded-for", "203.0.113.9")]))
    await client.ask(make_request())
    told, plain = world.lines()
    assert (told["client"], told["peer"]) == ("203.0.113.9", "127.0.0.1")
    assert plain["client"] == "127.0.0.1"
    assert "peer" not in plain
