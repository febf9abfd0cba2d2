"""A plain server of the config stream: one table for everybody, no fleets, no caching, all that it hears kept for the test.

In: shards to publish. Out: a real gRPC server with TLS on loopback that speaks the protocol of xds/messages.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio

from edgefast.table import Shards
from edgefast.table.shards import TYPES
from edgefast.xds.limits import KEEPALIVE_MINIMUM, MESSAGE_LIMIT
from edgefast.xds.messages import (
    COMMIT,
    METHOD,
    WELCOME,
    Request,
    cut_items,
    cut_names,
    decode_request,
    encode_commit,
    encode_item,
    encode_response,
)
from proxy.living import until
from proxy.pki import Authority, Pair
from wire.harness.ports import free_port


class Stream:
    """What one stream has said."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.metadata = dict(context.invocation_metadata())
        self.peer = context.auth_context()
        self.opening: list[Request] = []
        self.answers: list[Request] = []
        self.sent: list[tuple[str, bytes]] = []  # type, message
        self.nonces: dict[str, str] = {}  # nonce: type
        self.versions: dict[str, str] = {}  # nonce of a commit: version
        self.ended = False
        self.leave = asyncio.Event()  # set it to end the stream

    @property
    def held(self) -> Mapping[tuple[str, str], str]:
        return {
            (one.type, name): version for one in self.opening for name, version in one.held.items()
        }

    @property
    def answered(self) -> Mapping[str, Request]:
        """The newest answer to the commit of each version."""
        return {self.versions[one.nonce]: one for one in self.commits}

    @property
    def commits(self) -> list[Request]:
        return [one for one in self.answers if one.type == COMMIT]


class PlainServer:
    """`async with PlainServer(authority) as server: server.publish(shards)`."""

    def __init__(
        self,
        authority: Authority,
        *,
        mutual: bool = False,
        port: int = 0,
        name: str = "localhost",
        clients: Authority | None = None,
    ) -> None:
        self.port = port or free_port()  # a test that starts it again finds it free
        self.streams: list[Stream] = []
        self.shards: Shards | None = None
        self.refuse: tuple[grpc.StatusCode, str] | None = None
        self.spoil: Callable[[str, bytes], bytes] = lambda _, data: data
        self.lies: list[str] = []  # versions to say in place of the true ones
        self.joined = False  # the last response of a batch commits, as a controller's does
        self.silent = False  # responses do not name the table's version before the commit does
        self.commits = asyncio.Event()  # while it is clear no commit is sent
        self.commits.set()
        self._changed: dict[Stream, asyncio.Event] = {}
        self._numbers = 0
        self._authority = authority
        self._clients = clients or authority
        self._pair = authority.issue(name, "127.0.0.1")
        self._mutual = mutual

    @property
    def target(self) -> str:
        return f"ipv4:127.0.0.1:{self.port}"

    async def __aenter__(self) -> PlainServer:
        options = [
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_MINIMUM * 1000),
            ("grpc.so_reuseport", 0),
        ]
        self._server = grpc.aio.server(options=options)
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        service, _, method = METHOD[1:].partition("/")
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: handler}),)
        )
        credentials = grpc.ssl_server_credentials(
            [(self._pair.key, self._pair.certificate)],
            root_certificates=self._clients.bundle if self._mutual else None,
            require_client_auth=self._mutual,
        )
        self.port = self._server.add_secure_port(f"127.0.0.1:{self.port}", credentials)
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        await self._server.stop(None)

    def publish(self, shards: Shards) -> None:
        self.shards = shards
        for event in self._changed.values():
            event.set()

    async def answered(self, version: str) -> Request:
        """Wait for the answer to the commit of this version on the last stream."""
        await until(lambda: self.streams and version in self.last.answered, "an answer")
        return self.last.answered[version]

    @property
    def last(self) -> Stream:
        return self.streams[-1]

    # --- a stream -------------------------------------------------------------------------------

    async def _serve(self, _: object, context: Any) -> None:
        stream = Stream(context)
        self.streams.append(stream)
        changed = self._changed[stream] = asyncio.Event()
        try:
            if self.refuse is not None:
                await context.abort(*self.refuse)
            await context.send_initial_metadata((WELCOME,))
            held = await self._read_opening(stream)
            changed.set()
            async with asyncio.TaskGroup() as tasks:
                answered = asyncio.Event()
                reader = tasks.create_task(self._hear(stream, answered))
                writer = tasks.create_task(self._notify(stream, held, changed, answered))
                leaver = tasks.create_task(stream.leave.wait())
                await asyncio.wait((reader, leaver), return_when=asyncio.FIRST_COMPLETED)
                for task in (reader, writer, leaver):
                    task.cancel()
        finally:
            stream.ended = True
            del self._changed[stream]

    async def _read_opening(self, stream: Stream) -> dict[tuple[str, str], str]:
        while not stream.opening or stream.opening[-1].type != COMMIT:
            data = await stream.context.read()
            if data is grpc.aio.EOF:
                break
            stream.opening.append(decode_request(data))
        return {key: one for key, one in stream.held.items() if key[0] != COMMIT}

    async def _hear(self, stream: Stream, answered: asyncio.Event) -> None:
        while (data := await stream.context.read()) is not grpc.aio.EOF:
            answer = decode_request(data)
            assert stream.nonces[answer.nonce] == answer.type
            stream.answers.append(answer)
            if answer.type == COMMIT:
                answered.set()

    async def _notify(
        self,
        stream: Stream,
        held: dict[tuple[str, str], str],
        changed: asyncio.Event,
        answered: asyncio.Event,
    ) -> None:
        while True:
            await changed.wait()
            changed.clear()
            shards = self.shards
            if shards is None:
                continue
            answered.clear()
            now = {key: one.version for key, one in shards.resources.items()}
            parts: list[tuple[str, Any, Any]] = []
            for type_ in TYPES:
                items = [
                    encode_item(one)
                    for key, one in sorted(shards.resources.items())
                    if key[0] == type_ and held.get(key) != one.version
                ]
                parts += ((type_, part, ()) for part in cut_items(items))
            for type_ in reversed(TYPES):
                names = sorted(key[1] for key in held if key[0] == type_ and key not in now)
                parts += ((type_, (), gone) for gone in cut_names(names))
            last = parts.pop() if self.joined and parts else None
            for part in parts:
                await self._send(stream, *part)
            await self.commits.wait()
            version = self.lies.pop() if self.lies else shards.version
            if last is not None:
                nonce = self._nonce(stream, COMMIT)
                stream.versions[nonce] = version
                data = encode_response(*last, nonce, version, commits=True)
                await self._write(stream, last[0], data)
            else:
                await self._commit(stream, version)
            held = now
            await answered.wait()

    async def _send(self, stream: Stream, type_: str, items: Any, removed: Any) -> None:
        nonce = self._nonce(stream, type_)
        version = "" if self.silent or self.shards is None else self.shards.version
        await self._write(stream, type_, encode_response(type_, items, removed, nonce, version))

    async def _commit(self, stream: Stream, version: str) -> None:
        nonce = self._nonce(stream, COMMIT)
        stream.versions[nonce] = version
        await self._write(stream, COMMIT, encode_commit(version, nonce))

    async def _write(self, stream: Stream, type_: str, data: bytes) -> None:
        data = self.spoil(type_, data)
        stream.sent.append((type_, data))
        await stream.context.write(data)

    def _nonce(self, stream: Stream, type_: str) -> str:
        self._numbers += 1
        stream.nonces[str(self._numbers)] = type_
        return str(self._numbers)


def client_pair(authority: Authority, fleet: str = "edge") -> Pair:
    """A client certificate as a fleet has one."""
    return authority.issue(uris=(f"edge://edge-gateway-system/fleet/default/{fleet}",))
