"""Reports: messages about node answers between replicas, and their receiver.

In: acks.
Out: messages of at most a fraction of gRPC's size limit; at the leader, acks in `Fleets` for as
long as the replica reports. A call sends every node first, then changes.
Source: architecture D6 (followers relay ACKs).
Must never: accept a report without the controller's own certificate (the stream authentication
enforces it).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator

import msgspec

from controller.xds_server.ack import Ack
from controller.xds_server.auth_interface import Admission
from controller.xds_server.fleets import Fleets, Report
from controller.xds_server.refusal import Refused
from controller.xds_server.transport import Call

__all__ = ["REPORT", "Line", "encode_reports", "receive_reports"]

REPORT = "/edge.v1.Relay/Report"

_FILL = 256 * 1024  # bytes of one message
_IDENTITY_LIMIT = 512


class Line(msgspec.Struct, frozen=True, array_like=True):
    """One node."""

    fleet: str
    node: str
    ack: Ack


class _Report(msgspec.Struct, frozen=True):
    via: str
    lines: tuple[msgspec.Raw, ...]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Report).decode
_decode_line = msgspec.msgpack.Decoder(Line).decode


def encode_reports(via: str, lines: Iterable[Line]) -> Iterator[bytes]:
    """Return messages with these lines; one at least, so that the other side knows that we are here."""
    part: list[msgspec.Raw] = []
    filled = 0
    empty = True
    for line in lines:
        raw = _encode(line)
        if part and filled + len(raw) > _FILL:
            yield _encode(_Report(via, tuple(part)))
            part, filled, empty = [], 0, False
        part.append(msgspec.Raw(raw))
        filled += len(raw)
    if part or empty:
        yield _encode(_Report(via, tuple(part)))


async def receive_reports(call: Call, admission: Admission, fleets: Fleets) -> None:
    """Take in one replica's reports until it ends; raises Refused."""
    via = ""
    known: Report = {}
    try:
        async with asyncio.timeout(max(0.0, admission.expires - time.time())):
            while (data := await call.read()) is not None:
                await admission.check()
                try:
                    report = _decode(data)
                    lines = tuple(map(_decode_line, report.lines))
                except (msgspec.MsgspecError, RecursionError):
                    raise Refused("message", "INVALID_ARGUMENT", "not a report") from None
                if not report.via or len(report.via) > _IDENTITY_LIMIT:
                    raise Refused("protocol", "INVALID_ARGUMENT", "a report must name its replica")
                if not via:
                    via = report.via
                    known = fleets.open_report(via)
                elif via != report.via:
                    raise Refused(
                        "protocol", "INVALID_ARGUMENT", "one call must come from one replica"
                    )
                for line in lines:
                    fleets.hear(known, line.fleet, line.node, line.ack)
    except TimeoutError:
        raise Refused("expired", "UNAUTHENTICATED", "the certificate has expired") from None
    finally:
        if via:
            fleets.close_report(via, known)
