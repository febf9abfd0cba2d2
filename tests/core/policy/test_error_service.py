"""Answers of an error service in place of errors: what it is asked, what the client gets, and what happens when it fails."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import Backend, Call, make_response
from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker
from core.policy.policies import NAME, access
from core.policy.test_override import CALL, replacing, status_of
from core.world import World
from edgefast import ir

PAGES = "pages"
ERRORS = ((400, 599),)


def asking(
    statuses: tuple[tuple[int, int], ...] = ERRORS, source: Any = "all", **service: Any
) -> ir.ResponseOverride:
    """An override with a service."""
    made = ir.ErrorService(**{"cluster": PAGES, **service})
    return ir.ResponseOverride(statuses=statuses, source=source, service=made)


def page(call: Call) -> bytes:
    """A page of the service."""
    lines = (("content-type", "text/html"), ("x-page", "1"), ("location", "/away"))
    return make_response(b"<h1>sorry</h1>", 404, lines)


class Scene:
    """A client of a route with overrides, its backend, and the service."""

    client: Client
    backend: Backend
    pages: Backend

    def __init__(self, fleet: ir.Fleet, port: int) -> None:
        self.fleet = fleet
        self.port = port


async def serve(
    world: World,
    *overrides: ir.ResponseOverride,
    answer: Any = status_of,
    pages: Any = page,
    units: tuple[ir.PolicyUnit, ...] = (),
    **rule: Any,
) -> Scene:
    backend, service = await world.backend(answer), await world.backend(pages)
    unit = replacing(*overrides, **rule.pop("traffic", {}))
    fleet = make_fleet(
        make_listener(),
        make_host(make_rule(traffic=(unit.name,), **rule)),
        make_cluster(backend.port),
        make_cluster(service.port, name=PAGES),
        unit,
        *units,
    )
    scene = Scene(fleet, await world.serve(fleet))
    scene.client = await world.client(scene.port)
    scene.backend, scene.pages = backend, service
    return scene


async def test_a_page_in_place_of_an_error(world: World) -> None:
    scene = await serve(world, asking())
    answer = await scene.client.ask(make_request("/503?a=b", headers=[("accept", "text/html")]))
    assert (answer.status, answer.body) == (503, b"<h1>sorry</h1>")
    assert answer.value("content-type") == "text/html" and answer.value("x-page") == "1"
    assert answer.value("x-stack") is None and answer.value("location") is None
    answer = await scene.client.ask(make_request("/200"))
    assert (answer.status, answer.body, scene.pages.count) == (200, b"secret trace", 1)
    assert world.counters["error_calls"] == 1 and world.counters["error_calls_failed"] == 0
    line = world.lines()[0]
    assert (line["status"], line["bytes_sent"], line["route"]) == (503, 14, "ns/web")


async def test_what_the_service_is_asked(world: World) -> None:
    asked: list[Call] = []

    def keep(call: Call) -> bytes:
        asked.append(call)
        return page(call)

    service = asking(path="/", all_headers=True, own_status=True, fixed=(("x-namespace", "shop"),))
    scene = await serve(world, service, pages=keep)
    forged = [
        ("accept", "a/b"),
        ("accept", "c/d"),
        ("cookie", "a=b"),
        ("x-code", "999"),
        ("X-Namespace", "other"),
        ("x-original-uri", "/forged"),
        ("x-format", "forged"),
        ("authorization", "Basic YTpi"),
        ("range", "bytes=0-1"),
        ("if-none-match", '"a"'),
        ("x-own", "1"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
    ]
    await scene.client.ask(
        make_request("/503/a%20b?q=1&r", method="POST", headers=forged, body=b"body")
    )
    message = asked[0].message
    head = {name.decode().lower(): value.decode() for name, value in message.headers}
    assert (message.method, message.target, message.body) == (b"GET", b"/?q=1&r", b"")
    wanted = {
        "x-code": "503",
        "x-format": "a/b, c/d",
        "x-original-uri": "/503/a%20b?q=1&r",
        "x-namespace": "shop",
        "cookie": "a=b",
        "x-own": "1",
        "x-edge-error-call": "true",
    }
    assert {name: head.get(name) for name in wanted} == wanted
    names = [name.decode().lower() for name, _ in message.headers]
    assert all(names.count(name) == 1 for name in wanted)
    for name in ("authorization", "range", "if-none-match", "x-hop", "content-length"):
        assert name not in head
    assert head["x-forwarded-for"] and head["x-request-id"]


async def test_by_default_it_gets_few_headers(world: World) -> None:
    scene = await serve(world, asking(headers=("accept-language", "x-code")), pages=None)
    lines = [("cookie", "a=b"), ("accept-language", "de"), ("x-code", "1")]
    await scene.client.send(make_request("/500", headers=lines))
    call = await scene.pages.call()
    head = [(name.decode().lower(), value.decode()) for name, value in call.message.headers]
    assert ("accept-language", "de") in head and ("x-code", "500") in head
    assert not any(name == "cookie" or value == "1" for name, value in head)
    assert call.path == "/500"
    call.reply(b"page")
    assert (await scene.client.response()).body == b"page"


async def test_the_status_of_the_service(world: World) -> None:
    scene = await serve(world, asking(own_status=True))
    answer = await scene.client.ask(make_request("/503"))
    assert (answer.status, answer.value("location")) == (404, "/away")


async def test_answers_of_the_proxy(world: World) -> None:
    shut = access(allow=False)
    scene = await serve(world, asking(), units=(shut,), policies=(NAME,))
    answer = await scene.client.ask(make_request("/x"))
    assert (answer.status, answer.body) == (403, b"<h1>sorry</h1>")
    assert world.lines()[0]["flags"] == "DENY" and scene.backend.count == 0


@pytest.mark.parametrize(
    ("source", "backend", "own"),
    [("all", True, True), ("backend", True, False), ("gateway", False, True)],
)
async def test_sources(world: World, source: Any, backend: bool, own: bool) -> None:
    scene = await serve(world, asking(source=source), traffic={"body_size": 5})
    answer = await scene.client.ask(make_request("/500"))
    assert (answer.body == b"<h1>sorry</h1>") is backend
    answer = await scene.client.ask(make_request("/200", method="PUT", body=bytes(6)))
    assert answer.status == 413 and (answer.body == b"<h1>sorry</h1>") is own


async def test_a_backend_without_endpoints(world: World) -> None:
    scene = await serve(world, asking(source="no_endpoints", own_status=True))
    assert (await scene.client.ask(make_request("/503"))).body == b"secret trace"
    world.apply(
        ir.Fleet(
            **{
                **{name: getattr(scene.fleet, name) for name in scene.fleet.__struct_fields__},
                "clusters": (
                    make_cluster(name=CLUSTER),
                    *(one for one in scene.fleet.clusters if one.name == PAGES),
                ),
            }
        )
    )
    answer = await scene.client.ask(make_request("/a/b"))
    assert (answer.status, answer.body) == (404, b"<h1>sorry</h1>")


async def test_a_head_request(world: World) -> None:
    scene = await serve(world, asking())
    answer = await scene.client.ask(make_request("/503", method="HEAD"), head=True)
    assert (answer.status, answer.body, answer.value("content-length")) == (503, b"", "14")
    assert world.lines()[0]["bytes_sent"] == 0


@pytest.mark.parametrize(
    "bad",
    [
        make_response(bytes(262_145)),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n50000\r\n"
        + bytes(0x50000)
        + b"\r\n0\r\n\r\n",
        b"no http\r\n\r\n",
        b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        make_response(b"", 200, tuple((f"x-{i}", "v" * 1000) for i in range(70))),
    ],
    ids=["large", "chunked", "garbage", "upgrade", "lines"],
)
async def test_a_bad_answer_gives_the_plain_error(world: World, bad: bytes) -> None:
    scene = await serve(world, asking(), pages=lambda call: bad)
    for _ in range(2):
        answer = await scene.client.ask(make_request("/502"))
        assert (answer.status, answer.body) == (502, b"")
    assert world.counters["error_calls_failed"] == 2


async def test_the_largest_page(world: World) -> None:
    scene = await serve(world, asking(), pages=lambda call: make_response(bytes(262_144)))
    answer = await scene.client.ask(make_request("/502"))
    assert (answer.status, len(answer.body)) == (502, 262_144)


async def test_a_service_that_is_away(world: World) -> None:
    scene = await serve(world, asking())
    scene.pages.close()
    await world.turns()
    answer = await scene.client.ask(make_request("/500"))
    assert (answer.status, answer.body) == (500, b"")


async def test_a_service_that_is_silent(world: World) -> None:
    scene = await serve(world, asking(timeout=40), pages=lambda call: None)
    answer = await scene.client.ask(make_request("/500"))
    assert (answer.status, answer.body) == (500, b"")
    assert world.counters["error_calls_failed"] == 1


async def test_a_service_without_a_cluster(world: World) -> None:
    scene = await serve(world, asking(cluster="none"))
    assert (await scene.client.ask(make_request("/500"))).body == b""


async def test_its_calls_have_no_page(world: World) -> None:
    """A gateway behind the service is asked for no page of an error of its own."""
    scene = await serve(world, asking())
    answer = await scene.client.ask(make_request("/500", headers=[("x-edge-error-call", "true")]))
    assert (answer.status, answer.body, scene.pages.count) == (500, b"", 0)


async def test_a_client_that_leaves(world: World) -> None:
    scene = await serve(world, asking(timeout=60_000), pages=lambda call: None)
    await scene.client.send(make_request("/500"))
    call = await scene.pages.call()
    scene.client.close()
    await world.until(lambda: call.link.lost)


async def test_a_client_that_goes_on_sending(world: World) -> None:
    """Its body goes nowhere, and its connection is usable or closed afterwards."""
    scene = await serve(world, asking(timeout=60_000), pages=lambda call: None, answer=None)
    head = b"PUT /500 HTTP/1.1\r\nhost: a.test\r\ncontent-length: 20\r\n\r\n0123456789"
    await scene.client.send(head)
    await world.until(lambda: bool(scene.backend.links) and scene.backend.links[0].bytes_in > 0)
    scene.backend.links[0].transport.write(make_response(b"x", 500))
    call = await scene.pages.call()
    await scene.client.send(b"0123456789")
    await world.turns()
    call.reply(b"page")
    assert (await scene.client.response()).body == b"page"
    await scene.client.send(make_request("/500"))
    (await scene.backend.call()).reply(b"x", 500)
    (await scene.pages.call()).reply(b"again")
    assert (await scene.client.response()).body == b"again"


async def test_many_at_once_are_bounded(world: World) -> None:
    scene = await serve(world, asking(timeout=60_000), pages=lambda call: None)
    clients = [await world.client(scene.port) for _ in range(258)]
    for client in clients:
        await client.send(make_request("/500"))
    await world.until(lambda: world.counters["error_calls_failed"] == 2)
    assert world.counters["error_calls"] == 256
    for client in clients:
        client.close()
    await world.until(lambda: world.engine.active == 0)
    await scene.client.send(make_request("/500"))
    await world.until(lambda: world.counters["error_calls"] == 257)


async def test_calls_of_grpc_keep_their_status(world: World) -> None:
    shut = access(allow=False)
    scene = await serve(world, asking(), units=(shut,), policies=(NAME,))
    answer = await scene.client.ask(make_request("/a.B/C", method="POST", headers=CALL, body=b""))
    assert (answer.value("grpc-status"), scene.pages.count) == ("7", 0)


async def test_edits_of_own_headers(world: World) -> None:
    """A rule's own operations come last; an override's apply to its inline answer."""
    one = ir.ResponseOverride(
        statuses=ERRORS,
        body=b"text",
        content_type="text/plain",
        header=ir.HeaderOps(
            set=(("content-type", "a/b"), ("x-a", "1")), add=(("x-b", "2"),), remove=("x-c",)
        ),
    )
    scene = await serve(world, one, response_headers=ir.HeaderOps(set=(("x-b", "3"),)))
    answer = await scene.client.ask(make_request("/500"))
    assert (answer.status, answer.body) == (500, b"text")
    assert answer.value("content-type") == "a/b" and answer.value("x-a") == "1"
    assert answer.value("x-b") == "3"


async def test_http2(world: World) -> None:
    scene = await serve(world, asking())
    asker = Asker(await world.client(scene.port))
    head = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/503")]
    answer = await asker.ask([*head, (b":authority", b"a.test")])
    assert (answer.status, answer.body) == (503, b"<h1>sorry</h1>")
    assert scene.pages.count == 1
