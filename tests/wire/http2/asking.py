"""One request in either protocol, with its body going out while the answer comes in.

In: a port, a request. Out: `Answer`, which is the same whatever it came by. Must never: wait for an answer before it reads.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from wire.harness.client import Client, build_request
from wire.http2.client import H2Client

PROTOCOLS = ("http/1.1", "chunked", "h2")


@dataclass
class Answer:
    """What came back."""

    status: int
    body: bytes
    trailers: dict[bytes, bytes] = field(default_factory=dict)
    interim: list[int] = field(default_factory=list)
    fields: dict[bytes, bytes] = field(default_factory=dict)
    whole: bool = True


Ask = Callable[..., Answer]


def ask(
    port: int,
    protocol: str,
    path: str,
    body: bytes | None = None,
    trailers: tuple[tuple[str, str], ...] = (),
) -> Answer:
    """GET, or POST with a body; trailers only where the protocol has them."""
    if protocol == "h2":
        return _ask_http2(port, path, body, trailers)
    return _ask_http1(port, path, body, trailers, chunked=protocol == "chunked")


def _ask_http1(
    port: int,
    path: str,
    body: bytes | None,
    trailers: tuple[tuple[str, str], ...],
    *,
    chunked: bool,
) -> Answer:
    method = "GET" if body is None else "POST"
    head = [("TE", "trailers"), ("Connection", "te")]
    chunked = chunked and body is not None
    request = build_request(method, path, "a", head, body or b"", chunked=chunked)
    if trailers and chunked:
        lines = "".join(f"{name}: {value}\r\n" for name, value in trailers)
        request = request[:-2] + lines.encode() + b"\r\n"
    with Client(("127.0.0.1", port)) as client:
        client.expect(method)
        sender = threading.Thread(target=_send, args=(client, request))
        sender.start()
        try:
            found = client.read_to_end() if path == "/cut" else [client.read_response()]
        finally:
            client.close()
            sender.join()
    (response,) = found
    return Answer(
        response.status,
        response.body,
        dict(response.trailers),
        [one.status for one in response.interim],
        dict(response.headers),
        response.complete,
    )


def _send(client: Client, request: bytes) -> None:
    with contextlib.suppress(OSError):  # the answer is complete, and nobody waits for the rest
        client.send(request)


def _ask_http2(
    port: int, path: str, body: bytes | None, trailers: tuple[tuple[str, str], ...]
) -> Answer:
    with H2Client(port) as client:
        fields = [("te", "trailers")]
        method = "GET" if body is None else "POST"
        number = client.ask(fields, method=method, path=path, end=body is None)
        if body is not None:
            client.body(number, body, end=not trailers)
            if trailers:
                client.trail(number, trailers)
            elif not body:
                client.frames.end_stream(number)
                client.flush()
        stream = client.finish(number)
        return Answer(
            stream.status,
            stream.body,
            dict(stream.trailers),
            stream.interim,
            dict(stream.fields),
            stream.ended,
        )
