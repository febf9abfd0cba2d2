"""Control socket: accepts commands that change a process on a unix socket, never on a TCP address.

In: the admin address, which determines the name of the socket; routes.
Out: answers to processes of the same user or root. The socket is abstract (unix(7)): its name
belongs to the network namespace. Containers of one pod reach it without a shared volume, and no
route of the proxy can name it. `send_command` is the client. An abstract name has no owner and any
user can bind it first, so root also checks the user of the server's socket.
Must never: answer another user, send a command to one, or end the process because the name is in
use.
"""

from __future__ import annotations

import asyncio
import errno
import http.client
import logging
import os
import socket
import struct
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from edgefast.httpd.address import EVERYWHERE, Address, family_of
from edgefast.httpd.server import Handler, HttpServer, Reply, Request

__all__ = ["ControlSocket", "find_owner", "command_names", "refuse_command", "send_command"]

log = logging.getLogger(__name__)

_BACKLOG = 64
_CREDENTIALS = struct.Struct("=iII")  # pid, uid, gid (struct ucred)
_LISTENING = "0A"  # TCP_LISTEN in /proc/net/tcp
#: Seconds between two tries to bind while a predecessor still has the name.
_RETRY = 0.1
#: Tries after which the socket counts as not bound; a predecessor that hands over releases the name before.
_PATIENCE = 100


def command_names(admin: Address) -> tuple[str, ...]:
    """Return the names that a process with this admin address may have; the first one is its own. No leading zero byte."""
    hosts = ("any",) if admin.host in (EVERYWHERE, "0.0.0.0") else (admin.host, "any")
    return tuple(f"edgefast-admin-{host}-{admin.port}" for host in hosts)


async def refuse_command(request: Request) -> Reply:
    """Refuse an order that came by TCP."""
    message = (
        f"refused: {request.method} {request.path} is an order, which is accepted on a unix socket only; "
        "use `edgefast shutdown` or `edgefast log-level`, or curl --abstract-unix-socket edgefast-admin-HOST-PORT\n"
    )
    return Reply(403, message.encode())


class ControlSocket:
    """Serves orders while it runs."""

    def __init__(
        self,
        admin: Address,
        routes: Mapping[tuple[str, str], Handler],
        *,
        probes: Collection[str] = (),
        retry: float = _RETRY,
    ) -> None:
        """`admin`: as it is bound, with its port."""
        self.name = command_names(admin)[0]
        self.trouble = ""  # why no orders are taken, "" while the socket is bound or may still be
        self.on_trouble: Callable[[], None] = lambda: None  # `trouble` changed
        self._routes = routes
        self._probes = probes
        self._retry = retry
        self._server: HttpServer | None = None
        self._retired = False

    async def run(self) -> None:
        """Serve until cancelled; wait for a name that another process has."""
        sock = await self._bind()
        self._report("")
        if sock is None:
            return
        self._server = HttpServer(sock, self._routes, probes=self._probes, admits=_is_trusted)
        await self._server.run()

    def retire(self) -> None:
        """Release the name for a successor."""
        self._retired = True
        if self._server is not None:
            self._server.shut()

    async def _bind(self) -> socket.socket | None:
        tries = 0
        while not self._retired:
            try:
                return _bind(self.name)
            except OSError as error:
                in_use = error.errno == errno.EADDRINUSE
                message = "in use by another process" if in_use else str(error.strerror).lower()
            tries += 1
            if not in_use or tries >= _PATIENCE:
                self._report(f"order socket @{self.name} cannot be bound: {message}")
            await asyncio.sleep(self._retry)
        return None

    def _report(self, problem: str) -> None:
        if problem == self.trouble:
            return
        self.trouble = problem
        if problem:
            log.error("orders: %s; trying again", problem)
        else:
            log.info("orders: socket @%s is bound", self.name)
        self.on_trouble()


def send_command(
    admin: Address, target: str, deadline: float, body: bytes = b""
) -> tuple[int, bytes]:
    """POST to the process with this admin address; returns status and body. Raises OSError, http.client.HTTPException."""
    connection = _Connection(admin, deadline)
    try:
        connection.request("POST", target, body or None)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class _Connection(http.client.HTTPConnection):
    def __init__(self, admin: Address, deadline: float) -> None:
        super().__init__("localhost", timeout=deadline)
        self._admin = admin
        self._names = command_names(admin)

    def connect(self) -> None:
        refused: OSError | None = None
        for name in self._names:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(self.timeout)
            try:
                sock.connect(f"\0{name}")
                if not _is_trusted(sock) and not _is_of_admin(sock, self._admin):
                    raise PermissionError(errno.EPERM, "the socket belongs to another user")
            except OSError as error:
                sock.close()
                refused = error
                if not isinstance(error, ConnectionRefusedError):
                    raise
            else:
                self.sock = sock
                return
        assert refused is not None
        raise refused


def _bind(name: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(f"\0{name}")
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def _is_trusted(sock: socket.socket) -> bool:
    """Tell whether the peer is a process of this user, or of root."""
    return _user_of(sock) in (0, os.geteuid())


def _is_of_admin(sock: socket.socket, admin: Address) -> bool:
    """For root, tell whether the peer's user owns the admin server. Other users trust their own processes only."""
    return os.geteuid() == 0 and _user_of(sock) == find_owner(admin)


def _user_of(sock: socket.socket) -> int:
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1])


def find_owner(admin: Address, tables: Path = Path("/proc/net")) -> int | None:
    """Return the user of the TCP socket that listens at an address of this network namespace; None: no socket does.

    A socket of exactly this address counts before one of every address, as it does in the kernel. Two users there: None.
    """
    places = [(admin.host, "tcp6" if ":" in admin.host else "tcp")]
    if ":" not in admin.host:
        places += [(f"::ffff:{admin.host}", "tcp6"), ("0.0.0.0", "tcp")]
    places.append(("::", "tcp6"))
    if admin.host == EVERYWHERE:
        places.append(("0.0.0.0", "tcp"))
    for host, table in places:
        wanted = f"{_kernel_hex(host)}:{admin.port:04X}"
        try:
            lines = (tables / table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        rows = [line.split() for line in lines]
        users = {int(row[7]) for row in rows if row[1] == wanted and row[3] == _LISTENING}
        if users:
            return users.pop() if len(users) == 1 else None
    return None


def _kernel_hex(host: str) -> str:
    """Return an address as /proc/net/tcp has it: words of 32 bits in the machine's byte order."""
    packed = socket.inet_pton(family_of(host), host)
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
