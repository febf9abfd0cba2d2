"""Where processes meet that hand over: of one user, in a folder of nobody else's, with words when they differ."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgefast.httpd.address import Address
from edgefast.proxy.control.channel import Channel, ChannelClosed
from edgefast.proxy.handover import rendezvous_socket
from edgefast.proxy.handover.protocol import PROTOCOL, Ask, Give, Item, Kept, Refuse
from edgefast.proxy.handover.rendezvous_socket import (
    RendezvousSocket,
    bound_path,
    connect,
    path_of,
    remove_dead_names,
)
from edgefast.proxy.handover.socket_receiver import TakeOver, TakeOverRefused
from edgefast.proxy.handover.socket_sender import serve_successors
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.sockets.bind_address import Place
from edgefast.proxy.sockets.inherited import Inherited
from edgefast.proxy.worker import orphan as orphan_module
from edgefast.proxy.worker.acceptors import Acceptors
from edgefast.proxy.worker.orphan import OrphanedWorker

Answer = Refuse | Give | Kept


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where processes with the settings of `settings` meet; not below a folder that only this user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("RUNTIME_DIRECTORY", folder)
        found = path_of(settings())
        assert found is not None
        yield found


def settings(**more: Any) -> ProxySettings:
    return ProxySettings(admin=Address("127.0.0.1", 19000), **more)


class Giving:
    """A predecessor with one socket."""

    worker = -1
    workers = 1

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.left: list[frozenset[Place]] = []

    def refuse(self, ask: Ask) -> str:
        return "" if ask.take_over else "not told to"

    def items(self) -> Sequence[tuple[Item, int]]:
        return [(Item(), self._sock.fileno())]

    async def leave(self, kept: frozenset[Place], pid: int) -> None:
        assert pid == os.getpid()
        self.left.append(kept)


def listening() -> tuple[socket.socket, Place]:
    sock = socket.create_server(("127.0.0.1", 0))
    return sock, sock.getsockname()


def run(talk: Callable[[Giving, Place], Any], path: Path) -> Giving:
    """Hold a conversation with a predecessor that is found at `path`."""

    async def main() -> Giving:
        sock, place = listening()
        giving = Giving(sock)
        handover_socket = RendezvousSocket(path)
        handover_socket.publish()
        attending = asyncio.ensure_future(serve_successors(handover_socket.sock, giving))
        try:
            await asyncio.wait_for(talk(giving, place), 60)
            return giving
        finally:
            attending.cancel()
            await asyncio.gather(attending, return_exceptions=True)
            handover_socket.close()
            sock.close()

    return asyncio.run(main())


def test_a_name_follows_from_the_first_address_that_is_one(path: Path) -> None:
    assert path_of(settings(metrics=None)) == path
    assert path_of(ProxySettings(admin=None, ready=None, metrics=None)) is None
    nameless = [Address("127.0.0.1", 0)] * 3
    assert path_of(ProxySettings(admin=nameless[0], ready=nameless[1], metrics=nameless[2])) is None
    assert path_of(ProxySettings(admin=None)) not in (None, path)


def test_nobody_else_can_reach_it(path: Path) -> None:
    handover_socket = RendezvousSocket(path)
    assert connect(path) is None, "it is not found before it serves"
    handover_socket.publish()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = connect(path)
    assert found is not None
    found.close()
    handover_socket.close()
    assert not path.exists() and connect(path) is None


def test_a_name_that_another_has_taken_is_left_alone(path: Path) -> None:
    first, second = RendezvousSocket(path), None
    first.publish()
    second = RendezvousSocket(path)
    second.publish()
    first.close()
    assert path.exists()
    second.close()
    assert not path.exists()


def test_names_of_killed_processes_are_removed(path: Path) -> None:
    """They keep their names; whoever lives, or may be about to be bound, or is somebody else's, keeps its own."""
    long_ago = time.time() - 3600

    def name(port: int, ending: str = "") -> Path:
        return path.with_name(path.name.replace("19000", str(port)) + ending)

    def bind(where: Path) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.bind(str(where))
        return sock

    serving, starting = RendezvousSocket(name(1)), RendezvousSocket(name(2))
    serving.publish()
    dead = [name(3, ".new"), name(4), name(5), name(5, ".new")]
    elsewhere = path.with_name("handover-127.0.0.1-6-1.sock")  # of another network namespace
    for one in (*dead, elsewhere, young := name(7), alien := path.with_name("notify.sock")):
        bind(one).close()
    (file := name(8)).touch()
    kept = {name(1), name(2, ".new"), elsewhere, young, alien, file}
    for one in {*dead, *kept} - {young}:
        os.utime(one, (long_ago, long_ago))
    assert {*path.parent.iterdir()} == {*dead, *kept}
    mine = RendezvousSocket(path)
    assert {*path.parent.iterdir()} == kept | {bound_path(path)}
    for one in (mine, serving, starting):
        one.close()


def test_the_name_of_a_living_process_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's list of sockets leaves some out while others come and go."""
    monkeypatch.setattr(rendezvous_socket, "_bound_names", set)
    serving = RendezvousSocket(path)
    serving.publish()
    assert remove_dead_names(path.parent, time.time() + 3600) == 0
    assert path.exists()
    serving.close()


def test_a_folder_that_others_can_write_to_is_not_used(path: Path) -> None:
    path.parent.chmod(0o777)
    with pytest.raises(PermissionError):
        RendezvousSocket(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_process_of_another_user_gets_nothing(path: Path) -> None:
    asking = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        "s.connect(sys.argv[1]); os.write(1, s.recv(100) or b'nothing')"
    )

    async def talk(giving: Giving, _: Place) -> None:
        os.chmod(path.parent, 0o711)
        os.chmod(path, 0o666)  # even then
        done = await asyncio.to_thread(
            subprocess.run,
            ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-c", asking, path],
            capture_output=True,
            timeout=50,
        )
        assert done.stdout == b"nothing", done
        assert not giving.left

    run(talk, path)


def test_sockets_change_hands(path: Path) -> None:
    async def talk(giving: Giving, place: Place) -> None:
        inherited = Inherited()
        takeover = TakeOver(settings(), take_over=True)
        await takeover.begin(inherited)
        assert inherited.places == (place,) and not takeover.completed.is_set()
        assert not giving.left
        await takeover.complete((place,))
        assert giving.left == [frozenset({place})]
        inherited.close()
        takeover.close()

    run(talk, path)


def test_without_the_order_nothing_is_given(path: Path) -> None:
    async def talk(giving: Giving, _: Place) -> None:
        inherited = Inherited()
        takeover = TakeOver(settings(), take_over=False)
        await takeover.begin(inherited)
        assert not len(inherited) and takeover.completed.is_set()
        takeover.close()
        assert await asyncio.to_thread(path.exists), "the name is still that of who serves"

    run(talk, path)


def test_a_successor_that_goes_away_changes_nothing(path: Path) -> None:
    async def talk(giving: Giving, place: Place) -> None:
        for _ in range(3):
            inherited = Inherited()
            takeover = TakeOver(settings(), take_over=True)
            await takeover.begin(inherited)
            assert inherited.places == (place,)
            inherited.close()
            takeover.close()
        assert not giving.left

    run(talk, path)


def test_another_protocol_is_refused_in_words(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(giving: Giving, _: Place) -> None:
        monkeypatch.setattr("edgefast.proxy.handover.socket_receiver.PROTOCOL", PROTOCOL + 1)
        with pytest.raises(
            TakeOverRefused, match=f"protocol {PROTOCOL + 1}.*stop the running process first"
        ):
            await TakeOver(settings(), take_over=True).begin(Inherited())
        assert not giving.left

    run(talk, path)


@pytest.mark.parametrize("rubbish", [b"\xff" * 40, b"", msgspec.msgpack.encode({"a": 1})])
def test_rubbish_ends_a_conversation_only(path: Path, rubbish: bytes) -> None:
    async def talk(giving: Giving, place: Place) -> None:
        sock = connect(path)
        assert sock is not None
        sock.send(len(rubbish).to_bytes(4, "little") + rubbish)
        channel: Channel[Answer] = Channel(sock, msgspec.msgpack.Decoder(Answer))
        with pytest.raises(ChannelClosed):
            await channel.receive()
        channel.close()
        inherited = Inherited()
        takeover = TakeOver(settings(), take_over=True)
        await takeover.begin(inherited)
        assert inherited.places == (place,)
        inherited.close()
        takeover.close()

    run(talk, path)


def test_a_worker_without_agent_ends_when_nobody_comes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphan_module, "ORPHAN_LIFE", 0.05)
    steps: list[str] = []

    class Closing(Acceptors):
        def __init__(self) -> None:
            pass

        async def close_all(self) -> None:
            steps.append("queues are emptied")

    async def ended() -> None:
        steps.append("connections are over")

    async def main() -> None:
        handover_socket = RendezvousSocket(path)
        order = asyncio.Event()
        worker = OrphanedWorker(0, 1, Closing(), lambda: steps.append("drain"), ended, {}, order)
        await asyncio.wait_for(worker.run(handover_socket.sock, 5.0), 60)

    asyncio.run(main())
    assert steps == ["drain", "queues are emptied", "connections are over"]


def test_keep_says_many_places(path: Path) -> None:
    """More than one message holds."""

    async def talk(giving: Giving, _: Place) -> None:
        inherited = Inherited()
        takeover = TakeOver(settings(), take_over=True)
        await takeover.begin(inherited)
        places = tuple(("127.0.0.1", 1 + number) for number in range(2000))
        await takeover.complete(places)
        assert giving.left == [frozenset(places)]
        inherited.close()
        takeover.close()

    run(talk, path)
