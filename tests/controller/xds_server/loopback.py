"""A push server on loopback with real keys, and proxies that speak with it, a message at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from controller.certs.authority_set import AuthoritySet, make_authority_set
from controller.certs.issue import issue_client, issue_server
from controller.certs.pair import Pair
from controller.certs.policy import CertificatePolicy
from controller.xds_server.fleets import Fleets
from controller.xds_server.server import PushServer
from controller.xds_server.stream import Deadlines
from controller.xds_server.tokens import Review
from edgefast.api.config.edgegateway import FleetCertificates
from edgefast.httpd.address import Address
from edgefast.table.format import table_format
from edgefast.table.shards import Key, Resource, Shards, digest_resource, make_resource
from edgefast.xds.messages import (
    COMMIT,
    METHOD,
    Node,
    Request,
    Response,
    decode_response,
    encode_opening,
    encode_request,
)

SYSTEM = "edge-gateway-system"
FLEET = f"{SYSTEM}/edge-default-eg-e41e7b31"
POD = "edge-default-eg-e41e7b31-5d9c7-abcde"
ANYWHERE = Address("127.0.0.1", 0)


def shards_of(names: Mapping[str, str], type_: str = "virtual_host") -> Shards:
    """Return a table with one resource for each name, whose data is the value."""
    return shards(make_resource(type_, name, data.encode()) for name, data in names.items())


def shards(resources: Iterable[Resource]) -> Shards:
    """Return a table of these resources."""
    by_key: dict[Key, Resource] = {(one.type, one.name): one for one in resources}
    digest = sum(map(digest_resource, by_key.values())) % 2**128
    return Shards(by_key, f"{digest:032x}")


#: Two tables: what differs is "a".
ONE = shards_of({"a": "1", "b": "1"})
TWO = shards_of({"a": "2", "b": "1"})


def write_keys(folder: Path, ring: AuthoritySet, pair: Pair | None = None) -> None:
    """Write the controller's keys as a mounted Secret has them."""
    folder.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    pair = pair or issue_server(
        ring.current, namespace=SYSTEM, name="edge-gateway", domain="cluster.local", now=now
    )
    for name, text in (
        ("tls.crt", pair.certificate_pem),
        ("tls.key", pair.key_pem),
        ("ca.crt", ring.bundle),
    ):
        fresh = folder / f".{name}"
        fresh.write_text(text)
        fresh.rename(folder / name)


def client_pair(
    ring: AuthoritySet,
    fleet: str = FLEET,
    *,
    life: timedelta = timedelta(hours=1),
    namespace: str = SYSTEM,
    now: datetime | None = None,
) -> Pair:
    """Issue a fleet's certificate."""
    place, name = fleet.split("/")
    return issue_client(
        ring.current,
        controller_namespace=namespace,
        namespace=place,
        name=name,
        now=now or datetime.now(UTC),
        life=life,
    )


def pod(number: int) -> str:
    """Return the name of one of FLEET's pods."""
    return f"{POD[:-5]}{number:05}"


class Loopback:
    """A push server with all three ports."""

    def __init__(
        self,
        folder: Path,
        review: Callable[[str, Sequence[str]], Awaitable[Review]] | None = None,
        *,
        ring: AuthoritySet | None = None,
        deadlines: Deadlines | None = None,
        identity: str = "controller-0_127.0.0.1",
        log_entries: int = 200_000,
    ) -> None:
        self.ring = ring or make_authority_set("edge-gateway", datetime.now(UTC))
        self.folder = folder
        write_keys(folder, self.ring)
        self.fleets = Fleets(identity, log_entries=log_entries)
        self.settings = FleetCertificates()
        self.server = PushServer(
            self.fleets,
            folder,
            namespace=SYSTEM,
            review=review or _unasked,
            policy=CertificatePolicy(lambda: self.settings, SYSTEM),
            deadlines=deadlines,
        )
        self.certificates = self.tokens = self.replicas = ANYWHERE

    async def __aenter__(self) -> Loopback:
        self.certificates = await self.server.serve_certificates(ANYWHERE)
        self.tokens = await self.server.serve_tokens(ANYWHERE)
        self.replicas = await self.server.serve_replicas(ANYWHERE)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop(0)

    def channel(
        self,
        pair: Pair | None = None,
        address: Address | None = None,
        options: Sequence[tuple[str, object]] = (),
    ) -> Any:
        """Return a channel to the port for certificates (or another one)."""
        return open_channel(address or self.certificates, self.ring.bundle, pair, options)

    @contextlib.asynccontextmanager
    async def proxy(
        self,
        pair: Pair | None = None,
        *,
        node: str = POD,
        token: str = "",
        options: Sequence[tuple[str, object]] = (),
        **more: Any,
    ) -> AsyncIterator[Proxy]:
        """Open a stream as a proxy of FLEET does; with `token` at the port for tokens."""
        if token:
            channel = self.channel(None, self.tokens, options)
        else:
            channel = self.channel(pair or client_pair(self.ring), options=options)
        async with channel:
            metadata = (("authorization", f"Bearer {token}"),) if token else ()
            proxy = Proxy(channel.stream_stream(METHOD)(metadata=metadata), node)
            await proxy.open(**more)
            yield proxy
            proxy.call.cancel()


def open_channel(
    address: Address, bundle: str, pair: Pair | None, more: Sequence[tuple[str, object]] = ()
) -> Any:
    """Return a channel that believes `bundle` and shows `pair`."""
    shown = (pair.key_pem.encode(), pair.certificate_pem.encode()) if pair else (None, None)
    return grpc.aio.secure_channel(
        str(address),
        grpc.ssl_channel_credentials(bundle.encode(), *shown),
        options=[
            ("grpc.ssl_target_name_override", "edge-gateway"),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
            *more,
        ],
    )


class Proxy:
    """The proxy's side of one stream, a message at a time."""

    def __init__(self, call: Any, node: str) -> None:
        self.call = call
        self.node = Node(id=node, formats=(table_format(),))
        self.held: dict[Key, Resource] = {}
        self.version = ""
        self.received = 0  # bytes

    async def open(
        self, held: Mapping[Key, str] | None = None, version: str = "", **_: object
    ) -> None:
        """Say what is held."""
        for data in encode_opening(self.node, held or {}, version):
            await self.call.write(data)

    async def next(self) -> Response:
        """Return the next message."""
        try:
            async with asyncio.timeout(30):
                data = await self.call.read()
        except grpc.aio.AioRpcError as error:
            raise Ended(error.code(), error.details() or "") from None
        if data is grpc.aio.EOF:
            raise Ended(await self.call.code(), await self.call.details())
        self.received += len(data)
        return decode_response(data)

    async def batch(self) -> list[Response]:
        """Take in messages up to a commit; answers nothing."""
        found = []
        while True:
            found.append(one := await self.next())
            for put in one.puts if one.type != COMMIT else ():
                self.held[put.type, put.name] = put
            for name in one.removed:
                del self.held[one.type, name]
            if one.commits:
                self.version = one.version
                return found

    async def answer(self, batch: Sequence[Response], refused: Sequence[Any] = ()) -> None:
        """Answer a batch; the refused ones are told with the commit and with their messages."""
        for one in batch:
            type_ = COMMIT if one.commits else one.type
            bad = tuple(r for r in refused if type_ in (COMMIT, r.type))
            request = Request(type=type_, nonce=one.nonce, refused=bad)
            await self.call.write(encode_request(request))

    async def take(self) -> list[Response]:
        """Take in a batch and accept it."""
        batch = await self.batch()
        await self.answer(batch)
        return batch

    async def end(self) -> Ended:
        """Return how the stream ended, reading what comes before."""
        try:
            while True:
                await self.next()
        except Ended as ended:
            return ended


class Ended(Exception):
    """The server has ended the stream."""

    def __init__(self, code: Any, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code.name
        self.details = details


async def ended(call: Any, *messages: bytes) -> Ended:
    """Return how a call ends that should get no answer."""
    try:
        for one in messages:
            await call.write(one)
        async with asyncio.timeout(30):
            assert await call.read() is grpc.aio.EOF, "a message came"
            return Ended(await call.code(), await call.details())
    except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
        return Ended(await call.code(), await call.details())


async def _unasked(token: str, audiences: Sequence[str]) -> Review:
    raise AssertionError("nobody should be asked")
