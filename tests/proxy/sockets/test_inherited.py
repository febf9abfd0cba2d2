"""Sockets that were there before: taken as they are, told apart by what they are."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from edgefast import ir
from edgefast.httpd.address import EVERYWHERE, Address
from edgefast.proxy.sockets.inherited import Inherited, receive_sockets
from edgefast.proxy.sockets.listeners import Listeners
from wire.harness.ports import free_port


def listener(port: int) -> ir.Listener:
    return ir.Listener(name="default/gateway/http", port=port, bind_port=port, protocol="HTTP")


@pytest.fixture
def inherited() -> Iterator[Inherited]:
    made = Inherited()
    yield made
    made.close()


def group(port: int, count: int) -> list[int]:
    return [
        socket.create_server(("127.0.0.1", port), reuse_port=True).detach() for _ in range(count)
    ]


def test_what_is_no_listening_socket_is_closed(inherited: Inherited) -> None:
    ends = [one.detach() for one in socket.socketpair()]
    fresh = socket.socket()
    reading, writing = os.pipe()
    for descriptor in (*ends, fresh.detach(), reading, writing):
        assert not inherited.add("", descriptor)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    assert len(inherited) == 0


def test_the_same_socket_is_taken_once(inherited: Inherited) -> None:
    (one,) = group(free_port(), 1)
    assert inherited.add("", os.dup(one))
    assert not inherited.add("", one)
    assert len(inherited) == 1


def test_servers_are_found_by_their_address(inherited: Inherited) -> None:
    port = free_port()
    (one,) = group(port, 1)
    assert inherited.add("metrics", one)
    assert inherited.take_server(Address("127.0.0.1", port + 1)) is None
    assert inherited.take_server(Address(EVERYWHERE, port)) is None
    sock = inherited.take_server(Address("127.0.0.1", port))
    assert sock is not None and not os.get_inheritable(sock.fileno())
    sock.close()


@pytest.mark.parametrize(("had", "workers"), [(2, 2), (1, 3), (5, 2)])
def test_every_socket_has_a_worker_and_every_worker_a_socket(
    inherited: Inherited, had: int, workers: int
) -> None:
    port = free_port()
    before = group(port, had)
    inodes = {os.fstat(one).st_ino for one in before}
    for one in before:
        inherited.add("", one)
    made = Listeners(("127.0.0.1",), workers, inherited=inherited)
    assert made.reconcile([listener(port)]) == (("127.0.0.1", port),)
    seats = [made.sockets_of(worker) for worker in range(workers)]
    assert all(seats)
    found = [os.fstat(fd).st_ino for held in seats for _, fd, _ in held]
    assert inodes <= set(found) and len(found) == len(set(found)) == max(had, workers)
    assert len({seat for held in seats for seat, _, _ in held}) == len(found)
    made.close()


def test_a_queue_is_inherited_with_its_socket(inherited: Inherited) -> None:
    port = free_port()
    (one,) = group(port, 1)
    waiting = socket.create_connection(("127.0.0.1", port), 20)
    inherited.add("", one)
    made = Listeners(("127.0.0.1",), 1, inherited=inherited)
    made.reconcile([listener(port)])
    ((_, fd, _),) = made.sockets_of(0)
    with socket.socket(fileno=os.dup(fd)) as sock:
        sock.setblocking(True)
        accepted, address = sock.accept()
        assert address == waiting.getsockname()
        accepted.close()
    waiting.close()
    made.close()


def test_what_no_listener_asks_for_is_closed(inherited: Inherited) -> None:
    wanted, unwanted = free_port(), free_port()
    for port in (wanted, unwanted):
        inherited.add("", group(port, 1)[0])
    made = Listeners(("127.0.0.1",), 1, inherited=inherited)
    made.reconcile([])
    assert len(inherited) == 2, "no table yet"
    made.reconcile([listener(wanted)])
    assert made.places == (("127.0.0.1", wanted),) and not len(inherited)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", unwanted), 20)
    made.close()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LISTEN_FDS": "2"},
        {"LISTEN_FDS": "2", "LISTEN_PID": "1"},
        {"LISTEN_FDS": "-1", "LISTEN_PID": str(os.getpid())},
        {"LISTEN_FDS": "two", "LISTEN_PID": str(os.getpid())},
    ],
)
def test_what_is_meant_for_others_is_not_touched(environment: dict[str, str]) -> None:
    assert len(receive_sockets(environment)) == 0
    assert not environment, "and not told to children"
