"""Exchanges that are over serve requests to come, and nothing of one request is there in the next one."""

from __future__ import annotations

import gc
import re
from pathlib import Path

from core.backend import make_response, say
from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_rule
from core.world import World
from edgefast import ir
from edgefast.core import engine

_CHANGING = ("date", "content-length", "x-edge-upstream-service-time")


def exchanges(before: list[object] | None = None) -> list[object]:
    """All that there are, whoever has them, but for those there were `before`: engines of other tests lie in cycles, and go whenever
    the collector comes."""
    gc.collect()
    known = {id(one) for one in before or ()}
    found = [one for one in gc.get_objects() if type(one).__name__ == "Exchange"]
    return [one for one in found if id(one) not in known]


async def idle(world: World) -> None:
    await world.until(lambda: world.engine.active == 0)
    await world.turns()


async def test_requests_one_after_the_other_share_one(world: World) -> None:
    before = exchanges()
    _, client = await world.pair(say("x"))
    await client.get()
    await idle(world)
    made = {id(one) for one in exchanges(before)}
    assert made
    for _ in range(20):
        assert (await client.get()).status == 200
    await idle(world)
    assert {id(one) for one in exchanges(before)} == made


async def test_what_is_kept_holds_nothing(world: World) -> None:
    """Not its client, its rule or its backend: these go when they are no more."""
    before = exchanges()
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(10)]
    for client in clients:
        await client.send(make_request(method="POST", body=b"abc"))
    for client in clients:
        await client.response()
    await idle(world)
    kept = exchanges(before)
    assert len(kept) >= 2
    for one in kept:
        assert {type(other) for other in gc.get_referents(one)} <= {type(None), type}


async def test_no_more_of_them_are_kept_than_are_of_use(world: World) -> None:
    before = exchanges()
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(100)]
    for client in clients:
        await client.send(make_request())
    for call in await backend.calls(100):
        call.reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200
    await idle(world)
    assert len(exchanges(before)) <= 64


async def test_a_plain_request_behind_all_others(world: World) -> None:
    """Each of them sets something that the next one must not find."""
    cors = ir.Cors(allow_origins=("https://a.test",), allow_methods=("GET",), max_age=5)
    retry = ir.Retry(codes=(503,), attempts=1, backoff=0)
    timeouts = ir.Timeouts(request=5000, backend_request=4000)
    backend = await world.backend(
        lambda call: make_response(call.message.raw.partition(b"\r\n\r\n")[0])
    )
    fleet = make_fleet(
        make_cluster(backend.port),
        make_host(
            ("/cors", make_rule(cors=cors)),
            ("/retry", make_rule(retry=retry, timeouts=timeouts)),
            ("/gone", make_rule(status=500)),
            ("/plain", make_rule()),
        ),
    )
    port = await world.serve(fleet)
    client = await world.client(port)
    plain = make_request("/plain")

    async def ask() -> tuple[list[bytes], list[tuple[str, str]]]:
        """What the backend and the client hear of the plain request; but what is different each time."""
        await client.send(plain)
        answer = await client.response()
        lines = [one for one in answer.body.split(b"\r\n") if not one.startswith(b"x-request-id")]
        return lines, [one for one in answer.headers if one[0] not in _CHANGING]

    expected = await ask()
    for request in (
        make_request("/cors", headers=[("origin", "https://a.test")]),
        make_request("/retry", method="PUT", body=bytes(70_000)),
        make_request("/gone"),
        make_request("/plain", headers=[("te", "trailers"), ("x-forwarded-for", "192.0.2.1")]),
        make_request("/plain", headers=[("content-type", "application/grpc")], method="POST"),
        make_request(
            "/plain", headers=[("content-type", "application/grpc"), ("grpc-timeout", "5S")]
        ),
        make_request("/none"),
    ):
        await client.send(request)
        answer = await client.response()
        if answer.value("connection") == "close":
            client = await Client.connect(port)
        assert await ask() == expected
    client.close()


#: What is no reference, and needs not be let go of.
_PLAIN = re.compile(r"u?int\d*_t|int|unsigned|bint|size_t|double|void|Balance")


def test_all_that_an_exchange_refers_to_is_let_go_of() -> None:
    """A field that is forgotten there holds its object for ever."""
    core = Path(engine.__file__).parent
    classes = {
        "loop/wheel.pxd": ["Timer"],
        "upstream/upstreamuser.pxd": ["UpstreamUser"],
        "exchange/exchange.pxd": ["Attempts", "RequestBody", "Exchange"],
    }
    referred: dict[str, set[str]] = {"Out": set(), "object": set()}
    for file, names in classes.items():
        text = (core / file).read_text()
        for name in names:
            body = text.partition(f"cdef class {name}(")[2] or text.partition(f"class {name}:")[2]
            fields = body.partition("    cdef:\n")[2].partition("\n\n")[0]
            for kind, said in re.findall(r"^        (\w+) ([^#\n]+)", fields, re.MULTILINE):
                if not _PLAIN.fullmatch(kind) and "[" not in said:
                    found = referred["Out" if kind == "Out" else "object"]
                    found.update(one.strip() for one in said.split(","))
    text = (core / "exchange/freelist.pyx").read_text()
    assert set(re.findall(r"^        ex\.(\w+) = None$", text, re.MULTILINE)) == referred["object"]
    assert set(re.findall(r"out_free\(&ex\.(\w+)\)", text)) == referred["Out"]
    assert len(referred["object"]) > 20
