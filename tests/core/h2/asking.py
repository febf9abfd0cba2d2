"""One request in HTTP/2 on the test's own loop, and its answer as HTTP/1.1 would have it.

In: a connection, fields, a body. Out: a `Response`, or `Reset` with its code. hyper-h2's checks of what it sends are switched off.
"""

from __future__ import annotations

from collections.abc import Iterable

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from core.client import Client, Response

Fields = list[tuple[bytes, bytes]]
_MOST = 16_384  # bytes of a DATA frame


class Reset(Exception):
    """The stream was reset; `code` says why."""

    def __init__(self, code: int) -> None:
        super().__init__(f"reset with {code}")
        self.code = code


class Asker:
    """A connection that asks one thing after the other."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.frames = H2Connection(
            H2Configuration(
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                split_outbound_cookies=False,
            )
        )
        self.frames.initiate_connection()

    async def ask(self, fields: Fields, body: bytes = b"") -> Response:
        """Ask, read the answer to its end; raises Reset."""
        number = self.frames.get_next_available_stream_id()
        self.frames.send_headers(number, fields, end_stream=not body)
        for start in range(0, len(body), _MOST):
            piece = body[start : start + _MOST]
            self.frames.send_data(number, piece, end_stream=start + _MOST >= len(body))
        await self.client.send(self.frames.data_to_send())
        return await self.answer(number)

    async def answer(self, number: int) -> Response:
        """Read the answer of a stream to its end; raises Reset."""
        status, headers, data = 0, Fields(), b""
        trailers: Fields = []
        while True:
            for event in await self._events():
                match event:
                    case ResponseReceived(stream_id=one) if one == number:
                        headers = _bytes(event.headers)
                        status = int(dict(headers)[b":status"])
                    case DataReceived(stream_id=one) if one == number:
                        data += event.data or b""
                        size = event.flow_controlled_length or 0
                        self.frames.acknowledge_received_data(size, number)
                    case TrailersReceived(stream_id=one) if one == number:
                        trailers = _bytes(event.headers)
                    case StreamReset(stream_id=one) if one == number:
                        raise Reset(int(event.error_code or 0))
                    case StreamEnded(stream_id=one) if one == number:
                        await self.client.send(self.frames.data_to_send())
                        return Response(status, _texts(headers[1:]), data, _texts(trailers))
                    case _:
                        pass
            await self.client.send(self.frames.data_to_send())

    async def _events(self) -> list[Event]:
        data = await self.client.receive()
        assert data, "the connection ended before the answer"
        return self.frames.receive_data(data)


def _bytes(fields: Iterable[tuple[bytes | str, bytes | str]] | None) -> Fields:
    return [(bytes(name), bytes(value)) for name, value in fields or ()]  # type: ignore[arg-type]


def _texts(fields: Fields) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode(), value.decode("latin-1")) for name, value in fields)
