"""Accepting: fair between queues, well-behaved without descriptors, and nobody who waits is lost."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.net.stage import Stage, driver


@contextmanager
def full() -> Iterator[None]:
    """No descriptor left while the loop runs, which takes two when it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 3, hard))
    held = []
    try:
        while True:
            try:
                held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        for _ in range(2):
            os.close(held.pop())
        yield
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_burst_in_one_queue_keeps_no_other_waiting(stage: Stage) -> None:
    order: list[int] = []

    def serve(number: int) -> object:
        return lambda peer: order.append(number) or driver.Probe()

    socks = [stage.listener() for _ in range(3)]
    for _ in range(300):
        stage.peer(socks[0])
    for sock in socks[1:]:
        for _ in range(3):
            stage.peer(sock)
    listening = [stage.accept(sock, serve(i)) for i, sock in enumerate(socks)]
    stage.until(lambda: sum(one.accepted for one in listening) == 306)
    for number in (1, 2):
        assert [i for i, one in enumerate(order) if one == number][-1] < 2 * driver.BURST + 6
    first = stage.count("turns")
    assert first >= 300 // driver.BURST


def test_established_connections_are_served_between_bursts(stage: Stage) -> None:
    peer, probe = stage.pair()
    sock = stage.listener()
    for _ in range(10 * driver.BURST):
        stage.peer(sock)
    listening = stage.accept(sock)
    seen: list[int] = []
    probe.react["bytes"] = lambda _: seen.append(listening.accepted)
    peer.send(b"x")
    stage.until(lambda: listening.accepted == 10 * driver.BURST)
    assert seen and seen[0] <= 2 * driver.BURST


def test_a_queue_is_read_in_every_turn_while_somebody_waits_in_it(stage: Stage) -> None:
    """Not once while everybody who has something to say has a turn: a crowd would wait there, and whoever comes, behind it."""
    sock = stage.listener()
    listening = stage.accept(sock)
    busy = [stage.peer(sock) for _ in range(12 * driver.LOOK)]
    stage.until(lambda: listening.accepted == len(busy))
    served = 0

    def work(peer: socket.socket) -> None:
        nonlocal served
        served += 1
        time.sleep(driver.NANOSECONDS / 1e9 / driver.LOOK)
        if listening.accepted < len(busy) + len(crowd):
            peer.send(b"x")  # it goes on

    crowd = [stage.peer(sock) for _ in range(10 * driver.BURST)]
    for peer, probe in zip(busy, listening.sessions, strict=True):
        probe.react["bytes"] = lambda _, peer=peer: work(peer)
        peer.send(b"x")
    stage.until(lambda: listening.accepted == len(busy) + len(crowd))
    assert served < 3 * len(busy), "ten bursts, and not as many rounds of all others"


def test_who_waits_is_turned_away_when_descriptors_run_out(stage: Stage) -> None:
    sock = stage.listener()
    served = stage.peer(sock)
    listening = stage.accept(sock, lambda _: driver.Echo())
    stage.until(lambda: listening.accepted == 1)
    waiting = [stage.own(socket.socket()) for _ in range(100)]
    with full():
        for one in waiting:
            one.connect(sock.getsockname())
            one.setblocking(False)
        for one in waiting:
            assert stage.drain(one) == b""  # at once, not when it has waited for long
        stage.write(served, b"still served")
        assert stage.read(served, 12) == b"still served"
        assert listening.turned_away == 100
        assert stage.net.has_spare
    late = stage.peer(sock)
    stage.write(late, b"served again")
    assert stage.read(late, 12) == b"served again"
    assert listening.accepted == 2


def test_without_even_a_spare_one_the_queue_rests(stage: Stage) -> None:
    sock = stage.listener()
    listening = stage.accept(sock, lambda _: driver.Echo())
    peer = stage.own(socket.socket())
    stage.net.lose_spare()
    with full():
        peer.connect(sock.getsockname())
        stage.turns(100)
        turns = stage.count("turns")
        stage.turns(100)
        assert stage.count("turns") - turns <= 2  # nothing spins
        assert (listening.accepted, listening.turned_away) == (0, 0)
    peer.setblocking(False)
    stage.write(peer, b"x")
    assert stage.read(peer, 1) == b"x"  # it waited, and was not lost


def test_a_connection_may_be_refused(stage: Stage) -> None:
    sock = stage.listener()
    stage.accept(sock, lambda peer: None)
    assert stage.drain(stage.peer(sock)) == b""


def test_a_fault_costs_the_connection_it_was_about(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    faults = [RuntimeError("nobody may come in")]

    def serve(peer: object) -> object:
        if faults:
            raise faults.pop()
        return driver.Echo()

    sock = stage.listener()
    peers = [stage.peer(sock) for _ in range(3)]
    listening = stage.accept(sock, serve)
    assert stage.drain(peers[0]) == b""
    for peer in peers[1:]:  # in the same burst
        stage.write(peer, b"x")
        assert stage.read(peer, 1) == b"x"
    stage.faults = 1
    assert stage.count("faults") == 1
    assert listening.accepted == 3
    (record,) = caplog.records
    assert record.getMessage() == "listener: a connection could not be admitted"
    assert "nobody may come in" in str(record.exc_info)


def test_a_queue_can_be_taken_over(stage: Stage) -> None:
    sock = stage.listener()
    first = stage.accept(sock)
    first.stop_now()
    peer = stage.peer(sock)
    stage.turns(50)
    assert first.accepted == 0
    second = stage.accept(sock, lambda _: driver.Echo())
    stage.write(peer, b"x")
    assert stage.read(peer, 1) == b"x"
    assert (first.accepted, second.accepted) == (0, 1)


def test_a_queue_can_be_emptied(stage: Stage) -> None:
    sock = stage.listener()
    peers = [stage.peer(sock) for _ in range(3 * driver.BURST)]
    listening = stage.accept(sock, lambda _: driver.Echo())
    assert listening.take_now(1 << 16) == len(peers)
    listening.stop_now()
    for peer in peers:
        stage.write(peer, b"x")
        assert stage.read(peer, 1) == b"x"


def test_unix_sockets(stage: Stage, tmp_path: Path) -> None:
    sock = stage.listener(path=tmp_path / "s")
    probes = []

    def serve(peer: object) -> object:
        assert peer == ("unix",)
        probes.append(driver.Echo())
        return probes[-1]

    stage.accept(sock, serve)
    peer = stage.peer(sock)
    stage.write(peer, b"x" * 100_000)
    assert stage.read(peer, 100_000) == b"x" * 100_000
    assert probes[0].local == ("unix",)


def test_ipv6(stage: Stage) -> None:
    sock = stage.own(socket.create_server(("::1", 0), family=socket.AF_INET6))
    sock.setblocking(False)
    listening = stage.accept(sock)
    peer = stage.peer(sock)
    stage.until(lambda: listening.accepted == 1 and listening.sessions[0].peer)
    assert listening.sessions[0].peer == (bytes(15) + b"\x01", peer.getsockname()[1])


def test_small_packets_do_not_wait(stage: Stage) -> None:
    sock = stage.listener()
    listening = stage.accept(sock)
    stage.peer(sock)
    stage.until(lambda: listening.accepted == 1)
    accepted = socket.socket(fileno=os.dup(listening.sessions[0].fd))
    with accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_listening_socket_that_is_none(stage: Stage) -> None:
    with open("/dev/null") as file, pytest.raises(OSError):
        driver.Listening(stage.net, file.fileno(), None)
