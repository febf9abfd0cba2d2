"""Sockets that a service manager keeps: a restart, a crash and socket activation refuse nobody."""

from __future__ import annotations

import configparser
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.command import gateway, gateway_class, mark_of, route, save, tls_secret
from proxy.handover.test_limits_go_on import limited, status
from proxy.handover.test_tickets_go_on import secrets_of
from proxy.living import ROOT
from proxy.pki import Authority
from proxy.service_manager import ServiceManager
from proxy.steady import Steady
from proxy.tunnels import tunnel, tunnel_backend, tunnel_objects
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

UNIT = ROOT / "docs" / "edgefast.service"
Manage = Callable[..., ServiceManager]


@pytest.fixture
def manage(tmp_path: Path) -> Iterator[Manage]:
    """Managers of a service with the objects of `o.yaml`; their room is the unit's."""
    made: list[ServiceManager] = []
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    most = int(unit["Service"]["FileDescriptorStoreMax"])

    def make(*arguments: str, room: int = most) -> ServiceManager:
        command = [sys.executable, "-m", "edgefast.cli.main", "run", "-f", str(tmp_path / "o.yaml")]
        for name in ("admin", "metrics", "ready"):
            command += [f"--{name}", f"127.0.0.1:{free_port()}"]
        command += ["--workers", "2", "--min-drain", "0", *arguments]
        made.append(ServiceManager(tmp_path, command, room=room, cwd=ROOT))
        return made[-1]

    yield make
    for one in made:
        one.close()


def serve(folder: Path, mark: str, *ports: int, tls: bool = False) -> None:
    found = [gateway_class(), gateway(*ports, tls="cert" if tls else ""), route(mark)]
    found += [tls_secret(Authority().issue("x.test"))] if tls else []
    save(folder / "o.yaml", *found)


def test_a_restart_refuses_nobody(manage: Manage, tmp_path: Path) -> None:
    kept, left = free_port(), free_port()
    serve(tmp_path, "old", kept, left, tls=True)
    manager = manage("--bind", "127.0.0.1")
    manager.start()
    memories = {"rate-limits": 1, "ticket-keys": 1}
    operators = {"admin": 1, "metrics": 1, "ready": 1, **memories}
    assert manager.names() == {f"port-{kept}": 2, f"port-{left}": 2, **operators}
    with Steady(kept, tls=True) as load:
        load.more(100)
        serve(tmp_path, "new", kept, tls=True)
        manager.until(lambda: f"port-{left}" not in manager.names(), "a port out of the store")
        manager.restart()
        load.more(100)
    assert not load.failures, (load.failures[:5], manager.journal)
    assert manager.names() == {f"port-{kept}": 2, **operators}
    assert manager.stop() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", kept), 20)


def test_a_restart_does_not_let_new_ones_wait_for_old_tunnels(
    manage: Manage, tmp_path: Path
) -> None:
    """Accepting goes on until the drain deadline: only then is there nobody for a moment."""
    port = free_port()
    with tunnel_backend() as backend:
        save(tmp_path / "o.yaml", *tunnel_objects(port, backend))
        manager = manage("--bind", "127.0.0.1", "--drain-timeout", "4")
        manager.start()
        with tunnel(port) as old:
            manager.order_stop()
            manager.until(lambda: "draining" in manager.journal, "the drain")
            for _ in range(5):
                with tunnel(port) as young:
                    assert young.says(b"hello")
                assert old.says(b"still here")
            assert "drained" not in manager.journal
            manager.reap()
            old.wait_for_end()
        manager.start()


def test_a_crash_keeps_the_queues(manage: Manage, tmp_path: Path) -> None:
    """Requests in flight are lost with their process; nobody is refused."""
    port = free_port()
    serve(tmp_path, "old", port)
    manager = manage("--bind", "127.0.0.1")
    manager.start()
    with Steady(port, clients=8) as load:
        load.more(100)
        manager.kill()
        load.more(100)
    assert not [one for one in load.failures if "Refused" in one or "Timeout" in one]
    assert len(load.failures) <= 8, load.failures


def test_a_store_without_room_is_told_and_not_relied_on(manage: Manage, tmp_path: Path) -> None:
    port = free_port()
    serve(tmp_path, "old", port)
    manager = manage("--bind", "127.0.0.1", room=3)
    manager.start()
    assert "raise FileDescriptorStoreMax=" in manager.journal
    assert manager.refused == 0 and f"port-{port}" not in manager.names()
    assert manager.stop() == 0


@pytest.mark.parametrize("family", ["one", "both"])
def test_sockets_of_a_socket_unit_are_used(manage: Manage, tmp_path: Path, family: str) -> None:
    """One socket for all workers; a socket of all IPv6 addresses is often one of IPv4, too."""
    port = free_port()
    serve(tmp_path, "old", port)
    manager = manage(*(() if family == "both" else ("--bind", "127.0.0.1")))
    if family == "both":
        made = socket.create_server(
            ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64
        )
    else:
        made = socket.create_server(("127.0.0.1", port), backlog=64)
    manager.store.append(("edgefast.socket", made.detach()))
    manager.start()
    assert mark_of(port) == "old"
    assert "PortUnavailable" not in manager.journal and "in use" not in manager.journal
    with Steady(port, clients=8) as load:
        load.more(50)
        manager.restart()
        load.more(50)
    assert not load.failures, (load.failures[:5], manager.journal)


def test_what_rate_limits_have_counted_outlives_a_restart(manage: Manage, tmp_path: Path) -> None:
    port = free_port()
    limited(tmp_path / "o.yaml", port)
    manager = manage("--bind", "127.0.0.1")
    manager.start()
    assert [status(port) for _ in range(3)] == [302, 302, 429]
    manager.restart()
    assert status(port) == 429
    manager.kill()
    assert manager.names()["rate-limits"] == 1
    assert status(port) == 429


def test_keys_of_session_tickets_outlive_a_restart_and_a_crash(
    manage: Manage, tmp_path: Path
) -> None:
    serve(tmp_path, "old", free_port())
    manager = manage("--bind", "127.0.0.1")
    manager.start()
    held = secrets_of(manager.pid)
    assert held
    manager.restart()
    assert secrets_of(manager.pid) == held
    manager.kill()
    manager.until(lambda: secrets_of(manager.pid) == held, "the keys in the next process")


def test_sockets_come_before_counters_where_room_is_short(manage: Manage, tmp_path: Path) -> None:
    port = free_port()
    limited(tmp_path / "o.yaml", port)
    manager = manage("--bind", "127.0.0.1", room=5)
    manager.start()
    assert manager.names() == {f"port-{port}": 2, "admin": 1, "metrics": 1, "ready": 1}
    assert "FileDescriptorStoreMax" not in manager.journal
