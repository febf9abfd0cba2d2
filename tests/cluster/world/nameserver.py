"""What stands for CoreDNS in a world: a name server that says where a question came from, over UDP and TCP (its plugin whoami).

In: questions on port 53. Out: an answer without records of its own, and beside it the asker's address and port, as whoami gives them.
Source: RFC 1035 4.1; coredns.io/plugins/whoami.
Must never: ask anybody else, or answer what is no question.
"""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from typing import cast

_HEAD = struct.Struct("!HHHHHH")
_RECORD = struct.Struct("!HHIH")
_A, _AAAA, _SRV, _IN = 1, 28, 33, 1
_ANSWER, _AUTHORITATIVE = 0x8000, 0x0400
_PORT = 53


def answer(data: bytes, peer: tuple[str, int]) -> bytes:
    """Return the answer to one message, nothing when it is no question."""
    if len(data) < _HEAD.size:
        return b""
    number, flags, questions, *_ = _HEAD.unpack_from(data)
    end = _end_of_name(data, _HEAD.size)
    if flags & _ANSWER or questions != 1 or end == 0 or end + 4 > len(data):
        return b""
    name, asked = data[_HEAD.size : end], data[_HEAD.size : end + 4]
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    kind = _A if address.version == 4 else _AAAA
    own = name + _RECORD.pack(kind, _IN, 0, len(address.packed)) + address.packed
    port = struct.pack("!HHH", 0, 0, peer[1]) + b"\x00"
    service = b"\x04_udp" + name + _RECORD.pack(_SRV, _IN, 0, len(port)) + port
    said = flags & 0x7900 | _ANSWER | _AUTHORITATIVE
    return _HEAD.pack(number, said, 1, 0, 0, 2) + asked + own + service


def _end_of_name(data: bytes, at: int) -> int:
    """Return where a name ends, 0 when it is none."""
    while at < len(data):
        length = data[at]
        if length > 63:
            return 0
        at += 1 + length
        if not length:
            return at
    return 0


class _Datagrams(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # An assertion would not hold: the loop's own transports are none of that class.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        if said := answer(data, peer[:2]):
            self._transport.sendto(said, peer)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            peer = writer.get_extra_info("peername")[:2]
            said = answer(await reader.readexactly(length), peer)
            writer.write(struct.pack("!H", len(said)) + said)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Answer until it is ended."""
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(_Datagrams, local_addr=("0.0.0.0", _PORT))
    server = await asyncio.start_server(_serve, "0.0.0.0", _PORT)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
