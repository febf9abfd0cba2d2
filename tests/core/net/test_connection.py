"""Sockets: every byte in order both ways, bounds that hold, one end for every way to end."""

from __future__ import annotations

import os
import socket

import pytest

from core.net.stage import Stage, driver, reset

LONG = os.urandom(3 << 20)


def test_echo(stage: Stage) -> None:
    peer, echo = stage.pair(driver.Echo())
    stage.write(peer, b"hello")
    assert stage.read(peer, 5) == b"hello"
    peer.shutdown(socket.SHUT_WR)
    assert stage.drain(peer) == b""
    assert echo.why == "closed"


def test_a_long_echo_through_small_buffers(stage: Stage) -> None:
    peer, echo = stage.pair(driver.Echo(), small=True)
    got = bytearray()
    left = memoryview(LONG)

    def both() -> bool:
        nonlocal left
        try:
            if left:
                left = left[peer.send(left[:70_000]) :]
        except BlockingIOError:
            pass
        try:
            got.extend(peer.recv(100_000))
        except BlockingIOError:
            pass
        return len(got) == len(LONG)

    stage.until(both)
    assert bytes(got) == LONG
    assert 0 < echo.most <= 32768 + driver.READ


def test_gathered_writes_keep_their_order(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    pieces = [os.urandom(n) for n in (1, 5000, 17, 300_000, 2, 70_000, 1)]
    probe.send(b"small ", b"and ", b"together")
    probe.send(*pieces)
    assert 0 < probe.unsent < sum(map(len, pieces))  # taken in part
    probe.send(*pieces[::-1])
    assert stage.read(peer, 18) == b"small and together"
    whole = b"".join(pieces) + b"".join(pieces[::-1])
    assert stage.read(peer, len(whole)) == whole
    assert probe.unsent == 0


def test_what_is_left_is_taken_in_front_of_what_follows(stage: Stage) -> None:
    peer, probe = stage.pair()
    probe.take = 0
    for part in (b"one", b"two", b"three"):
        wanted = probe.kept + len(part)
        stage.write(peer, part)
        stage.until(lambda n=wanted: probe.kept == n)  # type: ignore[misc]
    assert probe.heard[-1] == ("bytes", b"onetwothree")
    probe.take = 4
    probe.go_on()
    stage.until(lambda: probe.kept == 7)
    probe.take = None
    probe.go_on()
    stage.until(lambda: probe.kept == 0)
    assert probe.heard[-1] == ("bytes", b"wothree")


def test_input_that_nobody_takes_is_bounded(stage: Stage) -> None:
    peer, probe = stage.pair()
    probe.take = 0
    data = memoryview(bytes(driver.UNREAD_MOST + 1))

    def sent() -> bool:
        nonlocal data
        try:
            while data:
                data = data[peer.send(data) :]
        except OSError as error:
            return not isinstance(error, BlockingIOError)
        return True

    stage.until(sent)
    stage.until(lambda: probe.why == "overflow")


def test_who_does_not_stop_writing_is_cut_off(stage: Stage) -> None:
    _, probe = stage.pair(small=True)
    probe.send(bytes(3 * driver.UNSENT_MOST))  # one write is as large as whoever had it in memory
    assert probe.write_paused
    before = probe.unsent
    block = bytes(64 << 10)
    while probe.fd >= 0:
        probe.send(block)
        assert probe.unsent <= before + driver.UNSENT_MOST + len(block)
    stage.until(lambda: probe.why == "overflow")


def test_a_slow_reader_is_waited_for(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    probe.bound(10_000)
    sent = 0
    while not probe.write_paused:
        probe.send(bytes(1000))
        sent += 1000
    assert 10_000 < probe.unsent <= 11_000
    stage.turns()
    assert ("room",) not in probe.heard
    stage.read(peer, sent)
    assert probe.heard.count(("room",)) == 1
    assert not probe.write_paused


def test_for_who_reads_nothing_the_kernel_keeps_little(stage: Stage) -> None:
    """Thousands of them would hold gigabytes, and whoever fills them would be busy with that."""
    _, probe = stage.pair(receive=4096)
    probe.send(LONG)
    assert len(LONG) - probe.unsent < 2 * driver.AHEAD


def test_reading_can_wait(stage: Stage) -> None:
    peer, probe = stage.pair()
    probe.pause()
    stage.write(peer, b"x" * 1000)
    stage.turns(50)
    assert probe.received == b""
    turns = stage.count("turns")
    stage.turns(50)
    assert stage.count("turns") == turns  # nothing spins
    probe.resume()
    stage.until(lambda: len(probe.received) == 1000)


def test_a_long_body_is_read_in_large_pieces(stage: Stage) -> None:
    session = driver.Probe()
    session.bulk = True
    session.deaf = True
    peer, _ = stage.pair(session, receive=4 << 20)
    sent = 0
    try:
        while sent < len(LONG):
            sent += peer.send(LONG[sent : sent + 100_000])
    except BlockingIOError:
        pass
    session.resume()
    stage.until(lambda: len(session.received) == sent)
    assert session.received == LONG[:sent]
    assert session.largest > driver.READ


def test_addresses_of_both_ends(stage: Stage) -> None:
    peer, probe = stage.pair()
    here = bytes(10) + b"\xff\xff" + bytes([127, 0, 0, 1])
    assert probe.peer == (here, peer.getsockname()[1])
    assert probe.local == (here, peer.getpeername()[1])


def test_room_is_what_the_kernel_would_take(stage: Stage) -> None:
    _, probe = stage.pair(small=True)
    assert not probe.roomy  # of a read as long as they get
    sock = stage.listener()
    sock.setsockopt(socket.SOL_SOCKET, 32, 4 << 20)
    large = driver.Probe()
    stage.accept(sock, lambda _: large)
    stage.peer(sock)
    stage.until(lambda: large.fd >= 0)
    assert large.roomy


# --- half-close -----------------------------------------------------------------------------------------------------


def test_the_peer_ends_first(stage: Stage) -> None:
    peer, probe = stage.pair()
    stage.write(peer, b"question")
    peer.shutdown(socket.SHUT_WR)
    stage.until(lambda: ("end",) in probe.heard)
    assert probe.heard == [("open",), ("bytes", b"question"), ("end",)]
    turns = stage.count("turns")
    stage.turns(50)
    assert stage.count("turns") == turns  # an end is told once, and nothing spins
    probe.send(b"answer")
    assert stage.read(peer, 6) == b"answer"
    probe.shut()
    assert stage.drain(peer) == b""
    assert probe.heard[3:] == [("lost", "closed")]


def test_we_end_first(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    probe.send(LONG[:500_000])
    probe.end_write()
    probe.send(b"never")
    assert stage.drain(peer) == LONG[:500_000]  # the end comes behind what was queued
    stage.write(peer, b"still there")
    stage.until(lambda: probe.received == b"still there")
    peer.shutdown(socket.SHUT_WR)
    stage.until(lambda: ("end",) in probe.heard)
    turns = stage.count("turns")
    stage.turns(50)
    # Both ends are over: the hang-up is not reported for ever.
    assert stage.count("turns") <= turns + 1
    assert probe.why is None
    probe.shut()
    stage.until(lambda: probe.why == "closed")


def test_a_close_sends_what_is_queued(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    probe.send(LONG)
    probe.shut()
    assert probe.fd >= 0
    assert stage.drain(peer) == LONG
    stage.until(lambda: probe.why == "closed")


def test_an_abort_drops_it(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    probe.send(LONG)
    probe.shut(True)
    assert probe.fd < 0
    assert probe.why is None  # told at the end of the turn, not from within
    stage.until(lambda: probe.why == "aborted")
    assert len(stage.drain(peer)) < len(LONG)


def test_a_close_waits_for_who_takes_nothing_only_so_long(stage: Stage) -> None:
    _, probe = stage.pair(small=True)
    probe.send(LONG)
    probe.shut()
    for _ in range(40):
        probe.look()  # as the wheel does each second
    stage.until(lambda: probe.why == "stalled")


def test_a_body_that_the_end_completes(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    probe.give_body()
    probe.send(LONG)
    probe.shut()
    assert stage.drain(peer) == LONG
    stage.until(lambda: probe.why == "closed")


def test_a_body_that_the_end_completes_is_reset_if_bytes_are_lost(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    probe.give_body()
    probe.send(LONG)
    probe.shut()
    for _ in range(40):
        probe.look()
    stage.until(lambda: probe.why == "stalled")
    with pytest.raises(ConnectionResetError):
        stage.drain(peer)


# --- resets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["reading", "queued", "the peer ended", "we ended", "closing"])
def test_reset_while(stage: Stage, when: str) -> None:
    peer, probe = stage.pair(small=when in ("queued", "closing"))
    if when in ("queued", "closing"):
        probe.send(LONG)
    if when == "closing":
        probe.shut()
    if when == "the peer ended":
        peer.shutdown(socket.SHUT_WR)
        stage.until(lambda: ("end",) in probe.heard)
    if when == "we ended":
        probe.end_write()
        assert stage.drain(peer) == b""
    reset(peer)
    stage.until(lambda: probe.why == "reset")
    assert when != "reading" or probe.heard == [("open",), ("lost", "reset")]


def test_an_answer_before_a_reset_is_read(stage: Stage) -> None:
    peer, probe = stage.pair()
    probe.pause()
    peer.send(b"early answer")
    reset(peer)
    stage.until(lambda: ("hangup",) in probe.heard)
    probe.send(b"in vain")  # fails, which is only noted
    turns = stage.count("turns")
    stage.turns(50)
    assert stage.count("turns") <= turns + 1
    probe.resume()
    stage.until(lambda: probe.why)
    assert probe.heard == [("open",), ("hangup",), ("bytes", b"early answer"), ("lost", "reset")]


def test_reset_while_bytes_are_queued_and_reading_waits(stage: Stage) -> None:
    peer, probe = stage.pair(small=True)
    probe.pause()
    probe.send(LONG)
    reset(peer)
    stage.until(lambda: ("hangup",) in probe.heard)
    probe.shut()
    stage.until(lambda: probe.why)


def test_reset_before_it_is_accepted(stage: Stage) -> None:
    sock = stage.listener()
    reset(stage.peer(sock))
    listening = stage.accept(sock)
    stage.until(lambda: listening.accepted == 1 and listening.sessions[0].why == "reset")


def test_a_peer_that_is_gone_before_it_reads(stage: Stage) -> None:
    peer, probe = stage.pair()
    peer.close()  # an end; what is sent then is answered by a reset
    stage.until(lambda: ("end",) in probe.heard)
    probe.send(b"x")
    stage.until(lambda: probe.why == "reset")
