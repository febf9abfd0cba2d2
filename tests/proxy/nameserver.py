"""A real DNS server, and clients that ask it questions over UDP, as `dig` does with +tries=1: nothing is ever sent again.

In: numbers below 2**24, of which each has a name. Out: their addresses, from answers that are held to RFC 1035 in what they repeat.
Must never take an answer for one to another question.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Any

from wire.harness.ports import free_port
from wire.harness.programs import ALONE

ZONE = b"load.test"
ANSWERED = 0x8180  # QR, RD, RA; NOERROR
ANSWERED_BY_OWNER = 0x8580  # ... and AA
DEADLINE = 20.0


def address_of(number: int) -> bytes:
    """What the server answers."""
    return b"\x0a" + number.to_bytes(3, "big")


def question(number: int) -> bytes:
    """Name, type A and class IN."""
    label = b"n" + b"-".join(b"%d" % byte for byte in address_of(number))
    labels = [label, *ZONE.split(b".")]
    name = b"".join(bytes([len(one)]) + one for one in labels) + b"\0"
    return name + struct.pack("!HH", 1, 1)


class Resolver(asyncio.DatagramProtocol):
    """One client's socket; questions may be under way together."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._was_requested: dict[int, tuple[bytes, asyncio.Future[bytes]]] = {}
        self._next = 0
        self.strays: list[bytes] = []  # what nobody had asked for

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        said = int.from_bytes(data[:2], "big")
        asked, answer = self._was_requested.get(said, (b"", None))
        if answer is None or answer.done() or data[12 : 12 + len(asked)] != asked:
            self.strays.append(data)
            return
        answer.set_result(data)

    async def ask(self, number: int) -> None:
        """Send one question, once; its answer has to come, and to be right."""
        self._next = (self._next + 1) % 65536
        said, asked = self._next, question(number)
        answer = asyncio.get_running_loop().create_future()
        self._was_requested[said] = (asked, answer)
        self._transport.sendto(struct.pack("!6H", said, 0x0100, 1, 0, 0, 0) + asked)
        try:
            async with asyncio.timeout(DEADLINE):
                got = await answer
        finally:
            del self._was_requested[said]
        flags, _, answers = struct.unpack("!3H", got[2:8])
        assert flags in (ANSWERED, ANSWERED_BY_OWNER) and answers == 1, got
        assert got[12 + len(asked) :][-6:-4] == b"\0\4" and got[-4:] == address_of(number)


@contextlib.asynccontextmanager
async def resolver(port: int, source: str = "127.0.0.1") -> AsyncIterator[Resolver]:
    """A client from this address."""
    transport, made = await asyncio.get_running_loop().create_datagram_endpoint(
        Resolver, local_addr=(source, 0), remote_addr=("127.0.0.1", port)
    )
    try:
        yield made
        assert made.strays == []
    finally:
        transport.close()


@contextlib.contextmanager
def _run(port: int) -> Iterator[subprocess.Popen[bytes]]:
    argv = ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
    argv += [f"--port={port}", "--listen-address=127.0.0.1", "--bind-interfaces"]
    argv += [f"--synth-domain={ZONE.decode()},10.0.0.0/8,n"]
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=ALONE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.asynccontextmanager
async def name_server() -> AsyncIterator[int]:
    """dnsmasq, which answers for all of the zone; its port."""
    port = free_port()
    with _run(port) as process:
        await _wait_for(port, process)
        yield port


async def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + DEADLINE
    while process.poll() is None:
        assert loop.time() < end, "no name server"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2), resolver(port) as client:
                return await client.ask(1)
    raise AssertionError(process.stderr and process.stderr.read())
