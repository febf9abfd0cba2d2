"""The worker's servers: sockets outlive servers, and a closing queue loses nobody."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable

import uvloop

from edgefast.proxy.sockets.bind_address import Seat
from edgefast.proxy.worker.acceptors import Acceptors, PortUse
from proxy.full import exhausted
from proxy.living import until


class Greeter:
    """Accepts as the engine does, says which port it was made for, and closes."""

    def __init__(self, fd: int, port: int, made: list[int]) -> None:
        assert not os.get_blocking(fd)
        self._sock = socket.socket(fileno=fd)
        self._sock.setblocking(False)
        self._port = port
        self._made = made
        asyncio.get_running_loop().add_reader(fd, self.take, 32)

    def take(self, most: int) -> int:
        """See acceptors.Accepting."""
        for taken in range(most):
            try:
                connection, _ = self._sock.accept()
            except BlockingIOError:
                return taken
            with connection:
                self._made.append(self._port)
                connection.send(b"%d" % self._port)
        return most

    def stop(self) -> int:
        """See acceptors.Accepting."""
        asyncio.get_running_loop().remove_reader(self._sock.detach())
        return 0

    def retire(self) -> int:
        """See acceptors.Accepting."""
        return self.stop()


Talk = Callable[[Acceptors, Seat, list[int]], Awaitable[None]]


def accepting(talk: Talk, *shortage: OSError) -> None:
    """Run a conversation with acceptors that have one socket, not served yet."""
    shortages = list(shortage)

    async def main() -> None:
        made: list[int] = []

        def listen(fd: int, port: int, choose: object, addresses: tuple[str, ...] = ()) -> Greeter:
            if shortages:
                raise shortages.pop()
            return Greeter(fd, port, made)

        def listen_stream(fd: int, port: int, addresses: tuple[str, ...]) -> Greeter:
            return listen(fd, -port, None)

        acceptors = Acceptors(listen, listen_stream, listen_stream)
        sock = socket.create_server(("127.0.0.1", 0), reuse_port=True, backlog=200)
        place = (*sock.getsockname(), 0)
        acceptors.add(place, sock.detach())
        try:
            await asyncio.wait_for(talk(acceptors, place, made), 90)
        finally:
            await acceptors.close_all()

    uvloop.run(main())


async def hear(place: Seat) -> bytes:
    reader, writer = await asyncio.open_connection(*place[:2])
    try:
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


def test_a_socket_waits_for_its_table() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        waiting = asyncio.ensure_future(hear(place))
        await acceptors.reconcile({})
        await asyncio.sleep(0)
        assert made == []
        await acceptors.reconcile({(place[1], ""): PortUse(8080, None)})
        assert await waiting == b"8080"

    accepting(talk)


def test_connections_of_a_tcp_listener_are_passed_on() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        await acceptors.reconcile({(place[1], ""): PortUse(5432, None, "TCP")})
        assert await hear(place) == b"-5432"

    accepting(talk)


def test_another_use_of_a_port_keeps_its_queue() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        for port in range(1, 30):
            asking = [asyncio.ensure_future(hear(place)) for _ in range(5)]
            await acceptors.reconcile({(place[1], ""): PortUse(port, None)})
            assert {int(answer) for answer in await asyncio.gather(*asking)} <= {port - 1, port}
        assert len(made) == 29 * 5

    accepting(talk)


def test_closing_answers_everybody_who_came_in_time() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        await acceptors.reconcile({(place[1], ""): PortUse(80, None)})
        answers: list[bytes] = []

        async def load() -> None:
            while True:
                try:
                    answers.append(await hear(place))
                except ConnectionRefusedError:
                    return

        loads = [asyncio.ensure_future(load()) for _ in range(16)]
        await until(lambda: len(answers) > 100, "load")
        await acceptors.close([place])
        await asyncio.gather(*loads)
        assert set(answers) == {b"80"}
        assert len(made) == len(answers)

    accepting(talk)


def test_a_place_that_comes_back_while_it_closes() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        uses = {(place[1], ""): PortUse(80, None)}
        await acceptors.reconcile(uses)
        closing = asyncio.ensure_future(acceptors.close([place]))
        await asyncio.sleep(0)
        again = socket.create_server(place[:2], reuse_port=True)
        acceptors.add(place, again.detach())
        await acceptors.reconcile(uses)
        await closing
        assert await hear(place) == b"80"

    accepting(talk)


def test_a_port_without_memory_is_served_later() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        uses = {(place[1], ""): PortUse(80, None)}
        await acceptors.reconcile(uses)
        assert acceptors.starved.is_set()
        await acceptors.reconcile(uses)
        assert not acceptors.starved.is_set()
        assert await hear(place) == b"80"

    accepting(talk, OSError(errno.ENOMEM, "no memory to watch it"))


def test_a_port_needs_no_descriptor_of_a_full_process() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        with exhausted():
            await acceptors.reconcile({(place[1], ""): PortUse(80, None)})
            assert not acceptors.starved.is_set()
        assert await hear(place) == b"80"

    accepting(talk)


def test_a_socket_that_replaces_another_is_served() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        uses = {(place[1], ""): PortUse(80, None)}
        await acceptors.reconcile(uses)
        again = socket.create_server(place[:2], reuse_port=True)
        acceptors.add(place, again.detach())
        await acceptors.reconcile(uses)
        assert await hear(place) == b"80"

    accepting(talk)


def test_a_port_turns_from_http_to_https_and_back() -> None:
    """The queue is the socket's: nobody who waits in it is lost."""

    def choose(name: str) -> None:
        raise AssertionError(name)

    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        for port, chooser in ((80, None), (443, choose), (80, None)):
            asking = [asyncio.ensure_future(hear(place)) for _ in range(5)]
            await acceptors.reconcile({(place[1], ""): PortUse(port, chooser)})
            assert await hear(place) == b"%d" % port
            await asyncio.gather(*asking)

    accepting(talk)
