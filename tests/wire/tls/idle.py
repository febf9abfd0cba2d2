"""Clients that have been answered and wait: `python idle.py PORT COUNT NET [BUNDLE]`, from addresses in 127.NET.0.0/16, by TLS if there is a
bundle of authorities.

In: numbers, and a line on standard input. Out: a line when each of them was answered, another one when each was answered again, behind that
line. A process of its own, because descriptors and memory are counted by process; it knows nothing of the test.
"""

from __future__ import annotations

import socket
import ssl
import sys

NAME = "a.test"
REQUEST = f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()
PER_ADDRESS = 1000
BIND_NO_PORT = (
    24  # IP_BIND_ADDRESS_NO_PORT, linux/in.h: the port is chosen when it is known where to
)


def connect(port: int, source: str, context: ssl.SSLContext | None) -> socket.socket:
    """One that is open."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_IP, BIND_NO_PORT, 1)
    sock.bind((source, 0))
    sock.settimeout(60)
    sock.connect(("127.0.0.1", port))
    return context.wrap_socket(sock, server_hostname=NAME) if context else sock


def ask(sock: socket.socket) -> int:
    """1: it was answered."""
    sock.sendall(REQUEST)
    answer = b""
    while b"\r\n\r\n" not in answer:
        data = sock.recv(4096)
        if not data:
            return 0
        answer += data
    return answer.startswith(b"HTTP/1.1 200 ")


def main() -> None:
    port, count, net = map(int, sys.argv[1:4])
    context = ssl.create_default_context(cafile=sys.argv[4]) if sys.argv[4:] else None
    socks = []
    answered = 0
    for number in range(count):
        socks.append(connect(port, f"127.{net}.0.{1 + number // PER_ADDRESS}", context))
        answered += ask(socks[-1])
    sys.stdout.write(f"{answered}\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(f"{sum(map(ask, socks))}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
