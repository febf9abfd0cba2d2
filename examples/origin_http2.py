"""Calls of gRPC at a backend of the examples: HTTP/2 by prior knowledge, as GRPCRoutes' backends are asked.

In: a connection whose first bytes say that it is HTTP/2. Out: to each call one message, JSON that tells what came, and OK; header
`x-service` names the backend. A method that is called Flaky is UNAVAILABLE the first time a request id is seen. It is for trying:
it reads no messages but questions of the gateway's about who may enter (origin_check.py), and needs the package h2.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, RequestReceived, StreamEnded
from origin_check import PATH as CHECK
from origin_check import check

_STATUS = (":status", "200")
_KIND = ("content-type", "application/grpc")


async def answer_calls(
    service: str,
    known_ids: deque[str],
    first: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    idle: float,
) -> None:
    """Answer all calls of a connection."""
    connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
    connection.initiate_connection()
    heads: dict[int, dict[str, str]] = {}
    asked: dict[int, bytes] = {}  # questions, as far as they have come
    data = first
    while data:
        for event in connection.receive_data(data):
            if isinstance(event, RequestReceived):
                heads[event.stream_id] = {str(k): str(v) for k, v in event.headers}
            elif isinstance(event, DataReceived):
                connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if heads[event.stream_id][":path"] == CHECK:
                    come = asked.get(event.stream_id, b"") + event.data
                    asked[event.stream_id] = come[:65536]
            elif isinstance(event, StreamEnded):
                stream, head = event.stream_id, heads.pop(event.stream_id)
                if head[":path"] == CHECK:
                    _write_message(connection, stream, [], check(asked.pop(stream, b"")[5:]))
                else:
                    _answer(connection, stream, service, head, known_ids)
            elif isinstance(event, ConnectionTerminated):
                return
        writer.write(connection.data_to_send())
        await writer.drain()
        data = await asyncio.wait_for(reader.read(65536), idle)


def _answer(
    connection: H2Connection,
    stream: int,
    service: str,
    head: dict[str, str],
    known_ids: deque[str],
) -> None:
    request_id = head.get("x-request-id", "")
    named: list[tuple[str, str]] = [("x-service", service)]
    if head[":path"].endswith("/Flaky") and request_id not in known_ids:
        known_ids.append(request_id)
        said = [("grpc-status", "14"), ("grpc-message", "not this time")]
        connection.send_headers(stream, [_STATUS, _KIND, *named, *said], end_stream=True)
        return
    told: dict[str, Any] = {"service": service, "method": head[":path"], "headers": head}
    _write_message(connection, stream, named, json.dumps(told).encode())


def _write_message(
    connection: H2Connection, stream: int, named: list[tuple[str, str]], message: bytes
) -> None:
    connection.send_headers(stream, [_STATUS, _KIND, *named])
    connection.send_data(stream, b"\0" + len(message).to_bytes(4, "big") + message)
    connection.send_headers(stream, [("grpc-status", "0")], end_stream=True)
