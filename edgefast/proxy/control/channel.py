"""Channel: length-prefixed MessagePack frames and descriptors over a SOCK_SEQPACKET socket pair.

In: messages to send with descriptors.
Out: decoded messages with their descriptors, all CLOEXEC.
One frame is one datagram: `length (4 bytes, little endian) payload`. A wrong length, or an
oversized or truncated frame, is a ChannelError and ends the connection to that peer. A process
without free descriptors uses its reserve. Descriptors that are lost even then are missing at the
end of the list, and the receiver requests them again.
Must never: block the loop, or queue; `send` waits until the kernel took the frame, so a slow peer
slows its own sender only.
"""

from __future__ import annotations

import array
import asyncio
import errno
import os
import select
import socket
import struct
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from edgefast.proxy.control.messages import FRAME_LIMIT
from edgefast.proxy.process.reserved_descriptors import RESERVE

__all__ = ["MAX_DESCRIPTORS", "Channel", "ChannelClosed", "ChannelError", "encode_frame"]

#: Descriptors that may come with one frame (the kernel's ceiling is 253, SCM_MAX_FD).
MAX_DESCRIPTORS = 64
_PREFIX = struct.Struct("<I")
#: Seconds until descriptors may be sent again, when too many of this user's are under way.
_CROWDED = 0.02
_ANCILLARY = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)

Message = TypeVar("Message")


class ChannelError(Exception):
    """The peer broke the protocol."""


class ChannelClosed(Exception):
    """The peer is gone."""


def encode_frame(message: object) -> bytes:
    """Return a message's frame; ValueError when it is over FRAME_LIMIT."""
    payload = msgspec.msgpack.encode(message)
    if len(payload) + _PREFIX.size > FRAME_LIMIT:
        raise ValueError(
            f"{type(message).__name__} of {len(payload)} bytes is over the frame limit"
        )
    return _PREFIX.pack(len(payload)) + payload


class Channel(Generic[Message]):
    """One end; the decoder knows the messages that the peer may send."""

    def __init__(self, sock: socket.socket, decoder: msgspec.msgpack.Decoder[Message]) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._decoder = decoder
        self._sending = asyncio.Lock()

    async def send(self, message: object, descriptors: Sequence[int] = ()) -> None:
        """Send one frame; raises ChannelClosed. The caller sets the deadline."""
        frame = encode_frame(message)
        async with self._sending:
            while True:
                try:
                    if descriptors:
                        socket.send_fds(self._sock, [frame], descriptors)
                    else:
                        self._sock.send(frame)
                    return
                except BlockingIOError:
                    await self._wait(reading=False)
                except OSError as error:
                    if error.errno != errno.ETOOMANYREFS:
                        raise ChannelClosed(str(error)) from None
                    await asyncio.sleep(_CROWDED)

    async def receive(self) -> tuple[Message, list[int]]:
        """Receive one frame; the caller owns the descriptors. Raises ChannelClosed, ChannelError.

        The descriptors are fewer than were sent when this process has no room for more.
        """
        while True:
            try:
                frame, ancillary, flags = self._receive_now()
                break
            except BlockingIOError:
                await self._wait(reading=True)
            except OSError as error:
                raise ChannelClosed(str(error)) from None
        descriptors = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        try:
            return self._decode(frame, flags), list(descriptors)
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise

    def has_peer(self) -> bool:
        """Tell whether the other end is still there, also while what it sent waits to be received."""
        poll = select.poll()
        poll.register(self._sock, 0)  # the peer's end is reported in any case
        return not poll.poll(0)

    def _receive_now(self) -> tuple[bytes, list[tuple[int, int, bytes]], int]:
        # Looked at first: descriptors that find no room are gone, and only the kernel knows of them.
        _, _, flags, _ = self._sock.recvmsg(1, 0, socket.MSG_PEEK)
        if not flags & socket.MSG_CTRUNC:
            frame, _, flags, _ = self._sock.recvmsg(FRAME_LIMIT + 1)
            return frame, [], flags
        with RESERVE.lent():
            frame, ancillary, flags, _ = self._sock.recvmsg(
                FRAME_LIMIT + 1, _ANCILLARY, socket.MSG_CMSG_CLOEXEC
            )
        return frame, ancillary, flags

    def _decode(self, frame: bytes, flags: int) -> Message:
        if not frame:
            raise ChannelClosed("end of stream")
        if flags & socket.MSG_TRUNC or len(frame) > FRAME_LIMIT:
            raise ChannelError("frame over the limit")
        if len(frame) < _PREFIX.size or _PREFIX.unpack_from(frame)[0] != len(frame) - _PREFIX.size:
            raise ChannelError("frame length disagrees with its prefix")
        try:
            return self._decoder.decode(memoryview(frame)[_PREFIX.size :])
        except msgspec.MsgspecError as error:
            raise ChannelError(f"undecodable message: {error}") from None

    async def _wait(self, *, reading: bool) -> None:
        """Wait until the socket can be read or written."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        descriptor = self._sock.fileno()
        if descriptor < 0:
            raise ChannelClosed("closed here")
        (loop.add_reader if reading else loop.add_writer)(descriptor, wake)
        try:
            await ready
        finally:
            (loop.remove_reader if reading else loop.remove_writer)(descriptor)

    def close(self) -> None:
        """Close the socket; only after every `send` and `receive` has ended."""
        self._sock.close()
