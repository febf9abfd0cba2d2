"""Slow posters that come again and again from one address: uploads of everybody else pass, also those that are too large to be gathered."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import suppress

import pytest

from origin.recording import RecordingOrigin
from wire.harness.proc import descriptors
from wire.harness.scenes import objects_for
from wire.harness.site import Site

HEAD = b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000\r\n\r\n" + b"x" * 20_000
UPLOAD = b"u" * 3_000_000  # more than bodyBuffer
UPLOADS = 20
LOT = 50  # posters that come again at once


class Posters:
    """Connections that begin an upload and send no more of it; the oldest goes when `most` are there.

    They come again as fast as the proxy takes them: the next lot when a request behind the last one was answered. More would
    measure the machine, which may be a slow one with a slow build, by its queue of new connections.
    """

    def __init__(self, site: Site, most: int) -> None:
        self.made = 0
        self._site, self._most = site, most
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
        while not self._end.is_set():
            for _ in range(LOT):
                self._begin()
                if len(self._open) > self._most:
                    self._open.popleft().close()
            with self._site.client(source="127.0.0.3") as client:
                assert client.request("GET", "/behind").status == 200

    def _begin(self) -> None:
        self.made += 1
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", self._site.port))
            self._open.append(one)
            one.setblocking(False)
            one.send(HEAD)


@pytest.mark.heavy
def test_uploads_pass_among_posters_that_come_again() -> None:
    most = 3000
    with RecordingOrigin() as origin, descriptors(most * 2 + 500):
        objects = objects_for(origin.port, timeouts={"request": "300s"})
        with Site(objects) as site, Posters(site, most) as posters:
            site.wait_until(
                lambda: (
                    posters.made > most
                    and site.metric("edgefast_pending_refused_total")
                    + site.metric("edgefast_bodies_gave_way_total")
                    > 0
                ),
                "a crowd",
                60,
            )
            before = posters.made
            for number in range(UPLOADS):
                with site.client(source="127.0.0.2") as client:
                    answer = client.request("POST", "/large", body=UPLOAD)
                    assert answer.status == 200, number
                with site.client() as client:
                    assert client.request("GET", "/").status == 200, number
            assert posters.made > before + LOT * UPLOADS // 4, "they came again all the time"
