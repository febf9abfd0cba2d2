"""Dialing: every way to fail has its word and its time, and nobody hears from within."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from core.net.stage import Stage, driver
from core.net.test_acceptor import full


def call(stage: Stage, to: tuple[Any, ...] | str, **settings: Any) -> Any:
    """A connect whose session is a Probe."""
    host, port = (to.encode(), -1) if isinstance(to, str) else (to[0].encode(), to[1])
    return driver.Call(stage.net, host, port, driver.Probe(), **settings)


def refusing(stage: Stage) -> tuple[str, int]:
    """An address where nobody listens, and nobody else can."""
    sock = stage.own(socket.socket())
    sock.bind(("127.0.0.1", 0))
    return sock.getsockname()  # type: ignore[no-any-return]


def silent(stage: Stage) -> socket.socket:
    """A socket that does not answer connects: its queue is full."""
    sock = stage.listener(backlog=0)
    for _ in range(4):
        filler = stage.own(socket.socket())
        filler.setblocking(False)
        filler.connect_ex(sock.getsockname())
    return sock


def test_connect(stage: Stage) -> None:
    sock = stage.listener()
    calling = call(stage, sock.getsockname())
    assert calling.answer is None  # never from within
    stage.until(lambda: calling.answer)
    probe = calling.answer
    assert probe.heard == [("open",)]
    accepted, address = sock.accept()
    stage.own(accepted).setblocking(False)
    assert probe.peer[1] == sock.getsockname()[1]
    assert probe.local[1] == address[1]
    probe.send(b"question")
    assert stage.read(accepted, 8) == b"question"
    stage.write(accepted, b"answer")
    stage.until(lambda: probe.received == b"answer")
    probe.shut()


def test_refused(stage: Stage) -> None:
    calling = call(stage, refusing(stage))
    assert calling.answer is None
    stage.until(lambda: calling.answer)
    assert calling.answer == "refused"


def test_unreachable(stage: Stage) -> None:
    calling = call(stage, ("224.0.0.1", 80))  # TCP to a group: no way, whatever the routes are
    stage.until(lambda: calling.answer)
    assert calling.answer == "unreachable"


def test_a_deadline(stage: Stage) -> None:
    sock = silent(stage)
    hasty, patient = (call(stage, sock.getsockname(), timeout=ms) for ms in (60, 60_000))
    stage.until(lambda: hasty.answer)
    assert hasty.answer == "timed out"
    assert patient.answer is None
    patient.give_up_now()
    stage.until(lambda: patient.answer)


def test_a_queue_that_gets_room_in_time(stage: Stage) -> None:
    sock = silent(stage)
    calling = call(stage, sock.getsockname(), timeout=60_000)
    stage.turns(100)
    assert calling.answer is None

    def accepted() -> Any:
        try:
            stage.own(sock.accept()[0])
        except BlockingIOError:
            pass
        return calling.answer

    stage.until(accepted)
    calling.answer.shut()


def test_unix_sockets(stage: Stage, tmp_path: Path) -> None:
    sock = stage.listener(path=tmp_path / "s")
    calling = call(stage, str(tmp_path / "s"))
    stage.until(lambda: calling.answer)
    assert calling.answer.peer == ("unix",)
    calling.answer.shut()
    sock.close()
    late, nowhere = call(stage, str(tmp_path / "s")), call(stage, str(tmp_path / "nowhere"))
    stage.until(lambda: late.answer and nowhere.answer)
    assert (late.answer, nowhere.answer) == ("refused", "refused")


def test_a_unix_socket_whose_queue_is_full_is_tried_again(stage: Stage, tmp_path: Path) -> None:
    sock = stage.listener(backlog=0, path=tmp_path / "s")
    filler = stage.peer(sock)
    calling = call(stage, str(tmp_path / "s"), timeout=60_000)
    hasty = call(stage, str(tmp_path / "s"), timeout=60)
    stage.until(lambda: hasty.answer)
    assert hasty.answer == "timed out"
    assert calling.answer is None
    stage.own(sock.accept()[0])
    stage.until(lambda: calling.answer)
    calling.answer.shut()
    filler.close()


def test_without_descriptors(stage: Stage) -> None:
    to = stage.listener().getsockname()
    calls: list[Any] = []

    def answered() -> Any:
        if not calls:
            calls.append(call(stage, to))
        return calls[0].answer

    with full():
        stage.until(answered)
    assert calls[0].answer == "shortage"
    late = call(stage, to)
    stage.until(lambda: late.answer)
    late.answer.shut()


@pytest.mark.parametrize("to", ["localhost", "", "1.2.3", "::1%lo", "1.2.3.4 "])
def test_names_are_not_for_it(stage: Stage, to: str) -> None:
    calling = call(stage, (to, 80))
    stage.until(lambda: calling.answer)
    assert calling.answer == "other"


@pytest.mark.parametrize("path", ["", "x" * 108, "a\0b"])
def test_paths_that_do_not_fit(stage: Stage, path: str) -> None:
    calling = call(stage, path)
    stage.until(lambda: calling.answer)
    assert calling.answer == "other"


def test_a_fault_of_who_asked_costs_its_connection(stage: Stage) -> None:
    def fault(calling: Any) -> None:
        raise RuntimeError("a mistake")

    to = stage.listener().getsockname()
    bad, good = call(stage, to, react=fault), call(stage, to)
    stage.faults = 1
    stage.until(lambda: good.answer)
    stage.until(lambda: bad.answer.why == "fault")
    good.answer.shut()


def test_a_session_that_ends_as_it_opens(stage: Stage) -> None:
    to = stage.listener().getsockname()
    probe = driver.Probe({"open": lambda one: one.shut(True)})
    calling = driver.Call(stage.net, to[0].encode(), to[1], probe)
    stage.until(lambda: calling.answer)
    assert calling.answer == "aborted"
    assert probe.heard == [("open",), ("lost", "aborted")]


# --- a relay --------------------------------------------------------------------------------------------------------


def relay(stage: Stage) -> tuple[socket.socket, socket.socket]:
    """A client and a server with a relay between them."""
    server, front = stage.listener(), stage.listener()
    front.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    to = (b"127.0.0.1", server.getsockname()[1])
    stage.accept(front, lambda _: driver.Half(), relay_to=to)
    client = stage.peer(front, receive=4096)
    got: list[socket.socket] = []

    def accepted() -> bool:
        try:
            got.append(stage.own(server.accept()[0]))
        except BlockingIOError:
            return False
        return True

    stage.until(accepted)
    got[0].setblocking(False)
    return client, got[0]


def test_a_relay_passes_bytes_and_ends_each_way(stage: Stage) -> None:
    client, server = relay(stage)
    upload, download = os.urandom(1 << 20), os.urandom(1 << 20)
    sent = memoryview(upload)
    got = bytearray()

    def up() -> bool:
        nonlocal sent
        try:
            if sent:
                sent = sent[client.send(sent[:100_000]) :]
        except BlockingIOError:
            pass
        try:
            got.extend(server.recv(100_000))
        except BlockingIOError:
            pass
        return len(got) == len(upload)

    stage.until(up)
    assert got == upload
    client.shutdown(socket.SHUT_WR)
    assert stage.drain(server) == b""  # the end of one way
    rest = memoryview(download)
    back = bytearray()

    def down() -> bool:
        nonlocal rest
        try:
            if rest:
                rest = rest[server.send(rest[:100_000]) :]
        except BlockingIOError:
            pass
        try:
            back.extend(client.recv(100_000))
        except BlockingIOError:
            pass
        return len(back) == len(download)

    stage.until(down)
    assert back == download
    server.shutdown(socket.SHUT_WR)
    assert stage.drain(client) == b""


def test_a_slow_reader_bounds_what_a_relay_holds(stage: Stage) -> None:
    client, server = relay(stage)
    sent = 0
    for _ in range(50):  # the server sends whatever it is taken
        try:
            while True:
                sent += server.send(bytes(100_000))
        except BlockingIOError:
            pass
        stage.turns()
    halves = driver.seen_halves()
    assert 0 < max(half.most for half in halves) <= 32768 + driver.READ
    client.close()
    stage.until(lambda: all(half.why for half in halves))
