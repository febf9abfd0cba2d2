"""Wires: what lies between socket and session opens in time, holds bytes back, waits either way, and has last words."""

from __future__ import annotations

import os
import socket
from typing import Any

from core.net.stage import Stage, driver

LONG = os.urandom(1 << 20)


def veiled(data: bytes) -> bytes:
    """Bytes as a Veil sends them."""
    parts = [data[i : i + 200] for i in range(0, len(data), 200)]
    return b"".join(bytes([len(part)]) + bytes(one ^ 0x55 for one in part) for part in parts)


def listen(stage: Stage, session: Any) -> tuple[socket.socket, Any]:
    """A socket on which a Veil is spoken."""
    sock = stage.listener()
    listening = stage.accept(sock, lambda _: session)
    listening.make_wire = lambda: driver.Veil(False)
    return sock, listening


def opened(stage: Stage, session: Any) -> socket.socket:
    """A peer whose handshake is over."""
    sock, _ = listen(stage, session)
    peer = stage.peer(sock)
    stage.write(peer, b"?")
    assert stage.read(peer, 1) == b"!"
    return peer


def test_a_session_begins_after_the_handshake(stage: Stage) -> None:
    probe = driver.Probe()
    sock, listening = listen(stage, probe)
    peer = stage.peer(sock)
    stage.until(lambda: listening.accepted == 1)
    stage.turns()
    assert probe.heard == []
    stage.write(peer, b"?" + veiled(b"right behind it"))
    stage.until(lambda: probe.received == b"right behind it")
    assert probe.heard[0] == ("open",)
    probe.send(b"one ", b"two")
    assert stage.read(peer, 9) == b"!" + veiled(b"one two")
    stage.write(peer, b"\0")
    stage.until(lambda: ("end",) in probe.heard)
    probe.shut()
    assert stage.drain(peer) == b"\0"
    assert probe.why == "closed"


def test_every_byte_at_a_time(stage: Stage) -> None:
    probe = driver.Probe()
    peer = opened(stage, probe)
    for byte in veiled(b"x" * 250):
        peer.send(bytes([byte]))
        stage.turns(3)
    stage.until(lambda: probe.received == b"x" * 250)


def test_bytes_that_no_event_tells_of_are_read(stage: Stage) -> None:
    probe = driver.Probe()
    probe.deaf = True
    peer = opened(stage, probe)
    stage.until(lambda: ("open",) in probe.heard)
    data = LONG[: 3 * driver.READ]
    sent = memoryview(veiled(data))

    def all_sent() -> bool:
        nonlocal sent
        probe.resume()
        try:
            while sent:
                sent = sent[peer.send(sent) :]
        except BlockingIOError:
            return False
        return True

    probe.react["bytes"] = lambda one: one.pause()  # with the rest in the wire
    stage.until(all_sent)
    probe.react.clear()
    probe.resume()
    stage.until(lambda: len(probe.received) == len(data))
    assert probe.received == data


def test_what_the_wire_holds_is_sent_before_the_end(stage: Stage) -> None:
    probe = driver.Probe()
    sock, _ = listen(stage, probe)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    peer = stage.peer(sock, receive=4096)
    stage.write(peer, b"?")
    assert stage.read(peer, 1) == b"!"
    probe.send(LONG)
    probe.shut()
    assert stage.drain(peer) == veiled(LONG) + b"\0"
    stage.until(lambda: probe.why == "closed")


def test_half_an_end_of_each_side(stage: Stage) -> None:
    probe = driver.Probe()
    sock, _ = listen(stage, probe)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    peer = stage.peer(sock, receive=4096)
    stage.write(peer, b"?")
    assert stage.read(peer, 1) == b"!"
    probe.send(LONG)
    probe.end_write()
    assert stage.drain(peer) == veiled(LONG) + b"\0"
    stage.write(peer, veiled(b"still there") + b"\0")
    stage.until(lambda: ("end",) in probe.heard)
    assert probe.received == b"still there"


def test_what_is_no_handshake(stage: Stage) -> None:
    probe = driver.Probe()
    sock, listening = listen(stage, probe)
    peer = stage.peer(sock)
    peer.send(b"GET / HTTP/1.1\r\n\r\n")
    stage.until(lambda: listening.failed)
    assert (listening.failed, probe.heard) == (["wire"], [])


def test_a_handshake_has_a_deadline(stage: Stage) -> None:
    probe = driver.Probe()
    sock, listening = listen(stage, probe)
    listening.open_within(50)
    peer = stage.peer(sock)
    assert stage.drain(peer) == b""
    stage.until(lambda: listening.failed)
    assert (listening.failed, probe.heard) == (["timed out"], [])


def test_an_open_connection_has_none(stage: Stage) -> None:
    probe = driver.Probe()
    sock, listening = listen(stage, probe)
    listening.open_within(60)
    peer = stage.peer(sock)
    stage.write(peer, b"?")
    stage.until(lambda: ("open",) in probe.heard)
    stage.rest(0.15)
    assert probe.why is None
    assert stage.net.armed == 0


def test_an_end_without_a_word(stage: Stage) -> None:
    probe = driver.Probe()
    peer = opened(stage, probe)
    peer.send(veiled(b"cut off"))
    peer.shutdown(socket.SHUT_WR)
    stage.until(lambda: probe.why == "wire")
    assert probe.received == b"cut off"
    assert ("end",) not in probe.heard


def test_closed_in_the_handshake(stage: Stage) -> None:
    sock, listening = listen(stage, probe := driver.Probe())
    stage.peer(sock)
    stage.until(lambda: probe.fd >= 0)
    probe.shut()
    stage.until(lambda: listening.failed)
    assert (listening.failed, probe.heard) == (["aborted"], [])


def test_both_sides_through_small_buffers(stage: Stage) -> None:
    echo = driver.Echo()
    sock, _ = listen(stage, echo)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    caller = call(stage, sock)
    stage.until(lambda: caller.answer)
    probe = caller.answer
    assert probe.heard[0] == ("open",)
    for start in range(0, len(LONG), 100_000):
        probe.send(LONG[start : start + 100_000])
        stage.until(lambda: not probe.write_paused)
    stage.until(lambda: len(probe.received) == len(LONG))
    assert probe.received == LONG
    assert 0 < echo.most <= 32768 + driver.READ
    probe.end_write()
    stage.until(lambda: ("end",) in probe.heard)
    probe.shut()


def call(stage: Stage, sock: socket.socket, timeout: int = 60_000) -> Any:
    """A connect that speaks through a Veil."""
    to = (b"127.0.0.1", sock.getsockname()[1])
    return driver.Call(
        stage.net, *to, driver.Probe(), timeout=timeout, make_wire=lambda: driver.Veil(True)
    )


def test_a_dial_waits_for_the_handshake(stage: Stage) -> None:
    sock = stage.listener()
    hasty = call(stage, sock, timeout=60)
    stage.until(lambda: hasty.answer)
    assert hasty.answer == "timed out"
    wrong, right = call(stage, sock), call(stage, sock)
    peers: list[socket.socket] = []
    stage.until(lambda: len(peers) == 3 or accept_into(stage, sock, peers))
    stage.until(lambda: sum(asks(peer) for peer in peers) == 2)
    assert (wrong.answer, right.answer) == (None, None)
    for peer in peers:
        peer.send(b"#")
    stage.until(lambda: wrong.answer and right.answer)
    assert (wrong.answer, right.answer) == ("wire", "wire")


def accept_into(stage: Stage, sock: socket.socket, peers: list[socket.socket]) -> bool:
    try:
        peers.append(stage.own(sock.accept()[0]))
        peers[-1].setblocking(False)
    except BlockingIOError:
        pass
    return False


def asks(peer: socket.socket) -> bool:
    """Whether it waits for an answer: the question is there, and no end."""
    try:
        return peer.recv(2, socket.MSG_PEEK) == b"?" and not ended(peer)
    except BlockingIOError:
        return False


def ended(peer: socket.socket) -> bool:
    info = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return info[0] != 1  # TCP_ESTABLISHED
