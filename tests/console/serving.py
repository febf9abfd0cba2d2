"""A console behind a real server on loopback, in a thread of its own: for browsers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from edgefast.httpd.address import Address
from edgefast.httpd.server import Handler, HttpServer, bind_server

Routes = Mapping[tuple[str, str], Handler]


@contextmanager
def serving(make: Callable[[], Routes]) -> Iterator[str]:
    """Serve; gives the URL of the page."""
    sock = bind_server(Address("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/console/"
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def main() -> None:
        server = asyncio.create_task(HttpServer(sock, make()).run())
        await ended.wait()
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()
