"""Slow posters that come again and again from one address: uploads of everybody else pass, also those that are too large to be gathered."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from contextlib import suppress

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.proc import descriptors
from wire.harness.site import Site

HEAD = b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000\r\n\r\n" + b"x" * 20_000
UPLOAD = b"u" * 3_000_000  # more than bodyBuffer
UPLOADS = 20


class Posters:
    """Connections that begin an upload and send no more of it; the oldest goes when `most` are there."""

    def __init__(self, port: int, most: int, rate: int) -> None:
        self.made = 0
        self._port, self._most, self._rate = port, most, rate
        self._open: deque[socket.socket] = deque()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="posters")

    def __enter__(self) -> Posters:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        for one in self._open:
            one.close()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._end.is_set():
            ahead = self.made / self._rate - (time.monotonic() - began)
            if ahead > 0:
                self._end.wait(ahead)
            self._begin()
            if len(self._open) > self._most:
                self._open.popleft().close()

    def _begin(self) -> None:
        self.made += 1
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", self._port))
            self._open.append(one)
            one.setblocking(False)
            one.send(HEAD)


@pytest.mark.parametrize(
    ("most", "rate"), [(2500, 2500), pytest.param(3000, 3000, marks=pytest.mark.heavy)]
)
def test_uploads_pass_among_posters_that_come_again(most: int, rate: int) -> None:
    with RecordingOrigin() as origin, descriptors(most * 2 + 500):
        objects = [
            make.route("all", [make.rule("origin", timeouts={"request": "300s"})]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        with Site(objects) as site, Posters(site.port, most, rate) as posters:
            site.wait_until(
                lambda: (
                    posters.made > most
                    and site.metric("edgefast_pending_refused_total")
                    + site.metric("edgefast_bodies_gave_way_total")
                    > 0
                ),
                "a crowd",
            )
            for number in range(UPLOADS):
                with site.client(source="127.0.0.2") as client:
                    answer = client.request("POST", "/large", body=UPLOAD)
                    assert answer.status == 200, number
                with site.client() as client:
                    assert client.request("GET", "/").status == 200, number
