"""A crowd that begins TLS handshakes and never goes on: `python half_open.py PORT COUNT NET [BYTES]`, from addresses in 127.NET.0.0/16,
each with so many bytes of a hello.

In: numbers. Out: a line when all have been begun, then silence until standard input ends. A process of its own, because descriptors are
counted by process; it knows nothing of the test.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import sys

FIRST_BYTES = b"\x16\x03\x01\x02\x00\x01"  # of a ClientHello in a record of 512 bytes
LONG = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"  # ... of 16 KiB
PER_ADDRESS = 1000
BIND_NO_PORT = (
    24  # IP_BIND_ADDRESS_NO_PORT, linux/in.h: the port is chosen when it is known where to
)


def begin(port: int, source: str, said: bytes) -> socket.socket:
    """One that has said so much; the proxy may have ended it before that."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_IP, BIND_NO_PORT, 1)
    sock.bind((source, 0))
    sock.settimeout(60)
    sock.connect(("127.0.0.1", port))
    with contextlib.suppress(ConnectionError):
        sock.sendall(said)
    return sock


def main() -> None:
    port, count, net, size, *_ = [*map(int, sys.argv[1:]), len(FIRST_BYTES)]
    said = FIRST_BYTES if size == len(FIRST_BYTES) else LONG + bytes(size - len(LONG))
    held = []
    for number in range(count):
        try:
            held.append(begin(port, f"127.{net}.0.{1 + number // PER_ADDRESS}", said))
        except OSError as error:
            if error.errno not in (errno.ECONNRESET, errno.ECONNREFUSED):
                raise
    sys.stdout.write(f"{len(held)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
