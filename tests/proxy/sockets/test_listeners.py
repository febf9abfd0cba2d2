"""Listening sockets: groups, probes, and what is said about addresses that cannot be had."""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from edgefast import ir
from edgefast.proxy.sockets import listeners as module
from edgefast.proxy.sockets.listeners import Listeners, place_listener
from wire.harness.ports import free_port


def listener(port: int, name: str = "default/gateway/http", *addresses: str) -> ir.Listener:
    return ir.Listener(name=name, port=port, bind_port=port, protocol="HTTP", addresses=addresses)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def owned() -> Iterator[list[Listeners]]:
    made: list[Listeners] = []
    yield made
    for one in made:
        one.close()


def make(owned: list[Listeners], *binds: str, workers: int = 2, required: bool = True) -> Listeners:
    owned.append(Listeners(binds or ("127.0.0.1",), workers, required=required))
    return owned[-1]


def test_every_worker_has_a_socket_of_its_own(owned: list[Listeners], port: int) -> None:
    made = make(owned, "127.0.0.1", "::1", workers=3)
    assert made.reconcile([listener(port)]) == (("127.0.0.1", port), ("::1", port))
    assert not made.problems
    descriptors = set()
    for worker in range(3):
        for (host, number, _), fd, _ in made.sockets_of(worker):
            sock = socket.socket(fileno=fd)
            assert sock.getsockname()[:2] == (host, number)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            assert not sock.get_inheritable()
            descriptors.add(sock.detach())
    assert len(descriptors) == 6


def test_both_families_share_a_port(owned: list[Listeners], port: int) -> None:
    made = make(owned, "0.0.0.0", "::")
    made.reconcile([listener(port)])
    assert not made.problems
    for host in ("127.0.0.1", "::1"):
        socket.create_connection((host, port), timeout=10).close()


def test_ports_come_and_go(owned: list[Listeners], port: int) -> None:
    made = make(owned)
    other = free_port()
    made.reconcile([listener(port)])
    first = made.sockets_of(0)
    rebound = made.reconcile([listener(port), listener(other, "default/gateway/b")])
    assert rebound == (("127.0.0.1", other),)
    assert made.sockets_of(0)[:1] == first
    rebound = made.reconcile([listener(other, "default/gateway/b")])
    assert rebound == ()
    assert made.places == (("127.0.0.1", other),)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
    made.reconcile([listener(port)])
    assert made.sockets_of(0)[0][2] != first[0][2]


def test_a_taken_port_is_a_problem_of_its_listener_only(owned: list[Listeners], port: int) -> None:
    made = make(owned)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        made.reconcile([listener(port), listener(taken, "shop/public/https")])
        assert made.places == (("127.0.0.1", port),)
        (problem,) = made.problems.values()
        text = problem.text()
        assert "Gateway shop/public" in text
        assert "name=https" in text
        assert f"127.0.0.1:{taken} is in use" in text
        assert "ss -ltnp" in text
    # SO_REUSEADDR: the port is free at once
    assert made.reconcile([listener(taken)]) == (("127.0.0.1", taken),)
    assert not made.problems


def test_a_second_group_cannot_join_silently(owned: list[Listeners], port: int) -> None:
    """Without the probe, SO_REUSEPORT would let the second one in."""
    make(owned).reconcile([listener(port)])
    second = make(owned)
    second.reconcile([listener(port)])
    assert second.places == ()
    assert "in use" in second.problems["127.0.0.1", port].message


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("moment", ["bind", "listen"])
def test_of_two_that_start_together_one_gets_the_port(
    owned: list[Listeners], monkeypatch: pytest.MonkeyPatch, port: int, moment: str, workers: int
) -> None:
    """The second one binds, all of it, at each moment of the first one's way."""
    first, second = make(owned, workers=workers), make(owned, workers=workers)
    real = getattr(socket.socket, moment)
    calls: list[str] = []

    def step(sock: socket.socket, *arguments: Any) -> Any:
        calls.append(moment)
        if len(calls) == 1:
            second.reconcile([listener(port)])  # just before
        result = real(sock, *arguments)
        if len(calls) == workers + 1:
            second.reconcile([listener(port)])  # just after, too
        return result

    monkeypatch.setattr(socket.socket, moment, step)
    first.reconcile([listener(port)])
    assert sorted(len(one.places) for one in (first, second)) == [0, 1]
    (loser,) = (one for one in (first, second) if not one.places)
    assert "in use" in loser.problems["127.0.0.1", port].message


def test_all_sockets_of_a_group_get_connections(owned: list[Listeners], port: int) -> None:
    """Also the first one, which was not shared when it began to listen."""
    made = make(owned, workers=3)
    made.reconcile([listener(port)])
    clients = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(120)]
    for worker in range(3):
        ((_, fd, _),) = made.sockets_of(worker)
        assert select.select([fd], [], [], 10)[0] == [fd]
    for client in clients:
        client.close()


def test_a_place_that_workers_still_close_is_not_called_another_process(
    owned: list[Listeners], port: int
) -> None:
    made = make(owned)
    made.reconcile([listener(port)])
    ((_, fd, _),) = made.sockets_of(0)
    with socket.socket(fileno=os.dup(fd)):  # a worker's copy, while it empties its queue
        made.reconcile([])
        made.reconcile([listener(port)])
        (problem,) = made.problems.values()
        assert "the previous workers are still closing" in problem.text()
    assert made.reconcile([listener(port)]) == (("127.0.0.1", port),)


def test_a_port_moves_between_all_addresses_and_some(owned: list[Listeners], port: int) -> None:
    """Workers have copies of the old sockets for a while; the new ones are bound meanwhile."""
    made = make(owned, "0.0.0.0")
    copies: list[socket.socket] = []
    for addresses in ((), ("127.0.0.1", "127.0.0.2"), ()):
        made.reconcile([listener(port, "default/gateway/http", *addresses)])
        assert not made.problems
        assert made.places == tuple((one, port) for one in addresses or ("0.0.0.0",))
        copies += [socket.socket(fileno=os.dup(fd)) for _, fd, _ in made.sockets_of(0)]
    for one in copies:
        one.close()


def test_an_address_of_another_machine(owned: list[Listeners], port: int) -> None:
    made = make(owned, "192.0.2.1")
    made.reconcile([listener(port)])
    assert "not an address of this machine" in made.problems["192.0.2.1", port].message


@pytest.mark.parametrize(
    ("number", "part"),
    [
        (errno.EACCES, "CAP_NET_BIND_SERVICE"),
        (errno.EMFILE, "LimitNOFILE"),
        (errno.ENOBUFS, "No buffer space"),
    ],
)
def test_other_errors_say_what_to_do(
    owned: list[Listeners], monkeypatch: pytest.MonkeyPatch, number: int, part: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(module, "_bind_group", fail)
    made = make(owned)
    made.reconcile([listener(80)])
    assert part in made.problems["127.0.0.1", 80].text()


@pytest.mark.parametrize("required", [True, False])
def test_a_machine_without_ipv6(
    owned: list[Listeners], monkeypatch: pytest.MonkeyPatch, port: int, required: bool
) -> None:
    """By default the family that is missing is left out; asked for by --bind it is a problem."""
    bind = module._bind_group

    def without(place: module.Place, workers: int, *, shared: bool) -> tuple[socket.socket, ...]:
        if ":" in place[0]:
            raise OSError(errno.EAFNOSUPPORT, "no IPv6")
        return bind(place, workers, shared=shared)

    monkeypatch.setattr(module, "_bind_group", without)
    made = make(owned, "0.0.0.0", "::", required=required)
    made.reconcile([listener(port)])
    assert made.places == (("0.0.0.0", port),)
    assert bool(made.problems) is required


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("default/gateway/http", "Gateway default/gateway"),
        ("default/gateway/team/more/http", "ListenerSet team/more"),
    ],
)
def test_listeners_are_placed_in_the_object_they_are_of(name: str, ref: str) -> None:
    found, path = place_listener(name)
    assert (str(found), path) == (ref, "spec.listeners[name=http]")
