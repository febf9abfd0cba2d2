"""A crowd that begins TLS handshakes and never goes on: `python halfopen.py PORT COUNT NET`, from addresses in 127.NET.0.0/16.

In: numbers. Out: a line when all have been begun, then silence until standard input ends. A process of its own, because descriptors are
counted by process; it knows nothing of the test.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import sys

FIRST_BYTES = b"\x16\x03\x01\x02\x00\x01"  # of a ClientHello in a record of 512 bytes
PER_ADDRESS = 1000
BIND_NO_PORT = (
    24  # IP_BIND_ADDRESS_NO_PORT, linux/in.h: the port is chosen when it is known where to
)


def begin(port: int, source: str) -> socket.socket:
    """One that has said six bytes; the proxy may have ended it before that."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_IP, BIND_NO_PORT, 1)
    sock.bind((source, 0))
    sock.settimeout(60)
    sock.connect(("127.0.0.1", port))
    with contextlib.suppress(ConnectionError):
        sock.sendall(FIRST_BYTES)
    return sock


def main() -> None:
    port, count, net = map(int, sys.argv[1:])
    held = []
    for number in range(count):
        try:
            held.append(begin(port, f"127.{net}.0.{1 + number // PER_ADDRESS}"))
        except OSError as error:
            if error.errno not in (errno.ECONNRESET, errno.ECONNREFUSED):
                raise
    sys.stdout.write(f"{len(held)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
