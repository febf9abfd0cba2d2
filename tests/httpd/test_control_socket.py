"""Orders: a client sends them only to a socket of a trusted user."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from pathlib import Path

import pytest

from edgefast.httpd import control_socket
from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import ControlSocket, command_names, find_owner, send_command

pytestmark = pytest.mark.wire

_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
_OWNER = 4242  # of the process that has the name


def _table(*rows: tuple[str, int, str, int]) -> str:
    lines = (
        f"   0: {control_socket._kernel_hex(host)}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {uid} 0 1 1\n"
        for host, port, state, uid in rows
    )
    return _HEAD + "".join(lines)


@pytest.mark.parametrize(
    ("host", "tcp", "tcp6", "owner"),
    [
        ("127.0.0.1", [("127.0.0.1", 19000, "0A", 7)], [], 7),
        ("127.0.0.1", [("0.0.0.0", 19000, "0A", 7), ("127.0.0.5", 19000, "0A", 8)], [], 7),
        ("127.0.0.1", [("127.0.0.1", 19000, "0A", 7), ("0.0.0.0", 19000, "0A", 8)], [], 7),
        ("127.0.0.1", [], [("::", 19000, "0A", 7)], 7),
        ("127.0.0.1", [], [("::ffff:127.0.0.1", 19000, "0A", 7), ("::", 19000, "0A", 8)], 7),
        ("::1", [("0.0.0.0", 19000, "0A", 8)], [("::1", 19000, "0A", 7)], 7),
        ("::", [("0.0.0.0", 19000, "0A", 7)], [], 7),
        ("127.0.0.1", [("127.0.0.1", 19001, "0A", 7)], [], None),
        ("127.0.0.1", [("127.0.0.1", 19000, "01", 7)], [], None),
        ("127.0.0.1", [("127.0.0.1", 19000, "0A", 7), ("127.0.0.1", 19000, "0A", 8)], [], None),
    ],
)
def test_the_owner_of_an_admin_address(
    host: str,
    tcp: list[tuple[str, int, str, int]],
    tcp6: list[tuple[str, int, str, int]],
    owner: int | None,
    tmp_path: Path,
) -> None:
    (tmp_path / "tcp").write_text(_table(*tcp))
    (tmp_path / "tcp6").write_text(_table(*tcp6))
    assert find_owner(Address(host, 19000), tmp_path) == owner


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
def test_the_kernel_names_the_owner(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as admin:
        port = admin.getsockname()[1]
        assert find_owner(Address(host, port)) == os.geteuid()
    assert find_owner(Address(host, port)) is None


@pytest.mark.parametrize(
    ("user", "owner", "sent"),
    [(0, _OWNER, True), (0, 7, False), (0, None, False), (1000, _OWNER, False)],
)
def test_root_sends_orders_to_the_owner_of_the_admin_server_only(
    monkeypatch: pytest.MonkeyPatch, user: int, owner: int | None, sent: bool
) -> None:
    """An abstract name has no owner: another user can bind it first."""
    with socket.create_server(("127.0.0.1", 0)) as reserved, socket.socket(socket.AF_UNIX) as named:
        admin = Address("127.0.0.1", reserved.getsockname()[1])
        named.bind(f"\0{command_names(admin)[0]}")
        named.listen(1)
        monkeypatch.setattr(os, "geteuid", lambda: user)
        monkeypatch.setattr(control_socket, "_user_of", lambda _: _OWNER, raising=False)
        monkeypatch.setattr(control_socket, "find_owner", lambda _: owner, raising=False)
        if sent:
            with pytest.raises(TimeoutError):  # it is connected, and nothing answers
                send_command(admin, "/healthcheck/fail", 0.05)
        else:
            with pytest.raises(PermissionError):
                send_command(admin, "/healthcheck/fail", 5)


@pytest.mark.parametrize("error", [errno.EADDRINUSE, errno.EPERM])
def test_a_socket_that_cannot_be_bound_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """Until it is bound. A predecessor that keeps the name for a moment is none."""
    bind, refused = control_socket._bind, 0

    def refuse(name: str) -> socket.socket:
        nonlocal refused
        if refused < 3 * control_socket._PATIENCE:
            refused += 1
            raise OSError(error, os.strerror(error))
        return bind(name)

    monkeypatch.setattr(control_socket, "_bind", refuse)
    told: list[tuple[int, str]] = []

    async def test() -> None:
        server = ControlSocket(Address("127.0.0.1", os.getpid()), {}, retry=0.0)
        bound = asyncio.Event()

        def tell() -> None:
            told.append((refused, server.trouble.rpartition(": ")[2]))
            if not server.trouble:
                bound.set()

        server.on_trouble = tell
        task = asyncio.create_task(server.run())
        async with asyncio.timeout(20):
            await bound.wait()
        task.cancel()

    asyncio.run(test())
    first = (
        (control_socket._PATIENCE, "in use by another process")
        if error == errno.EADDRINUSE
        else (1, "operation not permitted")
    )
    assert told == [first, (3 * control_socket._PATIENCE, "")]
