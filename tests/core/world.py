"""One worker's world in a test: an Engine on a uvloop loop, its arena, its counters, clients and backends around it.

In: fleets, applied as the agent does: compiled, compared with the last one, only the difference is sent. Out: what the engine
refused. After every apply the bytes of what was replaced or removed are overwritten, because the agent may reuse them then.
`finish` checks that nothing is left behind: no connection, exchange, waiting request, task, error. Must never share anything
with another test.
"""

from __future__ import annotations

import asyncio
import json
import logging
import mmap
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, Protocol

import uvloop

from core.backend import Answer, Backend
from core.client import Client
from core.counters import Counters
from core.fleets import PORT, make_cluster, make_fleet
from core.tls_client import TlsClient
from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.core import Engine, TlsContext
from edgefast.core.policy.login_services import LoginServices
from edgefast.table import Resource, Shards, compile_fleet, diff

Change = tuple[str, str, str, int, int]  # op, type, name, offset, length
Refused = list[tuple[str, str, str]]  # type, name, error

ARENA = 4 << 20
FREED = b"\xff"


def refuse_tls(tls: ir.UpstreamTls) -> TlsContext:
    """The engine's `upstream_tls` where a test has no TLS."""
    raise ValueError(f"no TLS for {tls.sni} here")


def make_limits() -> tuple[memoryview, int]:
    """The least memory for counters of rate limits, and how many fit."""
    size = int(lib.ef_store_size(1, 1))
    segment = mmap.mmap(-1, size)
    assert lib.ef_store_init(ffi.from_buffer(segment), size, 1, 1, os.urandom(16), 0) == 0
    return memoryview(segment), 60


class Faults(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


class Closes(Protocol):
    """What is closed at the end."""

    def close(self) -> None: ...


class World:
    """One worker's Engine with its loop, arena, counters, clients and backends.

    Coroutines run on `loop`.
    """

    def __init__(
        self,
        *,
        rows: int = 64,
        upstream_tls: Callable[[ir.UpstreamTls], TlsContext] = refuse_tls,
        access_log: Callable[[bytes], None] | None = None,
        health: memoryview | None = None,
        limits: memoryview | None = None,
        worker: int = 0,
        loop: asyncio.AbstractEventLoop | None = None,
        login_services: LoginServices | None = None,
    ) -> None:
        """`health` and `limits`: segments that other worlds may share, each as another worker; on the loop of one of them."""
        self.loop = loop or uvloop.new_event_loop()
        self._owns_loop = loop is None
        self.arena = mmap.mmap(-1, ARENA)
        self.counters = Counters(rows)
        self.limits, self.limit_room = make_limits()
        self.limits = self.limits if limits is None else limits
        self.batches: list[bytes] = []  # of the access log
        self.spans: list[bytes] = []
        self.asked: list[str] = []  # clusters whose connections other workers are to lend
        self.lender: Any = None  # the engine that is told so
        self.takes_spans = True
        self.engine: Any = Engine(
            self.loop,
            memoryview(self.arena).toreadonly(),
            self.counters.memory,
            worker=worker,
            upstream_tls=upstream_tls,
            access_log=access_log or self.batches.append,
            limits=self.limits,
            health=health,
            ask_others=self._on_asked,
            spans=self._on_spans,
            login_services=login_services,
        )
        self.places: dict[tuple[str, str], tuple[int, int]] = {}
        self.errors: list[str] = []  # tests that expect some clear it
        self._faults = Faults()
        logging.getLogger("edgefast.engine").addHandler(self._faults)
        self.loop.set_exception_handler(self._on_exception)
        self._free = 64
        self._shards: Shards | None = None
        self._clients: list[Closes] = []
        self._backends: list[Closes] = []
        self._accepting: list[Any] = []
        self._holds: list[socket.socket] = []

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _on_asked(self, cluster: str) -> None:
        self.asked.append(cluster)
        if self.lender is not None:
            self.loop.call_soon(self.lender.release_connections, cluster, self.engine.worker)

    def _on_spans(self, batch: bytes) -> bool:
        if self.takes_spans:
            self.spans.append(batch)
        return self.takes_spans

    # --- tables -----------------------------------------------------------------------------------

    def place(self, data: bytes) -> tuple[int, int]:
        """Put bytes into the arena; (offset, length)."""
        offset = self._free
        self._free = (offset + len(data) + 63) & ~63
        assert self._free <= ARENA
        self.arena[offset : offset + len(data)] = data
        return offset, len(data)

    def send(self, puts: list[Resource], removes: list[tuple[str, str]], version: str) -> Refused:
        """apply() these changes, then overwrite what they replaced."""
        changes: list[Change] = []
        new: dict[tuple[str, str], tuple[int, int]] = {}
        for one in puts:
            if one.type != "secret":
                new[one.type, one.name] = self.place(one.data)
                changes.append(("put", one.type, one.name, *new[one.type, one.name]))
        changes += [("del", type_, name, 0, 0) for type_, name in removes]
        refused: Refused = self.engine.apply(changes, version)
        held = {(type_, name) for type_, name, _ in refused}
        for key, place in new.items():
            if key not in held:
                self.overwrite(self.places.get(key))
                self.places[key] = place
        for key in removes:
            if key not in held:
                self.overwrite(self.places.pop(key, None))
        return refused

    def overwrite(self, place: tuple[int, int] | None) -> None:
        """What the agent does with space that nobody reads any more."""
        if place is not None:
            offset, length = place
            self.arena[offset : offset + length] = FREED * length

    def compile(self, fleet: ir.Fleet) -> Shards:
        """The fleet's resources, made from those of the last one."""
        shards = compile_fleet(fleet, self._shards)
        assert not shards.problems, shards.problems
        return shards

    def try_apply(self, fleet: ir.Fleet) -> Refused:
        """Apply what differs from the fleet before; returns what was refused."""
        shards = self.compile(fleet)
        delta = diff(self._shards, shards)
        self._shards = shards
        return self.send(list(delta.put), list(delta.remove), shards.version)

    def apply(self, fleet: ir.Fleet) -> None:
        """Apply a fleet that nothing is wrong with."""
        assert self.try_apply(fleet) == []

    # --- who is there -----------------------------------------------------------------------------

    async def listen(
        self,
        port: int = PORT,
        choose: Callable[[str], TlsContext | None] | None = None,
        sock: socket.socket | None = None,
        addresses: tuple[str, ...] = (),
    ) -> int:
        """Accept connections of a listener's port on a free one, which is returned."""
        sock = sock or socket.create_server(("127.0.0.1", 0), backlog=4096)
        sock.setblocking(False)
        self._holds.append(sock)
        self._accepting.append(self.engine.listen(sock.fileno(), port, choose, addresses))
        return int(sock.getsockname()[1])

    async def listen_stream(self, port: int = PORT) -> int:
        """Pass connections of a TCP listener's port on, from a free one, which is returned."""
        sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
        sock.setblocking(False)
        self._holds.append(sock)
        self._accepting.append(self.engine.listen_stream(sock.fileno(), port))
        return int(sock.getsockname()[1])

    async def listen_datagrams(self, port: int = PORT, host: str = "127.0.0.1") -> int:
        """Pass datagrams of a UDP listener's port on, from a free one, which is returned. host "::": of both families."""
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        if host == "::":
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, 0))
        sock.setblocking(False)
        self._holds.append(sock)
        self._accepting.append(self.engine.listen_datagrams(sock.fileno(), port))
        return int(sock.getsockname()[1])

    async def serve(self, fleet: ir.Fleet) -> int:
        """apply() and listen()."""
        self.apply(fleet)
        return await self.listen()

    async def backend(
        self, answer: Answer | None = None, context: ssl.SSLContext | None = None
    ) -> Backend:
        """Start a backend."""
        backend = await Backend(answer).start(context)
        self.keep(backend)
        return backend

    def keep(self, backend: Closes) -> None:
        """Close a backend at the end."""
        self._backends.append(backend)

    def hold(self, sock: socket.socket) -> None:
        """Close a socket at the end."""
        self._holds.append(sock)

    def refusing_port(self) -> int:
        """A port that nobody listens on, and nobody else can take."""
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self._holds.append(sock)
        return int(sock.getsockname()[1])

    async def silent_port(self) -> int:
        """A port where connecting never ends: its queue is full."""
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        self._holds.append(sock)
        port = int(sock.getsockname()[1])
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            self._holds.append(filler)
            filler.connect_ex(("127.0.0.1", port))
        return port

    async def client(self, port: int, **settings: Any) -> Client:
        """Connect a client."""
        client = await Client.connect(port, **settings)
        self._clients.append(client)
        return client

    async def client_of(self, fleet: ir.Fleet, **settings: Any) -> Client:
        """serve() a fleet, then connect a client."""
        return await self.client(await self.serve(fleet), **settings)

    async def pair(
        self, answer: Answer | None = None, *parts: ir.Listener | ir.VirtualHost | ir.Rule
    ) -> tuple[Backend, Client]:
        """One backend behind everything, and a client; `parts` as those of make_fleet()."""
        backend = await self.backend(answer)
        return backend, await self.client_of(make_fleet(*parts, make_cluster(backend.port)))

    def attend(self, client: Closes) -> None:
        """Close a client before it is checked what is left."""
        self._clients.append(client)

    async def tls_client(
        self, port: int, context: ssl.SSLContext, name: str | None = None, **settings: str
    ) -> TlsClient:
        """Connect a client that speaks TLS."""
        client = await TlsClient.open(port, context, name, **settings)
        self._clients.append(client)
        return client

    # --- what can be seen -------------------------------------------------------------------------

    def cluster(self, name: str) -> dict[str, Any]:
        """A cluster of the dump."""
        (found,) = [one for one in self.engine.dump()["clusters"] if one["name"] == name]
        assert isinstance(found, dict)
        return found

    def texts(self) -> list[str]:
        """The lines of the access log so far."""
        self.engine.log_flush()
        return b"".join(self.batches).decode().splitlines()

    def lines(self) -> list[dict[str, Any]]:
        """The same, where each is a JSON object."""
        return [json.loads(line) for line in self.texts()]

    async def until(
        self, holds: Callable[[], object], what: str = "", *, seconds: float = 20.0
    ) -> None:
        """Poll until something holds."""
        end = self.loop.time() + seconds
        while not holds():
            assert self.loop.time() < end, f"never came true: {what or holds}"
            await asyncio.sleep(0.002)

    async def turns(self, count: int = 20) -> None:
        """Let the loop go round, with a look at every socket and timer each time."""
        for _ in range(count):
            await asyncio.sleep(0)

    def take_faults(self) -> list[str]:
        """What was logged as a fault so far, by a test that has made it."""
        found, self._faults.found = self._faults.found, []
        return found

    # --- the end ----------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until no request is in flight and every backend connection is idle."""
        await self.until(lambda: self.engine.active == 0, "no request is active")
        await self.until(self._is_quiet, f"no cluster is busy: {self.engine.dump()['clusters']}")

    def _is_quiet(self) -> bool:
        return all(
            cluster["pending"] == cluster["requests"] == cluster["repeats"] == 0
            and cluster["connections"] == sum(one["idle"] for one in cluster["endpoints"])
            and not any(one["active"] for one in cluster["endpoints"])
            for cluster in self.engine.dump()["clusters"]
        )

    async def finish(self) -> None:
        """Close everything; check that nothing is left behind."""
        for accepting in self._accepting:
            accepting.stop()
        for client in self._clients:
            client.close()
        for sock in self._holds:
            sock.close()
        await self.until(lambda: self.engine.open_connections == 0, "clients are gone")
        await self.settle()
        self.engine.close(0)
        await self.until(
            lambda: self.counters["upstream_connections_active"] == 0, "backend connections closed"
        )
        clusters = self.engine.dump()["clusters"]
        endpoints = [one for cluster in clusters for one in cluster["endpoints"]]
        assert [one for one in (*clusters, *endpoints) if one["connections"]] == []
        for backend in self._backends:
            backend.close()
        this = asyncio.current_task()
        await self.until(lambda: asyncio.all_tasks() <= {this}, "no task is left")
        self.counters.check()
        assert self.counters["access_log_lines"] == len(self.texts())
        left = self._faults.found + self.errors
        assert left == [], left

    def close(self) -> None:
        """Let go of sockets and loop, whatever happened."""
        logging.getLogger("edgefast.engine").removeHandler(self._faults)
        for accepting in self._accepting:
            accepting.stop()
        for client in self._clients:
            client.close()
        for backend in self._backends:
            backend.close()
        self.engine.close(0)
        for sock in self._holds:
            sock.close()
        if not self._owns_loop:
            return
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(self.turns())
        self.loop.close()
