"""What a request means: h11 as the independent reader, and the proxy's forwarding rules written down plainly.

In: the bytes of one or more requests. Out: the `Expected` message a backend must get for each: method, target, end-to-end
headers, body. Slow and obvious on purpose. It must share nothing with the product.
"""

from __future__ import annotations

from dataclasses import dataclass

import h11

from origin.message import Message
from wire.harness.cases import Case

HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade",
     b"http2-settings")
)  # fmt: skip
_KEPT = frozenset((b"host", b"content-length", b"transfer-encoding"))  # never removed by Connection
_ADDED = frozenset((b"x-forwarded-for", b"x-forwarded-proto", b"x-request-id", b"via"))


class NotHttp(Exception):
    """h11 refuses the input."""


@dataclass(frozen=True)
class Expected:
    """A message in the form in which input and output can be compared."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]  # end-to-end only, stably sorted by name
    body: bytes


def _own(name: bytes) -> bool:
    return name in _ADDED or name.startswith(b"x-edge-")


def end_to_end(headers: list[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    """What must reach the other side unchanged: no hop-by-hop, framing or proxy-made header."""
    nominated: set[bytes] = set()
    for name, value in headers:
        if name == b"connection":
            nominated |= {item.strip().lower() for item in value.split(b",")} - _KEPT
    dropped = HOP_BY_HOP | nominated | {b"expect", b"content-length", b"trailer"}
    kept = [(name, value) for name, value in headers if name not in dropped and not _own(name)]
    return tuple(sorted(kept, key=lambda item: item[0]))


def parse(data: bytes) -> list[Expected]:
    """All complete requests in `data`. Raises NotHttp when h11 finds a fault before the end."""
    found: list[Expected] = []
    while data:
        # h11 wants no empty line before a request, RFC 9112 2.2 allows one.
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1024 * 1024)
        connection.receive_data(data.removeprefix(b"\r\n"))
        message = _next_message(connection)
        if message is None:
            break
        found.append(message)
        if connection.their_state is h11.MUST_CLOSE:
            break
        data = connection.trailing_data[0]
    return found


def _next_message(connection: h11.Connection) -> Expected | None:
    request: h11.Request | None = None
    body = bytearray()
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as error:
            raise NotHttp(str(error)) from error
        if isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert request is not None
            headers = [(bytes(name), bytes(value)) for name, value in request.headers]
            return Expected(request.method, request.target, end_to_end(headers), bytes(body))
        else:  # NEED_DATA, PAUSED, ConnectionClosed
            return None


def observed(message: Message) -> Expected:
    """A message that a backend got, in the same form; what should have been removed stays and shows."""
    framing = (b"connection", b"transfer-encoding", b"content-length")
    kept = [item for item in message.headers if item[0] not in framing and not _own(item[0])]
    headers = tuple(sorted(kept, key=lambda item: item[0]))
    return Expected(message.method, message.target, headers, message.body)


def expected_messages(case: Case) -> list[Expected]:
    """What the backend must get for the forwarded messages of a case, in order."""
    try:
        found = parse(case.data) if case.oracle == "h11" else [_by_hand(case)]
    except NotHttp:
        found = _parsable_prefix(case)
    if found:
        first = found[0]
        extra = {name for name, _ in case.headers}
        headers = [item for item in first.headers if item[0] not in extra]
        headers = sorted([*headers, *case.headers], key=lambda item: item[0])
        found[0] = Expected(
            first.method,
            first.target if case.target is None else case.target,
            tuple(item for item in headers if item[0] not in case.absent),
            first.body if case.body is None else case.body,
        )
    return found


def _parsable_prefix(case: Case) -> list[Expected]:
    # Several messages of which a later one is bad: h11 raises when it comes to that one.
    wanted = 0
    for alternatives in case.steps:
        if not any(step.kind == "forward" for step in alternatives):
            break
        wanted += 1
    for end in range(len(case.data) if wanted else 0, 0, -1):
        try:
            found = parse(case.data[:end])
        except NotHttp:
            continue
        if len(found) == wanted:
            return found
    if wanted and any(len(alternatives) == 1 for alternatives in case.steps[:wanted]):
        raise AssertionError(f"{case.name}: h11 refuses what the case calls valid")
    return []


def _by_hand(case: Case) -> Expected:
    # For inputs that h11 cannot judge: a split by hand, with the parts that matter given by the case.
    head, _, rest = case.data.lstrip(b"\r\n").partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    method, target, _ = lines[0].split(b" ")
    headers = [line.partition(b":") for line in lines[1:]]
    pairs = [(name.lower(), value.strip(b" \t")) for name, _, value in headers]
    return Expected(method, target, end_to_end(pairs), rest)
