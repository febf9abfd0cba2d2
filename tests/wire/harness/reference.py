"""What a request means: h11 as the independent reader, and the proxy's forwarding rules written down plainly.

In: the bytes of one or more requests. Out: the `Expected` message a backend must get for each: method, target, end-to-end
headers, body. Slow and obvious on purpose. It must share nothing with the product.
"""

from __future__ import annotations

import re
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
    trailers: tuple[tuple[bytes, bytes], ...] = ()


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


_NO_TRAILER = re.compile(  # RFC 9110 6.5.1: what a recipient must not take from behind a body
    rb"content-(?!md5).*|transfer-encoding|host|te|trailer|connection|keep-alive|proxy-.*|upgrade|expect|cookie|set-cookie"
    rb"|authorization|www-authenticate|x-edge-.*|x-forwarded-.*|x-request-id|range|if-.*|max-forwards|cache-control"
    rb"|.*_.*"
)


def _trailers(
    headers: list[tuple[bytes, bytes]], fields: list[tuple[bytes, bytes]]
) -> tuple[tuple[bytes, bytes], ...]:
    """Those that go on: none where Connection names fields, for it might mean one of them."""
    options = b",".join(value for name, value in headers if name == b"connection").lower()
    if {item.strip() for item in options.split(b",")} - {b"", b"close", b"keep-alive", b"upgrade"}:
        return ()
    return tuple((name, value) for name, value in fields if not _NO_TRAILER.fullmatch(name))


def parse(data: bytes) -> list[Expected]:
    """All complete requests in `data`. Raises NotHttp when h11 finds a fault before the end."""
    found, fault = parse_until_fault(data)
    if fault is not None:
        raise fault
    return found


def parse_until_fault(data: bytes) -> tuple[list[Expected], NotHttp | None]:
    """The complete requests before the first fault, and that fault."""
    found: list[Expected] = []
    while data:
        # h11 wants no empty line before a request, RFC 9112 2.2 allows one.
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1024 * 1024)
        connection.receive_data(data.removeprefix(b"\r\n"))
        try:
            message = _next_message(connection)
        except NotHttp as fault:
            return found, fault
        if message is None:
            break
        found.append(message)
        if connection.their_state is h11.MUST_CLOSE:
            break
        data = connection.trailing_data[0]
    return found, None


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
            headers = [
                (name, _host(value) if name == b"host" else value) for name, value in headers
            ]
            behind = [(bytes(name), bytes(value)) for name, value in event.headers]
            return Expected(
                request.method,
                request.target,
                end_to_end(headers),
                bytes(body),
                _trailers(headers, behind),
            )
        else:  # NEED_DATA, PAUSED, ConnectionClosed
            return None


def _host(value: bytes) -> bytes:
    """Without the root's name at its end (RFC 3986 3.2.2)."""
    return re.sub(rb"(?<=[^.])\.(?=(?::[0-9]+)?\Z)", b"", value)


def observed(message: Message) -> Expected:
    """A message that a backend got, in the same form; what should have been removed stays and shows."""
    framing = (b"connection", b"transfer-encoding", b"content-length")
    kept = [item for item in message.headers if item[0] not in framing and not _own(item[0])]
    headers = tuple(sorted(kept, key=lambda item: item[0]))
    return Expected(message.method, message.target, headers, message.body, message.trailers)


def normal_target(target: bytes) -> bytes:
    """The form in which a target is forwarded: origin-form, path by RFC 3986 6.2.2 with merged slashes."""
    if target[:7].lower() == b"http://":
        rest = target[7:]
        cut = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
        target = rest[cut:]
        target = target if target.startswith(b"/") else b"/" + target
    path, mark, query = target.partition(b"?")
    if not path.startswith(b"/"):
        return target
    path = re.sub(rb"%[0-9a-fA-F]{2}", _normal_escape, path).replace(b"|", b"%7C")
    kept: list[
        bytes
    ] = []  # RFC 3986 5.2.4 first, with empty segments; slashes are merged afterwards
    segments = path.split(b"/")[1:]
    for segment in segments:
        if segment == b"..":
            del kept[-1:]
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in (b".", b".."):
        kept.append(b"")
    made = re.sub(rb"/+", b"/", b"/" + b"/".join(kept))
    return made + mark + query


def _normal_escape(match: re.Match[bytes]) -> bytes:
    byte = bytes([int(match[0][1:], 16)])
    return byte if re.fullmatch(rb"[A-Za-z0-9._~-]", byte) else match[0].upper()


def expected_messages(case: Case) -> list[Expected]:
    """What the backend must get for the forwarded messages of a case, in order."""
    found = parse_until_fault(case.data)[0] if case.oracle == "h11" else [_by_hand(case)]
    wanted = 0
    for alternatives in case.steps:  # up to the first message that may be refused
        if any(step.kind != "forward" for step in alternatives):
            break
        wanted += 1
    assert len(found) >= wanted, f"{case.name}: h11 refuses what the case calls valid"
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
            first.trailers,
        )
    return found


def _by_hand(case: Case) -> Expected:
    # For inputs that h11 cannot judge: a split by hand, with the parts that matter given by the case.
    head, _, rest = case.data.lstrip(b"\r\n").partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    method, target, _ = lines[0].split(b" ")
    headers = [line.partition(b":") for line in lines[1:]]
    pairs = [(name.lower(), value.strip(b" \t")) for name, _, value in headers]
    return Expected(method, target, end_to_end(pairs), rest)
