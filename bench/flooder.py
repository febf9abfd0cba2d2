"""`python -m bench.flooder --port N --file F --seconds S [--rate R]`: one client of HTTP/1.1 who sends as fast as it is let.

In: a plain port of a proxy; a file of requests, each behind its length (4 bytes, big endian). Out: a line as it begins, and one JSON object: requests sent, and
answers by status, in that time. It sends what its sockets take, without waiting for answers (RFC 9112 9.3.2), or `rate` requests a second; a connection that is ended
begins anew. Must never run without an end, nor take the CPU from who is measured (SCHED_IDLE).
"""

import argparse
import json
import os
import re
import selectors
import socket
import struct
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ADDRESS = "127.0.0.3"
CONNECTIONS = 16
PIECE = 65_536
LATE = 0.05  # seconds of a rate that are made up for at most
_STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d) ")
_KEPT = 12  # bytes of a status line that may come in two pieces


def pack_requests(requests: Sequence[bytes]) -> bytes:
    """The file."""
    return b"".join(struct.pack(">I", len(one)) + one for one in requests)


def _unpack(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


class Link:
    """One of its connections."""

    def __init__(self, port: int, requests: Sequence[bytes], at: int) -> None:
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        self.sock.bind((ADDRESS, 0))
        self.sock.connect_ex(("127.0.0.1", port))
        self._requests = requests
        self._at = at
        self._rest = memoryview(b"")
        self._tail = b""

    def send(self, most: int) -> int:
        """Send what there is room for, so many requests at most; returns how many were begun. OSError: it is ended."""
        begun = 0
        while True:
            if not self._rest:
                if begun >= most:
                    return begun
                pieces, size = [], 0
                while begun < most and size < PIECE:
                    pieces.append(self._requests[self._at % len(self._requests)])
                    size += len(pieces[-1])
                    self._at += 1
                    begun += 1
                self._rest = memoryview(b"".join(pieces))
            try:
                self._rest = self._rest[self.sock.send(self._rest) :]
            except BlockingIOError:
                return begun

    @property
    def full(self) -> bool:
        """Its socket takes no more now."""
        return bool(self._rest)

    def drain(self, statuses: Counter[str]) -> bool:
        """Count what came; False at the end."""
        try:
            data = self.sock.recv(4 * PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        text = self._tail + data
        last = 0
        for found in _STATUS.finditer(text):
            statuses[found[1].decode()] += 1
            last = found.end()
        self._tail = text[max(last, len(text) - _KEPT) :]
        return bool(data)


def flood_for(
    port: int, requests: Sequence[bytes], seconds: float, rate: float
) -> dict[str, object]:
    """Go on until the time is over. rate 0: as fast as it is let."""
    sent, made, turn = 0, 0, 0
    statuses: Counter[str] = Counter()
    links: dict[int, Link] = {}
    begun = now = time.monotonic()
    end = begun + seconds
    with selectors.EpollSelector() as selector:

        def drop(link: Link) -> None:
            del links[link.sock.fileno()]
            with suppress(KeyError):
                selector.unregister(link.sock)
            link.sock.close()

        while (now := time.monotonic()) < end:
            while len(links) < CONNECTIONS:
                link = Link(port, requests, made * 7)
                links[link.sock.fileno()] = link
                made += 1
                events = (
                    selectors.EVENT_READ if rate else selectors.EVENT_READ | selectors.EVENT_WRITE
                )
                selector.register(link.sock, events)
            if rate:
                due = int((now - begun) * rate) - sent
                if due > rate * LATE:  # it was not let
                    begun += (due - rate * LATE) / rate
                    due = int(rate * LATE)
                ready = [one for one in links.values() if not one.full]
                for number in range(min(due, len(ready) * due)):
                    link = ready[(turn + number) % len(ready)]
                    try:
                        sent += link.send(1)
                    except OSError:
                        drop(link)
                        break
                turn += max(due, 0)
            for key, events in selector.select(min(0.5 / rate, 0.05) if rate else 0.05):
                link = links[key.fd]
                try:
                    if events & selectors.EVENT_WRITE:
                        sent += link.send(1 << 30 if not rate else 0)
                    alive = not events & selectors.EVENT_READ or link.drain(statuses)
                except OSError:
                    alive = False
                if not alive:
                    drop(link)
        for link in list(links.values()):
            drop(link)
    return {"sent": sent, "connections": made, "answers": dict(statuses)}


def main() -> None:
    """Flood, and say how often."""
    parser = argparse.ArgumentParser(prog="python -m bench.flooder", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="at most 60")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="requests/s; 0: as fast as it is let"
    )
    options = parser.parse_args()
    requests = _unpack(options.file.read_bytes())
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print("begun", flush=True)
    found = flood_for(options.port, requests, min(options.seconds, 60.0), options.rate)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
