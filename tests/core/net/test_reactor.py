"""The reactor: whose event it is, how much of a turn anybody may have, and that a fault is one connection's."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import pytest

from core.net.stage import Stage, driver, reset


def pairs(stage: Stage, count: int, serve: Any = None) -> tuple[list[socket.socket], list[Any]]:
    """Peers and the sessions that serve them, in the same order."""
    sock = stage.listener()
    listening = stage.accept(sock, serve)
    peers = []
    for i in range(count):
        peers.append(stage.peer(sock))
        stage.until(lambda n=i: len(listening.sessions) > n)  # type: ignore[misc]
    listening.stop_now()
    return peers, listening.sessions


def test_an_event_of_a_descriptor_that_was_opened_again_is_stale(stage: Stage) -> None:
    (first, second), (one, two) = pairs(stage, 2)
    before = {one: one.fd, two: two.fd}
    sock = stage.listener()
    news: list[Any] = []

    def replace(probe: Any) -> None:
        """Whoever is first closes the other one, whose number is taken at once by a connection that has heard nothing."""
        other = two if probe is one else one
        if other.fd < 0:
            return
        other.shut(True)
        listening = stage.accept(sock)
        listening.take_now(1)
        news.extend(listening.sessions)

    one.react["bytes"] = two.react["bytes"] = replace
    stage.peer(sock)
    first.send(b"x")
    second.send(b"x")
    stage.until(lambda: news)
    heard = [probe for probe in (one, two) if probe.received]
    assert len(heard) == 1
    (silent,) = {one, two} - set(heard)
    assert news[0].fd == before[silent]
    assert stage.count("stale") == 1
    stage.turns()
    assert news[0].heard == [("open",)]
    assert silent.why == "aborted"


@pytest.mark.parametrize(
    "event", ["open", "bytes", "end", "room", "hangup", "deadline", "turn end", "lost"]
)
def test_a_fault_costs_one_connection(stage: Stage, event: str) -> None:
    def fault(probe: Any) -> None:
        raise RuntimeError("a mistake")

    sock = stage.listener()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    probes: list[Any] = []

    def serve(peer: Any) -> Any:
        probes.append(driver.Probe({event: fault} if not probes else {}))
        return probes[-1]

    stage.accept(sock, serve)
    bad = stage.peer(sock, receive=4096)
    good = stage.peer(sock)
    stage.until(lambda: len(probes) == 2 and probes[1].fd >= 0)
    stage.faults = 1
    if event == "bytes":
        bad.send(b"x")
    elif event == "end":
        bad.shutdown(socket.SHUT_WR)
    elif event == "room":
        probes[0].send(bytes(200_000))
        assert probes[0].write_paused
        stage.until(lambda: bad_reads(bad) and probes[0].fd < 0)
    elif event == "hangup":
        probes[0].pause()
        reset(bad)
    elif event == "deadline":
        probes[0].arm(1)
    elif event == "turn end":
        probes[0].call_at_turn_end()
    elif event == "lost":
        reset(bad)
    stage.until(lambda: probes[0].why == ("reset" if event == "lost" else "fault"))
    assert stage.count("faults") == 1
    good.send(b"served")
    stage.until(lambda: probes[1].received == b"served")


def bad_reads(sock: socket.socket) -> bool:
    try:
        sock.recv(1 << 16)
    except BlockingIOError:
        pass
    return True


def test_a_fault_in_the_maker_of_sessions_costs_one_connection(stage: Stage) -> None:
    calls = []

    def serve(peer: Any) -> Any:
        calls.append(peer)
        if len(calls) == 1:
            raise RuntimeError("a mistake")
        return driver.Echo()

    sock = stage.listener()
    stage.accept(sock, serve)
    bad, good = stage.peer(sock), stage.peer(sock)
    stage.faults = 1
    assert stage.drain(bad) == b""
    stage.write(good, b"served")
    assert stage.read(good, 6) == b"served"


def test_a_turn_handles_so_many_events(stage: Stage) -> None:
    peers, probes = pairs(stage, driver.EVENTS + 40)
    for peer in peers:
        peer.send(b"x")
    before = stage.count("events")
    turns = stage.count("turns")
    stage.until(lambda: all(probe.received for probe in probes))
    assert stage.count("events") - before == len(peers)
    assert stage.count("turns") - turns >= 2


def test_a_turn_has_so_much_time(stage: Stage) -> None:
    """What it leaves is the next one's, in the order in which it came: who is slow to be served keeps nobody waiting for ever."""
    peers, probes = pairs(stage, 4 * driver.LOOK)
    order: list[int] = []

    def take(at: int) -> None:
        order.append(at)
        time.sleep(driver.NANOSECONDS / 1e9 / driver.LOOK)

    for at, (peer, probe) in enumerate(zip(peers, probes, strict=True)):
        probe.react["bytes"] = lambda _, at=at: take(at)
        peer.send(b"x")
    turns = stage.count("turns")
    stage.until(lambda: len(order) == len(peers))
    assert order == list(range(len(peers)))
    assert stage.count("turns") - turns >= 4
    assert all(probe.received == b"x" for probe in probes)


def test_a_turn_reads_once_from_each(stage: Stage) -> None:
    (loud, quiet), (busy, other) = pairs(stage, 2)
    busy.pause()
    other.pause()
    data = os.urandom(1 << 20)
    sent = 0
    try:
        while True:
            sent += loud.send(data)
    except BlockingIOError:
        pass
    assert sent > 2 * driver.READ
    quiet.send(b"me, too")
    stage.turns()
    order: list[Any] = []
    for probe in (busy, other):
        probe.react["bytes"] = order.append
        probe.resume()
    stage.until(lambda: len(busy.received) == sent and other.received)
    assert order.index(other) <= 1


def test_marks_outside_of_a_turn_are_handled_soon(stage: Stage) -> None:
    _, probe = stage.pair()
    probe.call_at_turn_end()
    probe.call_at_turn_end()
    assert ("turn end",) not in probe.heard
    stage.turns(2)
    assert probe.heard.count(("turn end",)) == 1


def test_who_marks_itself_for_ever_keeps_nobody_waiting(stage: Stage) -> None:
    (first, second), (one, two) = pairs(stage, 2)
    one.react["turn end"] = lambda probe: probe.call_at_turn_end()
    one.call_at_turn_end()
    second.send(b"served")
    stage.until(lambda: two.received == b"served")
    one.react.clear()
    first.close()


def test_who_goes_on_later_lets_everybody_pass(stage: Stage) -> None:
    """Whose events come meanwhile is served before the next piece, however many have pieces left."""
    (quiet, *peers), (other, *probes) = pairs(stage, 9)
    pieces = 0
    heard_at: list[int] = []

    def take(probe: Any) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 50:
            quiet.send(b"x")
        if pieces > len(probes):  # all that a turn has for them
            time.sleep(driver.LATER / 1e9)
        probe.go_on_later()

    for peer, probe in zip(peers, probes, strict=True):
        probe.take = 1
        probe.react["bytes"] = take
        peer.send(bytes(20))
    other.react["bytes"] = lambda _: heard_at.append(pieces)
    stage.until(lambda: heard_at and not any(probe.kept for probe in probes))
    assert heard_at == [50]
    assert pieces == 20 * len(probes)


def test_pieces_for_later_take_turns(stage: Stage) -> None:
    """One after the other, in order; what comes meanwhile is kept behind them."""
    peers, probes = pairs(stage, 3)
    order: list[int] = []

    def take(at: int) -> None:
        order.append(at)
        if order.count(at) == 2:
            peers[at].send(b"!")
        probes[at].go_on_later()

    for at, (peer, probe) in enumerate(zip(peers, probes, strict=True)):
        probe.take = 1
        probe.react["bytes"] = lambda _, at=at: take(at)
        peer.send(b"abcde")
    stage.until(lambda: len(order) == 18)
    assert order == [0, 1, 2] * 6
    assert not any(probe.kept for probe in probes)


def test_who_ends_has_nothing_for_later(stage: Stage) -> None:
    (first, second), (one, two) = pairs(stage, 2)
    one.take = two.take = 1
    stage.faults = 1

    def cut(probe: Any) -> None:
        probe.go_on_later()
        probe.shut(True)

    def fault(probe: Any) -> None:
        probe.go_on_later()
        if probe.heard.count(("bytes", b"cd")):
            raise RuntimeError("a mistake")

    one.react["bytes"] = cut
    two.react["bytes"] = fault
    first.send(b"ab")
    second.send(b"bcd")
    stage.until(lambda: one.why and two.why)
    stage.turns()
    assert (one.why, two.why) == ("aborted", "fault")
    assert one.received == b"ab"


def test_closing_lets_go_of_everybody(stage: Stage) -> None:
    _, probe = stage.pair()
    caller = driver.Call(stage.net, b"127.0.0.1", stage.listener().getsockname()[1], driver.Probe())
    stage.net.close()
    assert probe.why == "aborted"
    assert stage.net.watching == 0
    assert caller.answer is not None
