"""XdsClient: keeps a stream to the controller and receives tables for the lifetime of the process.

In: an address, credentials, a callback that applies a table and returns what it refuses.
Out: complete tables in order; answers to the server. The end of a stream does not affect the table.
The client opens the next stream with jittered backoff on a new channel. It then reads certificates
and tokens again, and requests only differences.
Must never: show the content of a resource or a credential, or end for any reason but cancellation.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NoReturn

import grpc
import grpc.aio

from edgefast.table import Shards
from edgefast.xds.batch import Batch, DigestMismatch, Mirror, answer_commit
from edgefast.xds.credentials import Credentials, CredentialsError
from edgefast.xds.limits import KEEPALIVE_TIME, KEEPALIVE_TIMEOUT, MESSAGE_LIMIT
from edgefast.xds.messages import (
    METHOD,
    TICKETS,
    WELCOME,
    Node,
    ProtocolError,
    Request,
    Response,
    decode_response,
    encode_opening,
    encode_request,
)
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import COMMIT, MISMATCH, TABLE, Refused
from edgefast.xds.stream_stats import StreamStats
from edgefast.xds.ticket_messages import decode_given
from edgefast.xds.ticket_secrets import TicketSecrets

__all__ = ["XdsClient"]

log = logging.getLogger(__name__)

#: Seconds before the next stream; they double, and start again once a table has come.
_BACKOFF_FIRST = 0.2
_BACKOFF_MAX = 15.0
#: The longest wait while no server answers: proxies return to a restarted server within this time. A refused connection costs little; a server
#: that answers and refuses gets fewer requests.
_BACKOFF_UNREACHED = 2.0
#: Seconds for the connection, its TLS handshake and the stream's head: first try, and maximum. They double with each try: a
#: Service may select a stopped controller, and a busy one may need longer.
_CONNECT_FIRST = 2.0
_CONNECT_MAX = 10.0
_WRITE_DEADLINE = 30.0
#: Seconds that a server which says nothing is waited for before it is spoken to, and one that says hello only.
_WELCOME_DEADLINE = 0.3
_REFUSAL_DEADLINE = 0.2
#: Seconds for the server to end a stream that it was told to end.
_LAST_WORD = 2.0
#: Seconds between two messages of one batch; between batches there may be any silence.
_BATCH_DEADLINE = 60.0
#: Seconds between two answers to the same commit.
_RESTATE_EVERY = 0.5
#: Seconds after which the same failure is logged again, and another one.
_TELL_AGAIN = 60.0
_TELL_OTHER = 5.0
#: Every connection tries the addresses of a name in an order of its own; nothing else is asked than the server.
_SERVICE_CONFIG = json.dumps(
    {"loadBalancingConfig": [{"pick_first": {"shuffleAddressList": True}}]}
)

_Call = grpc.aio.StreamStreamCall[bytes, bytes]


class _StreamEnded(Exception):
    """The stream is over; the text says why."""


class XdsClient:
    """Keeps a stream to the controller open and applies the tables that it sends."""

    def __init__(
        self,
        target: str,
        credentials: Callable[[], Credentials],
        node: Node,
        on_table: Callable[[Shards], Awaitable[Sequence[Refused]]],
        *,
        held: Shards | None = None,
        server_name: str = "",
        on_tickets: Callable[[TicketSecrets], None] = lambda _: None,
    ) -> None:
        """`credentials` may block and is called in a thread, once per connection; raises CredentialsError.

        `on_table` is awaited before the next table is asked for; it returns what is not in force. `held`: what this
        process has already. `server_name`: the name that the server's certificate must have, if not the target's. `on_tickets`
        takes the fleet's keys of session tickets.
        """
        self.facts = StreamStats(server=target)
        self._target = target
        self._credentials = credentials
        self._node = node
        self._on_table = on_table
        self._server_name = server_name
        self._on_tickets = on_tickets
        self._mirror = Mirror(held)
        # What is not in force of what is held; before any table nothing has been tried.
        self._refused: tuple[Refused, ...] = ()
        self._known_problems: tuple[ProxyProblem, ...] = ()
        self._wakeup = (
            asyncio.Event()
        )  # `_refused`, or `_known_problems`, is not what the server was told
        self._commit_nonce = ""  # of the commit that may be answered again
        self._writing = asyncio.Lock()
        self._delay = _BACKOFF_FIRST
        self._patience = _CONNECT_FIRST  # seconds for the next connection
        self._reached = False  # a server answered at the last try
        self._reported = ("", 0.0)  # the last failure that was logged, and when

    def restate(self, refused: Sequence[Refused]) -> None:
        """Tell the server that something else than before is not in force of the last table."""
        if tuple(refused) != self._refused:
            self._refused = tuple(refused)
            self._wakeup.set()

    def tell(self, problems: Sequence[ProxyProblem]) -> None:
        """Tell the server what else is wrong now, with the answer to the last table or to the next one."""
        if tuple(problems) != self._known_problems:
            self._known_problems = tuple(problems)
            self._wakeup.set()

    async def run(self) -> None:
        """Keep the stream, until cancelled."""
        # Each stream has a task of its own: gRPC raises CancelledError for a stream that the server cancelled, and
        # another error where a cancelled task was meant; neither may be taken for the other.
        async with asyncio.TaskGroup() as streams:
            while True:
                stream = streams.create_task(self._try())
                await asyncio.wait((stream,))
                ended = "the server cancelled it" if stream.cancelled() else stream.result()
                self._note_end(ended)
                await asyncio.sleep(self._next_delay())

    def _next_delay(self) -> float:
        """Return the seconds to wait after a stream that ended, or that could not be opened."""
        most = _BACKOFF_MAX if self._reached else min(_BACKOFF_UNREACHED, _BACKOFF_MAX)
        delay = min(self._delay, most)
        self._delay = min(self._delay * 2, _BACKOFF_MAX)
        return delay * random.uniform(0.5, 1.0)

    async def _try(self) -> str:
        """Go through one stream; returns why it ended."""
        try:
            await self._talk()
        except Exception as error:
            return "; ".join(dict.fromkeys(map(_explain, _leaves(error))))
        return "the server closed it"

    def _note_end(self, why: str) -> None:
        facts = self.facts
        facts.connected = False
        facts.failures += 1
        facts.failed = why
        message, at = self._reported
        now = time.monotonic()
        if not message or now - at > (_TELL_AGAIN if why == message else _TELL_OTHER):
            self._reported = (why, now)
            log.warning(
                "controller %s: the stream ended: %s; the table stays in use", self._target, why
            )

    # --- one stream -----------------------------------------------------------------------------

    async def _talk(self) -> None:
        self._reached = False
        credentials = await asyncio.to_thread(self._credentials)
        metadata = [("authorization", f"Bearer {credentials.token}")] if credentials.token else []
        async with grpc.aio.secure_channel(
            self._target, _channel_credentials(credentials), self._options()
        ) as channel:
            call: _Call = channel.stream_stream(METHOD)(metadata=metadata)
            try:
                patience = self._patience
                self._patience = min(patience * 2, _CONNECT_MAX)
                async with asyncio.timeout(patience):
                    await call.wait_for_connection()
                self._reached, self._patience = True, _CONNECT_FIRST
                await _until_let_in(call)
                self.facts.streams += 1
                await self._open(call)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._restate(call))
                    await self._listen(call)
            finally:
                self._commit_nonce = ""
                call.cancel()

    def _options(self) -> list[tuple[str, Any]]:
        named = [("grpc.ssl_target_name_override", self._server_name)] if self._server_name else []
        return [
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.keepalive_time_ms", int(KEEPALIVE_TIME * 1000)),
            ("grpc.keepalive_timeout_ms", int(KEEPALIVE_TIMEOUT * 1000)),
            # Pings of another kind hold a keepalive ping up: they must not take longer than that one.
            ("grpc.http2.ping_timeout_ms", int(KEEPALIVE_TIMEOUT * 1000)),
            ("grpc.http2.max_pings_without_data", 0),
            # A new channel is a new connection: nothing is shared with the one before.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.service_config", _SERVICE_CONFIG),
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
            *named,
        ]

    async def _open(self, call: _Call) -> None:
        refused = [(one.type, one.name) for one in self._refused]
        version = self._mirror.version if not refused and self._mirror.shards.resources else ""
        for part in encode_opening(self._node, self._mirror.held(refused), version):
            await self._write(call, part)

    async def _listen(self, call: _Call) -> None:
        """Take in batch after batch; ends by raising."""
        while True:
            batch = Batch(self._mirror)
            taken = ""  # the version that was taken in while its commit was under way
            while (response := await self._read(call, batch)).type != COMMIT:
                self.facts.received += batch.add(response)
                if batch.version != taken:
                    taken = ""  # what follows leads elsewhere
                if batch.version == response.version != taken:
                    # All of it is here; a commit that comes later can only say so, and requests wait.
                    taken = response.version
                    await self._take(batch.close(taken))
                if response.commits:
                    break
            self._commit_nonce = ""
            if response.version != taken:
                try:
                    made = batch.close(response.version)
                except DigestMismatch:
                    await self._refuse_all(call, response)
                await self._take(made)
            await self._notify(call, batch, response.nonce)

    async def _read(self, call: _Call, batch: Batch) -> Response:
        while (response := await self._read_any(call, batch)).type == TICKETS:
            self._on_tickets(decode_given(response))
        return response

    async def _read_any(self, call: _Call, batch: Batch) -> Response:
        async with asyncio.timeout(_BATCH_DEADLINE if batch else None):
            data = await call.read()
        if not isinstance(data, bytes):  # EOF
            code, details = await call.code(), await call.details()
            raise _StreamEnded(_describe(code, details))
        if not self.facts.connected:
            self.facts.connected, self.facts.failed = True, ""
            log.info("controller %s: connected", self._target)
        return decode_response(data)

    async def _take(self, made: Mirror) -> None:
        """Bring a whole table in."""
        # What is refused from now on is of another table than the one that was answered last.
        self._commit_nonce = ""
        self._mirror = made
        self._refused = tuple(await self._on_table(made.shards))

    async def _notify(self, call: _Call, batch: Batch, nonce: str) -> None:
        """Answer a batch whose table was taken in."""
        self.facts.commits += 1
        self.facts.committed_at = time.time()
        self._delay = _BACKOFF_FIRST
        self._reported = ("", 0.0)
        for answer in batch.answers(self._refused):
            await self._answer(call, answer)
        self._wakeup.clear()
        self._commit_nonce = nonce
        await self._answer(call, self._answer_commit(nonce))

    async def _refuse_all(self, call: _Call, response: Response) -> NoReturn:
        """The digest is another one: say so, and begin again with nothing held."""
        self.facts.mismatches += 1
        self._mirror = Mirror()
        self._refused = ()
        await self._answer(call, answer_commit(response.nonce, (Refused(COMMIT, TABLE, MISMATCH),)))
        # It is to arrive before the stream's end does.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORD):
                await call.done_writing()
                await call.code()
        raise _StreamEnded(
            f"the digest of the table is not {response.version}; requesting the whole table again"
        )

    async def _restate(self, call: _Call) -> None:
        """Answer the last commit again whenever something else is in force."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            if nonce := self._commit_nonce:
                await self._answer(call, self._answer_commit(nonce))
            await asyncio.sleep(_RESTATE_EVERY)

    def _answer_commit(self, nonce: str) -> Request:
        return answer_commit(nonce, self._refused, self._node, self._known_problems)

    async def _answer(self, call: _Call, answer: Request) -> None:
        if answer.refused:
            self.facts.nacks += 1
        await self._write(call, encode_request(answer))

    async def _write(self, call: _Call, data: bytes) -> None:
        # gRPC takes one message at a time.
        async with asyncio.timeout(_WRITE_DEADLINE), self._writing:
            try:
                await call.write(data)
            except asyncio.InvalidStateError:
                raise _StreamEnded(_describe(await call.code(), await call.details())) from None


async def _until_let_in(call: _Call) -> None:
    """Wait for the server's first word, so that a refusal is read and not written over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_WELCOME_DEADLINE):
            if WELCOME in tuple(await call.initial_metadata() or ()):
                return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REFUSAL_DEADLINE):
            raise _StreamEnded(_describe(await call.code(), await call.details()))


def _channel_credentials(credentials: Credentials) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=credentials.ca,
        private_key=credentials.key or None,
        certificate_chain=credentials.certificate or None,
    )


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _explain(error: Exception) -> str:
    """Say what ended a stream; what nobody expects is logged with its traceback."""
    if isinstance(error, grpc.aio.AioRpcError):
        return _describe(error.code(), error.details())
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, (_StreamEnded, CredentialsError, ProtocolError, OSError)):
        return str(error)
    log.error("the stream failed", exc_info=error)
    return f"an internal error ({type(error).__name__})"


def _describe(code: grpc.StatusCode, details: str | None) -> str:
    if code is grpc.StatusCode.OK:
        return "the server closed it"
    return f"{code.name}: {details}" if details else str(code.name)
