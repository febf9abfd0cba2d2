"""A backend of gRPC by grpcio: methods that do what their names say, messages are bytes.

In: a name, a certificate if it speaks TLS. Out: what reached it (`calls`), and when the call that waits began and ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, Self

import grpc

from wire.harness.certificates import Pair

CEILING = 20.0  # seconds, against hangs
PLAIN: list[tuple[str, Any]] = [("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0)]
_THREADS = 16


class GrpcBackend(grpc.GenericRpcHandler):
    """Use as a context manager; whatever the service is called, its methods are these."""

    def __init__(
        self, name: str = "one", pair: Pair | None = None, address: str = "127.0.0.1"
    ) -> None:
        self.name = name
        self.calls: list[tuple[str, dict[str, str | bytes]]] = []  # method with service, metadata
        self.reached = threading.Event()  # some call came
        self.began, self.ended = threading.Event(), threading.Event()  # of the last Wait
        self.left: float | None = None  # seconds it was given
        self._server = grpc.server(
            futures.ThreadPoolExecutor(_THREADS), [self], options=[("grpc.so_reuseport", 0)]
        )
        if pair is None:
            self.port = self._server.add_insecure_port(f"{address}:0")
        else:
            shown = grpc.ssl_server_credentials([(pair.key, pair.certificate)])
            self.port = self._server.add_secure_port(f"{address}:0", shown)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait(CEILING)

    def forget(self) -> None:
        """Wait for a call of Wait anew; none may be there."""
        self.began.clear()
        self.ended.clear()
        self.left = None

    def service(self, handler_call_details: Any) -> Any:
        """Find the method, as grpcio wants it (grpc.GenericRpcHandler)."""
        self.calls.append(
            (handler_call_details.method, dict(handler_call_details.invocation_metadata))
        )
        self.reached.set()
        makers: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
            "Echo": (grpc.unary_unary_rpc_method_handler, self._echo),
            "Refuse": (grpc.stream_stream_rpc_method_handler, self._refuse),
            "Wait": (grpc.unary_unary_rpc_method_handler, self._wait),
            "Sleep": (grpc.unary_unary_rpc_method_handler, self._sleep),
            "Begin": (grpc.unary_stream_rpc_method_handler, self._begin),
            "Many": (grpc.unary_stream_rpc_method_handler, self._many),
            "Gather": (grpc.stream_unary_rpc_method_handler, self._gather),
            "Chat": (grpc.stream_stream_rpc_method_handler, self._chat),
        }
        made = makers.get(handler_call_details.method.rpartition("/")[2])
        return made and made[0](made[1])

    def _echo(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        """The message; metadata that begin with `my-` come back before and behind it; its own name is there, too."""
        mine = [one for one in context.invocation_metadata() if one[0].startswith("my-")]
        context.send_initial_metadata((("backend", self.name), *mine))
        context.set_trailing_metadata((("behind", self.name), *mine))
        return message

    def _refuse(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """The status that the first message says, at once; b"7 after" first sends that many messages."""
        number, _, count = next(messages).partition(b" ")
        yield from (b"%d" % one for one in range(int(count or 0)))
        code = next(one for one in grpc.StatusCode if one.value[0] == int(number))
        context.set_trailing_metadata((("why", "asked for"),))
        context.abort(code, f"status {code.name}: 100% of it, ünïcode")

    def _wait(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        """Return when the caller is gone."""
        self.left = context.time_remaining()
        self.began.set()
        self._sleep(message, context)
        self.ended.set()
        return message

    def _sleep(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        """The same, and nobody hears of it."""
        gone = threading.Event()
        if not context.add_callback(gone.set):  # it was gone before it came here
            gone.set()
        gone.wait(CEILING)
        return message

    def _begin(self, message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        yield message
        self._wait(message, context)

    def _many(self, message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """As many messages as the one that came says."""
        del context
        yield from (b"%d" % number for number in range(int(message)))

    def _gather(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        del context
        return b" ".join(messages)

    def _chat(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        del context
        for message in messages:
            yield b"%s: %s" % (self.name.encode(), message)


def open_channel(port: int, authority: str = "") -> grpc.Channel:
    """A client without TLS, whose calls are made once; `authority` is the host that it asks for."""
    named = [("grpc.default_authority", authority)] if authority else []
    return grpc.insecure_channel(f"127.0.0.1:{port}", [*PLAIN, *named])


def refused(call: Callable[[], Any]) -> Any:
    """How a call ends that must not succeed: the error, with code(), details() and metadata."""
    try:
        done = call()
        found = done if isinstance(done, bytes) else [*done]
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"the call succeeded: {found!r}")
