"""Usual answers of a test origin: a plain one that repeats the request's target, and an echo of the whole request.

An answer is a function Message -> bytes of a whole HTTP/1.1 response, or None for "say nothing". It must never depend on
anything but the message, so that a test can say beforehand what the client gets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from origin.message import Message

Answer = Callable[[Message], bytes | None]


def response(
    body: bytes = b"",
    status: int = 200,
    headers: Iterable[tuple[str, str]] = (),
    *,
    head: bool = False,
) -> bytes:
    """A response framed by Content-Length; `head` leaves the body out (answer to HEAD)."""
    lines = [f"HTTP/1.1 {status} Test", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    start = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return start if head else start + body


def answer_target(message: Message) -> bytes:
    """200 with the request's target as its body."""
    return response(message.target, head=message.method == b"HEAD")


def echo(name: str) -> Answer:
    """Answers 200 with JSON: which origin, and all that it was asked. `/status/NNN` chooses the status."""

    def answer(message: Message) -> bytes:
        body = json.dumps(
            {
                "origin": name,
                "method": message.method.decode(),
                "target": message.target.decode("latin-1"),
                "headers": [
                    [key.decode(), value.decode("latin-1")] for key, value in message.headers
                ],
                "body": message.body.decode("latin-1"),
            }
        ).encode()
        path = message.target.partition(b"?")[0]
        status = int(path[-3:]) if path[:-3].endswith(b"/status/") else 200
        headers = [("content-type", "application/json"), ("x-origin", name)]
        return response(body, status, headers, head=message.method == b"HEAD")

    return answer
