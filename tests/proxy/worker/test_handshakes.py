"""TLS connections before the engine sees them: counted, bounded, never in the way of a closing port."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import pytest
import uvloop

from edgefast import ir
from edgefast.proxy.process.reserve import RESERVE
from edgefast.proxy.sockets.listeners import Seat
from edgefast.proxy.tls.server import load_secret
from edgefast.proxy.worker import handshakes
from edgefast.proxy.worker.acceptors import Acceptors
from edgefast.proxy.worker.handshakes import Handshakes, PortUse
from proxy.full import exhausted
from proxy.living import until
from proxy.pki import Authority
from proxy.worker.test_acceptors import Greeter, Hello

CA = Authority()
PAIR = CA.issue("a.test")


class Bench:
    """One HTTPS port."""

    def __init__(self, limit: int, patience: float) -> None:
        self.made: list[int] = []
        self.open = 0
        self.counts: Counter[str] = Counter()
        self.context = load_secret(
            ir.Secret(name="a", certificate=PAIR.certificate, private_key=PAIR.key)
        )
        self.handshakes = Handshakes(self._factory, lambda: self.open, self._count)
        self.acceptors = Acceptors(lambda fd, port: Greeter(fd, port, self.made), self.handshakes)
        sock = socket.create_server(("127.0.0.1", 0), reuse_port=True, backlog=200)
        self.place: Seat = (*sock.getsockname(), 0)
        self.acceptors.add(self.place, sock.detach())
        self.use = PortUse(443, self.context, limit, patience)

    def _factory(self, port: int, tls: bool) -> Callable[[], Hello]:
        assert tls
        return lambda: Hello(port, self.made)

    def _count(self, name: str, count: int) -> None:
        self.counts[name] += count

    async def serve(self, use: PortUse | None = None) -> None:
        await self.acceptors.reconcile({self.place[1]: use or self.use})

    def silent(self, stack: ExitStack) -> socket.socket:
        """A client that says nothing."""
        return stack.enter_context(socket.create_connection(self.place[:2]))

    async def hear(self, sock: socket.socket | None = None) -> bytes:
        """What a client hears that does speak TLS."""
        trusting = ssl.create_default_context(cadata=CA.bundle.decode())
        where = {"sock": sock} if sock else {"host": self.place[0], "port": self.place[1]}
        reader, writer = await asyncio.open_connection(
            **where, ssl=trusting, server_hostname="a.test"
        )
        try:
            return await asyncio.wait_for(reader.read(), 20)
        finally:
            writer.close()


Talk = Callable[[Bench, ExitStack], Awaitable[None]]


def serving(talk: Talk, limit: int = 100, patience: float = 10.0) -> None:
    async def main() -> None:
        bench = Bench(limit, patience)
        with ExitStack() as stack:
            try:
                await bench.serve()
                await asyncio.wait_for(talk(bench, stack), 90)
            finally:
                await bench.acceptors.close_all()
        await until(lambda: bench.handshakes.active == 0, "end of all handshakes")
        assert bench.counts["handshakes_active"] == 0

    uvloop.run(main())


def test_a_handshake_ends_in_the_engine() -> None:
    async def talk(bench: Bench, _: ExitStack) -> None:
        assert await bench.hear() == b"443"
        assert bench.made == [443]
        assert bench.counts["handshakes_failed"] == 0

    serving(talk)


def test_silent_connections_are_within_the_cap() -> None:
    async def talk(bench: Bench, stack: ExitStack) -> None:
        bench.open = 2
        clients = [bench.silent(stack) for _ in range(50)]
        await until(lambda: bench.counts["connections_refused"] == 47, "refusals")
        assert bench.handshakes.active == bench.counts["handshakes_active"] == 3
        assert bench.counts["connections_total"] == 47  # the others count when the engine has them
        for client in clients:
            client.close()
        await until(lambda: bench.handshakes.active == 0, "room")
        assert await bench.hear() == b"443"

    serving(talk, limit=5)


def test_a_handshake_has_as_long_as_a_request_head() -> None:
    async def talk(bench: Bench, stack: ExitStack) -> None:
        client = bench.silent(stack)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        assert await asyncio.wait_for(loop.sock_recv(client, 1), 20) == b""
        await until(lambda: bench.counts["handshakes_failed"] == 1, "count")

    serving(talk, patience=0.05)


def test_other_rules_need_no_new_server() -> None:
    async def talk(bench: Bench, stack: ExitStack) -> None:
        waiting = bench.silent(stack)
        waiting.setblocking(False)
        await until(lambda: bench.handshakes.active == 1, "handshake")
        with exhausted():
            await bench.serve(bench.use._replace(port=8443))
        assert await bench.hear() == b"8443"
        assert await bench.hear(waiting) == b"443"  # began before

    serving(talk)


def test_a_port_turns_from_https_to_http_and_back() -> None:
    async def talk(bench: Bench, stack: ExitStack) -> None:
        await bench.serve(PortUse(80, None))
        reader, writer = await asyncio.open_connection(*bench.place[:2])
        assert await asyncio.wait_for(reader.read(), 20) == b"80"
        writer.close()
        await bench.serve()
        assert await bench.hear() == b"443"

    serving(talk)


def test_a_closing_port_lets_a_handshake_end() -> None:
    async def talk(bench: Bench, stack: ExitStack) -> None:
        clients = [bench.silent(stack) for _ in range(3)]
        for client in clients:
            client.setblocking(False)
        await bench.acceptors.close_all()
        assert bench.handshakes.active == 3
        for client in clients:
            assert await bench.hear(client) == b"443"

    serving(talk)


def test_a_full_process_turns_away_those_who_wait() -> None:
    async def talk(bench: Bench, stack: ExitStack) -> None:
        clients = [bench.silent(stack) for _ in range(4)]
        with exhausted():
            await until(lambda: bench.counts["connections_refused"] == 4, "refusals")
        for client in clients:
            client.close()
        assert await bench.hear() == b"443"

    RESERVE.hold(4)
    try:
        serving(talk)
    finally:
        RESERVE.hold(0)


def test_without_any_descriptor_it_waits_and_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    accept = Handshakes._accept

    def count(handshakes: Handshakes, sock: socket.socket) -> None:
        tries.append(1)
        accept(handshakes, sock)

    monkeypatch.setattr(Handshakes, "_accept", count)
    monkeypatch.setattr(handshakes, "_PAUSE", 0.5)

    async def talk(bench: Bench, stack: ExitStack) -> None:
        client = bench.silent(stack)
        client.setblocking(False)
        with exhausted():
            await until(lambda: tries, "try")
            for _ in range(1000):  # turns of the loop, not time
                await asyncio.sleep(0)
            assert len(tries) <= 2
        assert await bench.hear(client) == b"443"

    serving(talk)
