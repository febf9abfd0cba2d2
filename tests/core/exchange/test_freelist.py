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

#: The parts of an exchange that stay with it, and their files.
_PARTS = {"Body": "body", "RetryState": "retry_state"}
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
        parts = [other for other in gc.get_referents(one) if type(other).__name__ in _PARTS]
        assert len(parts) == len(_PARTS)
        for whole in (one, *parts):
            others = {type(other) for other in gc.get_referents(whole) if other not in parts}
            assert others <= {type(None), type}


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


#: Types of plain fields; all others are references.
_PLAIN = re.compile(
    r"u?int\d*_t|int|unsigned|bint|size_t|double|void|Balance|BodyState|TryState|Out"
)
_CORE = Path(engine.__file__).parent


def fields(file: str, name: str) -> list[tuple[str, str]]:
    """Return (type, name) of each field of a class, in the order of its declaration."""
    text = (_CORE / file).read_text()
    body = re.split(rf"^cdef class {name}\b.*:$", text, maxsplit=1, flags=re.MULTILINE)[1]
    block = body.partition("    cdef:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^        (\w+) ([^#\n]+)", block, re.MULTILINE)
    return [(kind, one.strip()) for kind, said in found for one in said.split(",")]


def test_fields_are_in_the_block_of_their_kind() -> None:
    """freelist.pyx sets all references to None and all plain fields to 0, so that none can be forgotten. The engine does not start
    where a field is in the wrong block; this test says which."""
    for file, name, first in (
        ("upstream/upstreamuser.pxd", "UpstreamUser", "tried"),
        ("exchange/exchange.pxd", "Exchange", "head"),
    ):
        found = fields(file, name)
        plain = [bool(_PLAIN.fullmatch(kind)) for kind, _ in found]
        assert plain == sorted(plain), name
        assert found[plain.index(True)][1] == first
        assert 10 < plain.count(False) < len(plain) - 10
    assert [kind for kind, _ in fields("exchange/exchange.pxd", "Exchange")][:2] == list(_PARTS)


def test_memory_of_an_exchange_and_its_parts_is_freed() -> None:
    """Each buffer (Out), and each reference and the plain fields of a part, are in its reset."""
    freelist = (_CORE / "exchange/freelist.pyx").read_text()
    whole = (_CORE / "exchange/exchange.pyx").read_text()
    buffers = {one for kind, one in fields("exchange/exchange.pxd", "Exchange") if kind == "Out"}
    assert set(re.findall(r"out_free\(&ex\.(\w+)\)", freelist)) == buffers
    assert buffers <= set(re.findall(r"out_free\(&self\.(\w+)\)", whole.partition("# ---")[0]))
    for part, file in _PARTS.items():
        text = (_CORE / f"exchange/{file}.pyx").read_text()
        reset = text.partition("cdef void reset(self)")[2].partition("\n\n")[0]
        freed = text.partition("def __dealloc__(self):")[2].partition("\n\n")[0]
        found = fields(f"exchange/{file}.pxd", part)
        references = {one for kind, one in found if not _PLAIN.fullmatch(kind)}
        assert set(re.findall(r"self\.(\w+) = None", reset)) == references
        buffers = {one for kind, one in found if kind == "Out"}
        for where in (reset, freed):
            assert set(re.findall(r"out_free\(&self\.(\w+)\)", where)) == buffers
        plain = [one for kind, one in found if one not in references | buffers]
        assert f"memset(&self.{plain[0]}, 0," in reset
        assert f"sizeof(self.{plain[-1]})" in reset
        assert [one for _, one in found][-len(plain) :] == plain
        assert f"ex.{'body' if part == 'Body' else 'retry'}.reset()" in freelist
