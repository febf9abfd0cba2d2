"""Connections of the small HTTP server: idle connections wait for their clients without a task.

In: sockets from the acceptor and the request handler.
Out: a task for each connection that received a complete request head or can no longer receive one.
The task ends with the answer, and the connection becomes idle again. Many silent or slow clients
(one byte per second) therefore cost descriptors and little else, and do not delay other requests.
Every wait has a deadline.
Must never: wait for a client in a task, or leave a socket open that the connection limit does not
count.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Coroutine

from edgefast.httpd.connection_limit import ConnectionLimit
from edgefast.httpd.message import CHUNK, HEAD

__all__ = ["ClientConnection", "Connections"]

#: Seconds until a connection's next request begins, and for the whole of one, whatever its client does.
KEPT = 10.0
READ_DEADLINE = 5.0
#: Seconds between an answer and the next request of its connection, for each connection there is: together they ask a
#: thousand times a second at most, and whoever comes to ask once is answered in between.
_PACE = 0.001

_END = re.compile(rb"\n\r?\n")
#: What no request begins with: TLS, control bytes. It is refused at once.
_VISIBLE = 0x21


class ClientConnection:
    """A connection: what has come of its next request, and until when all of it has to be here, by the loop's clock."""

    __slots__ = ("answered", "data", "ended", "lost", "sock", "task", "timer", "until", "watched")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.data = bytearray()
        self.until = 0.0
        self.answered = 0  # requests
        self.watched = False
        self.lost = False  # it is to end
        self.ended = False
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[bool] | None = None

    def take(self, data: bytes) -> bool:
        """Add what has come; returns whether there is enough to look at: a whole head, or what will never be one."""
        seen = max(0, len(self.data) - 2)
        self.data += data
        return bool(self.data) and (
            self.data[0] < _VISIBLE
            or len(self.data) >= HEAD
            or _END.search(self.data, seen) is not None
        )


class Connections:
    """Holds idle connections of a small HTTP server and starts a task for each complete request."""

    def __init__(
        self,
        places: ConnectionLimit[ClientConnection],
        answer: Callable[[ClientConnection], Coroutine[None, None, bool]],
        on_left: Callable[[], None],
    ) -> None:
        """`answer`: answers one request; returns whether the client may send another one. Never raises.

        `on_left`: called after a socket was closed.
        """
        self._places = places
        self._answer = answer
        self._on_left = on_left
        self._closed = False

    def open(self, tasks: asyncio.TaskGroup) -> None:
        """Have `tasks` for those who ask."""
        self._loop = asyncio.get_running_loop()
        self._tasks = tasks

    def close(self) -> None:
        """Begin no more answers, now that their tasks end: who asks goes."""
        self._closed = True

    def enter(self, sock: socket.socket) -> None:
        """Add a connection; close the one that was idle for the longest time if the limit is reached."""
        client = ClientConnection(sock)
        self._expect(client, READ_DEADLINE)
        if (gone := self._places.enter(client)) is not None:
            self._end(gone)
        if not client.ended:
            self._look(client)

    def give_up(self) -> bool:
        """Let the one go who has waited the longest; returns whether there was one."""
        gone = self._places.give_up()
        if gone is not None:
            self._end(gone)
        return gone is not None

    # --- between requests -----------------------------------------------------------------------

    def _look(self, client: ClientConnection) -> None:
        """Read the available bytes at once, so that an immediate request does not wait for a loop iteration."""
        try:
            data = client.sock.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            self._watch(client)
            return
        except OSError:
            self._end(client)
            return
        if not data and not client.data:
            self._end(client)
            return
        if client.answered and not client.data:
            self._expect(client, READ_DEADLINE)
        if client.take(data) or not data:
            self._begin(client)
        else:
            self._watch(client)

    def _watch(self, client: ClientConnection) -> None:
        if not client.watched:
            client.watched = True
            self._loop.add_reader(client.sock, self._look, client)

    def _expect(self, client: ClientConnection, seconds: float) -> None:
        """Have it go when there is no whole request in time."""
        self._let_be(client)
        client.until = self._loop.time() + seconds
        client.timer = self._loop.call_at(client.until, self._end, client)

    def _let_be(self, client: ClientConnection) -> None:
        if client.timer is not None:
            client.timer.cancel()
            client.timer = None

    def _end(self, client: ClientConnection) -> None:
        if client.task is not None:
            client.lost = True
            client.task.cancel()  # and then this again
        elif not client.ended:
            client.ended = True
            self._let_be(client)
            if client.watched:
                self._loop.remove_reader(client.sock)
            client.sock.close()
            self._places.leave(client)
            self._on_left()

    # --- requests -------------------------------------------------------------------------------

    def _begin(self, client: ClientConnection) -> None:
        self._let_be(client)
        if client.watched:
            client.watched = False
            self._loop.remove_reader(client.sock)
        if self._closed:
            self._end(client)
            return
        client.task = self._tasks.create_task(self._answer(client))
        client.task.add_done_callback(lambda task: self._on_answered(client, task))

    def _on_answered(self, client: ClientConnection, task: asyncio.Task[bool]) -> None:
        client.task = None
        if client.lost or task.cancelled() or task.exception() is not None or not task.result():
            self._end(client)
            return
        self._places.wait(client)
        client.timer = self._loop.call_later(_PACE * len(self._places), self._go_on, client)

    def _go_on(self, client: ClientConnection) -> None:
        piped = bytes(client.data)
        client.data.clear()
        self._expect(client, READ_DEADLINE if piped else KEPT)
        if client.take(piped):
            self._begin(client)
        else:
            self._look(client)
