"""Transport: the controller's only module with gRPC: the listening ports, and the call between replicas.

In: an address, keys, an authentication, and the handler of the port's only method.
Out: calls as `Call`s. Every call of any method is authenticated first; only then is its method
read. Only that one handler is registered. Messages are bytes.
Must never: answer an unauthenticated call with anything but a status.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import grpc
import grpc.aio
import msgspec

from controller.xds_server.auth_interface import Admission, Connection, StreamAuth
from controller.xds_server.credentials import ServerKeys
from controller.xds_server.limits import (
    ADMIT_DEADLINE,
    AGE_GRACE,
    AGE_HOURS,
    CALLS,
    CALLS_PER_CONNECTION,
    METADATA_LIMIT,
)
from controller.xds_server.refusal import Refusals, Refused
from edgefast.httpd.address import Address
from edgefast.xds.limits import (
    KEEPALIVE_MINIMUM,
    KEEPALIVE_TIME,
    KEEPALIVE_TIMEOUT,
    MESSAGE_LIMIT,
    SERVER_KEEPALIVE_TIME,
    SERVER_KEEPALIVE_TIMEOUT,
)
from edgefast.xds.messages import WELCOME

__all__ = [
    "Call",
    "CallEnded",
    "Listening",
    "ReportEnded",
    "Serve",
    "Talk",
    "call_report",
    "listen",
]

log = logging.getLogger("edgefast.controller.push")

_Context = grpc.aio.ServicerContext[bytes, bytes]
_Outgoing = grpc.aio.StreamStreamCall[bytes, bytes]

#: Seconds for the final status of a call to a peer that does not read.
_ABORT_DEADLINE = 5.0
_CONNECT_DEADLINE = 5.0


class Call(Protocol):
    """A call that was admitted, both ways."""

    async def read(self) -> bytes | None:
        """Return the next message, None when the peer has said its last."""

    async def write(self, data: bytes) -> None:
        """Send a message; returns when there is room for it, for a slow peer not before it has read others."""


Serve = Callable[[Call, Admission], Awaitable[None]]


#: Says what there is to say, with the function that writes a message.
Talk = Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]


class CallEnded(Exception):
    """The peer is no longer there."""


class Listening(msgspec.Struct):
    """A port that is served."""

    address: Address
    _server: grpc.aio.Server

    async def stop(self, grace: float) -> None:
        """Take no new calls; end those that are open after `grace` seconds."""
        await self._server.stop(grace)


async def listen(
    address: Address,
    keys: ServerKeys,
    *,
    mutual: bool,
    gate: StreamAuth,
    method: str,
    serve: Serve,
    refusals: Refusals,
) -> Listening:
    """Serve `method` on an address; `mutual`: a client certificate is needed. Raises OSError when it is taken."""

    def configure() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(keys.key, keys.certificate)], keys.authorities_pem if mutual else None
        )

    served = keys.number

    def refresh() -> Any:  # the stubs know nothing of None, which says that nothing is new
        nonlocal served
        # In a thread of gRPC, before each handshake.
        keys.refresh()
        if keys.number == served:
            return None
        served = keys.number
        return configure()

    server = grpc.aio.server(options=_server_options(), maximum_concurrent_rpcs=CALLS)
    server.add_generic_rpc_handlers((_OneHandler(gate, method, serve, refusals),))
    credentials = grpc.dynamic_ssl_server_credentials(configure(), refresh, mutual)
    try:
        port = server.add_secure_port(str(address), credentials)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}: {error}") from None
    await server.start()
    return Listening(Address(address.host, port), server)


def _server_options() -> list[tuple[str, Any]]:
    low, high = AGE_HOURS
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", MESSAGE_LIMIT),
        ("grpc.max_send_message_length", MESSAGE_LIMIT),
        ("grpc.max_concurrent_streams", CALLS_PER_CONNECTION),
        ("grpc.max_metadata_size", METADATA_LIMIT),
        ("grpc.absolute_max_metadata_size", METADATA_LIMIT),
        ("grpc.max_connection_age_ms", int(random.uniform(low, high) * 3_600_000)),
        ("grpc.max_connection_age_grace_ms", int(AGE_GRACE * 1000)),
        # A connection without a call has no business here.
        ("grpc.max_connection_idle_ms", 60_000),
        ("grpc.keepalive_time_ms", int(SERVER_KEEPALIVE_TIME * 1000)),
        ("grpc.keepalive_timeout_ms", int(SERVER_KEEPALIVE_TIMEOUT * 1000)),
        # Pings of another kind hold a keepalive ping up: they must not take longer than that one.
        ("grpc.http2.ping_timeout_ms", int(SERVER_KEEPALIVE_TIMEOUT * 1000)),
        ("grpc.http2.min_ping_interval_without_data_ms", int(KEEPALIVE_MINIMUM * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.server_handshake_timeout_ms", int(ADMIT_DEADLINE * 1000)),
    ]


class _OneHandler(grpc.GenericRpcHandler):
    """The only handler that there is: it takes every method, as a stream of bytes."""

    def __init__(self, gate: StreamAuth, method: str, serve: Serve, refusals: Refusals) -> None:
        self._gate = gate
        self._method = method
        self._serve = serve
        self._refusals = refusals

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        """Give gRPC the handler, whatever the method is."""
        name = str(details.method)
        metadata = tuple((key, value) for key, value in details.invocation_metadata)

        async def handle(_: object, context: _Context) -> None:
            await self._handle(name, metadata, context)

        return grpc.stream_stream_rpc_method_handler(handle)

    async def _handle(
        self, name: str, metadata: Sequence[tuple[str, str | bytes]], context: _Context
    ) -> None:
        certificate = next(iter(context.auth_context().get("x509_pem_cert", ())), b"")
        connection = Connection(name, str(context.peer()), metadata, certificate)
        fleet = ""
        try:
            async with asyncio.timeout(ADMIT_DEADLINE):
                admission = await self._gate.admit(connection)
            fleet = admission.fleet
            if name != self._method:
                raise Refused("method", "UNIMPLEMENTED", "unknown method")
            call = _Open(context)
            await call.welcome()
            await self._serve(call, admission)
            return
        except CallEnded:
            return
        except Refused as error:
            refused = error
        except TimeoutError:
            refused = Refused(
                "review_failed", "UNAVAILABLE", "the check of the credential took too long"
            )
        except Exception:
            log.exception("a call failed because of a bug")
            refused = Refused("bug", "INTERNAL", "internal error of the controller")
        self._refusals.note(refused, peer=connection.peer, method=name, fleet=fleet)
        # For a peer that does not read, the final status waits behind unread data; gRPC sends it later.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ABORT_DEADLINE):
                await context.abort(getattr(grpc.StatusCode, refused.status), refused.message)


class _Open:
    """An open call as a `Call`."""

    def __init__(self, context: _Context) -> None:
        self._context = context

    async def welcome(self) -> None:
        """Say that the call was admitted, before it is read: a proxy waits a moment for that."""
        try:
            await self._context.send_initial_metadata((WELCOME,))
        except grpc.aio.BaseError:
            raise CallEnded from None

    async def read(self) -> bytes | None:
        try:
            data: object = await self._context.read()
        except grpc.aio.BaseError:
            raise CallEnded from None
        return data if isinstance(data, bytes) else None  # EOF

    async def write(self, data: bytes) -> None:
        try:
            await self._context.write(data)
        except grpc.aio.BaseError:
            raise CallEnded from None


# --- between replicas -------------------------------------------------------------------------------


class ReportEnded(Exception):
    """The call to another replica is over; the text says why."""


async def call_report(
    target: str,
    server_name: str,
    keys: ServerKeys,
    method: str,
    talk: Talk,
) -> None:
    """Call another replica with our own certificate and let `talk` write; raises ReportEnded."""
    credentials = grpc.ssl_channel_credentials(keys.authorities_pem, keys.key, keys.certificate)
    options = [
        ("grpc.ssl_target_name_override", server_name),
        ("grpc.max_send_message_length", MESSAGE_LIMIT),
        ("grpc.keepalive_time_ms", int(KEEPALIVE_TIME * 1000)),
        ("grpc.keepalive_timeout_ms", int(KEEPALIVE_TIMEOUT * 1000)),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
    ]
    async with grpc.aio.secure_channel(target, credentials, options) as channel:
        call: _Outgoing = channel.stream_stream(method)()
        try:
            async with asyncio.timeout(_CONNECT_DEADLINE):
                await call.wait_for_connection()
            async with asyncio.TaskGroup() as tasks:
                talking = tasks.create_task(_talk(talk, call))
                # The other side says nothing until it is over.
                listening = tasks.create_task(_await_end(call))
                await asyncio.wait((talking, listening), return_when=asyncio.FIRST_COMPLETED)
                talking.cancel()
                listening.cancel()
            raise ReportEnded(await _describe_end(call))
        except grpc.aio.AioRpcError as error:
            raise ReportEnded(f"{error.code().name}: {error.details()}") from None
        except TimeoutError:
            raise ReportEnded("no connection in time") from None
        finally:
            call.cancel()


async def _talk(talk: Talk, call: _Outgoing) -> None:
    with contextlib.suppress(
        grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError, TimeoutError
    ):
        await talk(call.write)


async def _await_end(call: _Outgoing) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        await call.read()


async def _describe_end(call: _Outgoing) -> str:
    if not call.done():
        return "the stream has ended"
    code, details = await call.code(), await call.details()
    return f"{code.name}: {details}" if details else str(code.name)
