"""The worker's servers: sockets outlive servers, and a closing queue loses nobody."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import cast

import uvloop

from edgefast.proxy.process.reserve import RESERVE
from edgefast.proxy.sockets.listeners import Seat
from edgefast.proxy.worker.acceptors import Acceptors, PortUse
from edgefast.proxy.worker.handshakes import Handshakes
from proxy.full import exhausted
from proxy.living import until


class Hello(asyncio.Protocol):
    """Says which port it was made for, and closes."""

    def __init__(self, port: int, made: list[int]) -> None:
        self._port = port
        made.append(port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(b"%d" % self._port)
        transport.close()


Talk = Callable[[Acceptors, Seat, list[int]], Awaitable[None]]


def accepting(talk: Talk) -> None:
    """Run a conversation with acceptors that have one socket, not served yet."""

    async def main() -> None:
        made: list[int] = []

        def factory(port: int, _: bool) -> Callable[[], Hello]:
            return lambda: Hello(port, made)

        acceptors = Acceptors(factory, Handshakes(factory, lambda: 0, lambda *_: None))
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
        await acceptors.reconcile({place[1]: PortUse(8080, None)})
        assert await waiting == b"8080"

    accepting(talk)


def test_another_use_of_a_port_keeps_its_queue() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        for port in range(1, 30):
            asking = [asyncio.ensure_future(hear(place)) for _ in range(5)]
            await acceptors.reconcile({place[1]: PortUse(port, None)})
            assert {int(answer) for answer in await asyncio.gather(*asking)} <= {port - 1, port}
        assert len(made) == 29 * 5

    accepting(talk)


def test_closing_answers_everybody_who_came_in_time() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        await acceptors.reconcile({place[1]: PortUse(80, None)})
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
        uses = {place[1]: PortUse(80, None)}
        await acceptors.reconcile(uses)
        closing = asyncio.ensure_future(acceptors.close([place]))
        await asyncio.sleep(0)
        again = socket.create_server(place[:2], reuse_port=True)
        acceptors.add(place, again.detach())
        await acceptors.reconcile(uses)
        await closing
        assert await hear(place) == b"80"

    accepting(talk)


def test_a_port_without_descriptors_is_served_later() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        uses = {place[1]: PortUse(80, None)}
        with exhausted():
            await acceptors.reconcile(uses)
            assert acceptors.starved.is_set()
        await acceptors.reconcile(uses)
        assert not acceptors.starved.is_set()
        assert await hear(place) == b"80"

    accepting(talk)


def test_a_full_process_opens_a_port_with_its_reserve() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        with exhausted():
            await acceptors.reconcile({place[1]: PortUse(80, None)})
            assert not acceptors.starved.is_set()
        assert await hear(place) == b"80"

    RESERVE.hold(4)
    try:
        accepting(talk)
    finally:
        RESERVE.hold(0)


def test_a_socket_that_replaces_another_is_served() -> None:
    async def talk(acceptors: Acceptors, place: Seat, made: list[int]) -> None:
        uses = {place[1]: PortUse(80, None)}
        await acceptors.reconcile(uses)
        again = socket.create_server(place[:2], reuse_port=True)
        acceptors.add(place, again.detach())
        await acceptors.reconcile(uses)
        assert await hear(place) == b"80"

    accepting(talk)
