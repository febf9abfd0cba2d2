"""A client as those of Java are: a connection with many streams, kept until it is told to go, and nothing asked twice unless it was told that
nothing had been done for it.

In: a port, what to ask and what is right. Out: `Tally`: what was served, what was asked again because GOAWAY or REFUSED_STREAM allowed it,
and every failure in words. Must never: hide a lost request behind one that was sent again.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from wire.http2.client import H2Client

MOST = 2**31 - 1
REFUSED = 7
DEPTH = 8  # streams at a time


@dataclass
class Tally:
    """What clients have seen; shared by several."""

    good: int = 0
    again: int = 0
    connections: int = 0
    ended: int = 0  # connections, by GOAWAY
    failures: list[str] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)  # client's port -> streams without a word
    marks: set[bytes] = field(default_factory=set)  # values of Location, or of what is asked about
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, kw_only=True)
class Wants:
    """What every request is, and what is right."""

    port: int
    name: str = "a"
    tls: Callable[[], ssl.SSLContext] | None = None
    method: str = "GET"
    path: str = "/"
    body: bytes = b""
    status: int = 200
    mark: bytes = b"location"  # a field whose values are gathered
    hasty: bool = (
        False  # opens streams until the last GOAWAY, as one does that has not read the first yet
    )
    may_refuse: bool = False  # there is a time at which nobody listens


class Keeper(threading.Thread):
    """One such client; `over` is set when it shall finish what it has begun."""

    def __init__(self, wants: Wants, tally: Tally, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.wants, self.tally, self.over = wants, tally, over
        self._tls = wants.tls() if wants.tls else None
        self._refused = False  # a stream of this connection

    def run(self) -> None:
        """Keep connections one after the other."""
        while not self.over.is_set():
            try:
                self._keep()
            except ConnectionRefusedError as error:
                if not self.wants.may_refuse:
                    self._fail(repr(error))
                self.over.wait(0.01)
            except Exception as error:
                self._fail(repr(error))

    def _fail(self, why: str) -> None:
        with self.tally.lock:
            self.tally.failures.append(why)

    def _keep(self) -> None:
        wants = self.wants
        with H2Client(
            wants.port, tls=self._tls, sni=wants.name if self._tls else None
        ) as connection:
            local = int(connection.socket.getsockname()[1])
            with self.tally.lock:
                self.tally.connections += 1
            under_way: set[int] = set()
            self._refused = False
            while not connection.gone:
                if not self._leaves(connection):
                    while len(under_way) < DEPTH:
                        under_way.add(self._ask(connection))
                elif not under_way:
                    break
                connection.read_some()
                self._look(connection, under_way)
            # A connection that waits in the queue of a socket when it closes is refused too.
            if under_way and (connection.heard or not wants.may_refuse):
                with self.tally.lock:
                    self.tally.lost[local] = len(under_way)
            if connection.goaways:
                self._end(connection)

    def _leaves(self, connection: H2Client) -> bool:
        told = connection.goaways
        if told and not (self.wants.hasty and told[-1][1] == MOST and not self._refused):
            return True
        return self.over.is_set()

    def _ask(self, connection: H2Client) -> int:
        wants = self.wants
        number = connection.ask(
            method=wants.method, path=wants.path, authority=wants.name, end=not wants.body
        )
        if wants.body:
            connection.body(number, wants.body)
        return number

    def _look(self, connection: H2Client, under_way: set[int]) -> None:
        """What has become of the streams."""
        wants, tally = self.wants, self.tally
        last = min((last for _, last in connection.goaways), default=MOST)
        for number in sorted(under_way):
            stream = connection.streams[number]
            if stream.ended or stream.reset == 0:
                with tally.lock:
                    if stream.status == wants.status:
                        tally.good += 1
                        tally.marks.add(stream.value(wants.mark) or b"")
                    else:
                        tally.failures.append(f"status {stream.status} on stream {number}")
            elif stream.reset == REFUSED or number > last:
                self._refused = True
                with tally.lock:
                    tally.again += 1
            elif stream.reset is not None:
                self._fail(f"stream {number}: reset {stream.reset}, told {connection.goaways}")
            else:
                continue
            under_way.discard(number)
            del connection.streams[number]

    def _end(self, connection: H2Client) -> None:
        """The last word: GOAWAY without a fault, the first one without a last stream."""
        if not self.over.is_set():
            connection.read_to_end()
        with self.tally.lock:
            self.tally.ended += 1
            codes = {code for code, _ in connection.goaways}
            if codes != {0} or connection.goaways[0][1] != MOST:
                self.tally.failures.append(f"told to go by {connection.goaways}")


class Keepers:
    """Several of them while a `with` lasts."""

    def __init__(self, *wants: Wants) -> None:
        self.tally = Tally()
        self._over = threading.Event()
        self._threads = [Keeper(one, self.tally, self._over) for one in wants]

    def __enter__(self) -> Tally:
        for one in self._threads:
            one.start()
        return self.tally

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in self._threads:
            one.join(60)
            assert not one.is_alive(), "a client hangs"
