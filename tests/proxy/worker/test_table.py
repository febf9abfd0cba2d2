"""One swap of one worker: what reaches the engine, what stays with TLS, what is refused."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence

import msgspec
import pytest

from edgefast import ir
from edgefast.core import TlsContext
from edgefast.proxy.control.messages import Change
from edgefast.proxy.tls.server import load_secret
from edgefast.proxy.worker import table
from edgefast.proxy.worker.table import WorkerTable
from proxy.full import exhausted
from proxy.pki import Authority, Pair

pytestmark = pytest.mark.pure

CA = Authority()
PAIR = CA.issue("a.test")


class Engine:
    """Takes everything except what it is told to refuse."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, str]] = []
        self.places: list[int] = []
        self.refuse: set[str] = set()

    def apply(
        self, changes: Sequence[tuple[str, str, str, int, int]], version: str
    ) -> list[tuple[str, str, str]]:
        self.taken = [change[:3] for change in changes]
        self.places = [change[3] for change in changes]
        return [(type_, name, "no") for _, type_, name, _, _ in changes if name in self.refuse]


class Bench:
    """A worker's table over a piece of memory that stands for the arena."""

    def __init__(self) -> None:
        self.memory = bytearray(1 << 20)
        self.top = 0
        self.engine = Engine()
        self.table = WorkerTable(memoryview(self.memory).toreadonly())

    def put(self, value: ir.Listener | ir.Cluster | ir.Secret) -> Change:
        data = msgspec.msgpack.encode(value)
        place, self.top = self.top, self.top + len(data)
        self.memory[place : self.top] = data
        return Change("put", type(value).__name__.lower(), value.name, place, len(data))

    def apply(self, *changes: Change) -> list[tuple[str, str, str]]:
        return asyncio.run(self.table.apply(self.engine, changes, "v"))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def secret(pair: Pair = PAIR, name: str = "cert") -> ir.Secret:
    return ir.Secret(name=name, certificate=pair.certificate, private_key=pair.key)


def https(name: str = "d/g/https", **http: object) -> ir.Listener:
    return ir.Listener(
        name=name,
        port=443,
        bind_port=10443,
        protocol="HTTPS",
        tls=ir.ListenerTls(certificates=("cert",)),
        http=msgspec.convert(http, ir.HttpSettings),
    )


def http(port: int = 80) -> ir.Listener:
    return ir.Listener(name=f"d/g/p{port}", port=port, bind_port=port, protocol="HTTP")


def test_secrets_stay_here_and_ports_are_told(bench: Bench) -> None:
    changes = [bench.put(secret()), bench.put(https()), bench.put(http())]
    assert bench.apply(*changes) == []
    assert bench.engine.taken == [("put", "listener", "d/g/https"), ("put", "listener", "d/g/p80")]
    assert {port: use.port for (port, _), use in bench.table.uses.items()} == {10443: 443, 80: 80}
    assert bench.table.uses[10443, ""].choose is not None
    assert bench.table.uses[80, ""].choose is None
    bench.apply(Change("del", "listener", "d/g/p80", 0, 0))
    assert list(bench.table.uses) == [(10443, "")]


def test_an_unusable_secret_is_refused_and_the_old_one_serves(bench: Bench) -> None:
    bench.apply(bench.put(secret()), bench.put(https()))
    choose = bench.table.uses[10443, ""].choose
    assert choose is not None
    context = choose("a.test")
    (refused,) = bench.apply(bench.put(secret(Pair(PAIR.certificate, CA.issue("b").key))))
    assert refused[:2] == ("secret", "cert")
    assert "does not belong" in refused[2]
    assert bench.table.uses[10443, ""].choose == choose
    assert choose("a.test") is context


def test_a_listener_that_the_engine_refuses_keeps_its_old_use(bench: Bench) -> None:
    bench.apply(bench.put(http()))
    bench.engine.refuse.add("d/g/p80")
    moved = msgspec.structs.replace(http(), port=8080)
    assert bench.apply(bench.put(moved)) == [("listener", "d/g/p80", "no")]
    assert bench.table.uses[80, ""].port == 80


def test_new_key_material_reaches_the_clusters_that_use_it(bench: Bench) -> None:
    ca = ir.Secret(name="ca", ca=CA.bundle)
    speaking = ir.Cluster(name="tls", tls=ir.UpstreamTls(sni="a.test", ca="ca"))
    bench.apply(bench.put(ca), bench.put(speaking), bench.put(ir.Cluster(name="plain")))
    before = bench.table.upstream_tls(ir.UpstreamTls(sni="a.test", ca="ca"))
    renewed = ir.Secret(name="ca", ca=Authority("new").bundle)
    assert bench.apply(bench.put(renewed)) == []
    assert bench.engine.taken == [("put", "cluster", "tls")]
    assert bench.table.upstream_tls(ir.UpstreamTls(sni="a.test", ca="ca")) is not before
    # Sent anyway: not sent twice. Refused when only sent again: not the ledger's business.
    bench.apply(bench.put(ca), bench.put(speaking))
    assert bench.engine.taken == [("put", "cluster", "tls")]
    bench.engine.refuse.add("tls")
    assert bench.apply(bench.put(renewed)) == []
    # Without TLS now: key material does not concern it any more.
    bench.engine.refuse.clear()
    bench.apply(bench.put(ir.Cluster(name="tls")))
    bench.apply(bench.put(ca))
    assert bench.engine.taken == []


def test_a_refused_cluster_is_not_taken_again_from_where_it_lay(bench: Bench) -> None:
    """Its place in the arena is another's by then; the version before it is what must be renewed."""
    ca = ir.Secret(name="ca", ca=CA.bundle)
    first = bench.put(ir.Cluster(name="tls", tls=ir.UpstreamTls(sni="a.test", ca="ca")))
    bench.apply(bench.put(ca), first)
    bench.engine.refuse.add("tls")
    assert bench.apply(bench.put(ir.Cluster(name="tls", tls=ir.UpstreamTls(sni="b", ca="ca")))) == [
        ("cluster", "tls", "no")
    ]
    bench.engine.refuse.clear()
    bench.apply(bench.put(ir.Secret(name="ca", ca=Authority("new").bundle)))
    assert bench.engine.places == [first.offset]


def test_certificates_are_loaded_one_by_one_and_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []  # at which turn of the loop
    turn = 0

    def count(secret: ir.Secret) -> TlsContext | None:
        loads.append(turn)
        return load_secret(secret)

    async def rest() -> None:
        nonlocal turn
        turn += 1
        await asyncio.sleep(0)

    monkeypatch.setattr(table, "load_secret", count)
    secrets = [bench.put(secret(name=f"c{number}")) for number in range(20)]
    listeners = [
        bench.put(
            msgspec.structs.replace(
                https(f"d/g/l{number}"),
                hostname=f"h{number}.test",
                tls=ir.ListenerTls(certificates=(f"c{number}",)),
            )
        )
        for number in range(20)
    ]
    changes = [*secrets, *listeners]
    assert asyncio.run(bench.table.apply(bench.engine, changes, "v", rest)) == []
    assert loads == list(range(20))
    # What they replace is freed in pieces, too, and all of it.
    context = bench.table._server_tls._ports[10443, ()]._listeners["h0.test"].context_for("h0.test")
    assert context is not None
    gone = weakref.ref(context)
    del context
    loads.clear()
    assert asyncio.run(bench.table.apply(bench.engine, secrets, "v", rest)) == []
    assert len(loads) == 20
    assert [gone()] == [None]


def test_a_shortage_is_told_apart_from_a_bad_secret(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.apply(bench.put(secret()), bench.put(https()))
    assert not bench.table.short
    renewed = bench.put(secret(CA.issue("a.test")))

    def fail(secret: ir.Secret) -> TlsContext | None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(table, "load_secret", fail)
        refused = bench.apply(renewed)
    assert refused == [("secret", "cert", "cannot be loaded now: out of memory")]
    assert bench.table.short
    assert bench.apply(renewed) == []
    assert not bench.table.short


def test_a_key_is_loaded_without_a_free_descriptor(bench: Bench) -> None:
    loop = asyncio.new_event_loop()
    try:
        with exhausted():
            changes = [bench.put(secret()), bench.put(https())]
            assert loop.run_until_complete(bench.table.apply(bench.engine, changes, "v")) == []
    finally:
        loop.close()
