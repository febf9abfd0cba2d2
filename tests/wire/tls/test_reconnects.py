"""10,000 connections that resume sessions while the certificate is another one every 100 ms: all are answered, nothing grows.

Minutes long: `make heavy`.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from dataclasses import dataclass, field

import pytest

from origin.recording import RecordingOrigin
from wire.harness import proc
from wire.tls.port import NAME, TlsPort

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

CLIENTS = 4
RECONNECTS = int(os.environ.get("EDGEFAST_TLS_RECONNECTS", "10000"))
PACE = 0.1  # seconds between two certificates
GROWTH = 16 << 20  # bytes from a third of the way to the end
REQUEST = f"GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode()


@dataclass
class Seen:
    """What the clients saw."""

    done: int = 0
    resumed: int = 0
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def reconnect(port: TlsPort, seen: Seen, count: int) -> None:
    """One client: each connection offers the session of the one before."""
    context = port.context()
    session: ssl.SSLSession | None = None
    for _ in range(count):
        try:
            raw = socket.create_connection(("127.0.0.1", port.port), 30)
            with context.wrap_socket(raw, server_hostname=NAME, session=session) as sock:
                sock.sendall(REQUEST)
                answer = b""
                while data := sock.recv(4096):
                    answer += data
                good, resumed = answer.startswith(b"HTTP/1.1 200 "), bool(sock.session_reused)
                session = sock.session
        except OSError as error:
            good, resumed, answer = False, False, repr(error).encode()
        with seen.lock:
            seen.done += 1
            seen.resumed += resumed
            if not good:
                seen.failures.append(answer[:100].decode("latin-1"))


def test_reconnects_under_swaps() -> None:
    with RecordingOrigin() as origin, TlsPort(origin) as port:
        seen, over = Seen(), threading.Event()
        pairs = [port.authority.issue([NAME]) for _ in range(50)]
        swaps = 0

        def swap() -> None:
            nonlocal swaps
            while not over.wait(PACE):
                port.pair = pairs[swaps % len(pairs)]
                port.write(port.build())
                swaps += 1

        (worker,) = port.worker_pids
        swapper = threading.Thread(target=swap)
        swapper.start()
        try:
            sizes = []
            for part in (RECONNECTS // 3, RECONNECTS - RECONNECTS // 3):
                clients = [
                    threading.Thread(target=reconnect, args=(port, seen, part // CLIENTS))
                    for _ in range(CLIENTS)
                ]
                for client in clients:
                    client.start()
                for client in clients:
                    client.join()
                sizes.append(proc.resident_bytes(worker))
        finally:
            over.set()
            swapper.join()
        assert not seen.failures, seen.failures[:5]
        assert swaps > 10
        assert seen.resumed >= seen.done * 0.9, f"{seen.resumed} of {seen.done}"
        assert sizes[1] - sizes[0] <= GROWTH, [size >> 20 for size in sizes]
        port.apply(port.build())
        assert port.ask() == 200
