"""Sockets that were there before: taken as they are, told apart by what they are."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import msgspec
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


@pytest.mark.parametrize(("host", "only"), [("0.0.0.0", 0), ("::", 0), ("::", 1)])
def test_an_address_is_bound_beside_an_inherited_socket_of_all_addresses(
    inherited: Inherited, host: str, only: int
) -> None:
    """A service manager, or a predecessor, still has the inherited one open."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as kept:
        if family == socket.AF_INET6:
            kept.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        kept.bind((host, 0))
        kept.listen()
        inherited.add("", os.dup(kept.fileno()))
        port, at = kept.getsockname()[1], "::1" if only else "127.0.0.1"
        made = Listeners((host,), 2, inherited=inherited)
        try:
            one = msgspec.structs.replace(listener(port), addresses=(at,))
            assert made.reconcile([one]) == ((at, port),), made.problems
            assert not len(inherited)
        finally:
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
