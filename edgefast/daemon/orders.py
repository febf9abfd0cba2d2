"""Orders: what changes a process's state is taken on a unix socket of its own, never on a TCP address.

In: the admin address, which names the socket; routes. Out: answers to processes of the same user or root. The socket is abstract (unix(7)):
its name belongs to the network namespace, so containers of one pod reach it without a shared volume, and no route of the proxy can name it.
`send_order` is the client. Must never: answer another user, or end the process because the name is taken.
"""

from __future__ import annotations

import asyncio
import errno
import http.client
import logging
import os
import socket
import struct
from collections.abc import Collection, Mapping

from edgefast.daemon.address import EVERYWHERE, Address
from edgefast.daemon.httpserver import Handler, HttpServer, Reply, Request

__all__ = ["OrderServer", "order_names", "refuse_order", "send_order"]

log = logging.getLogger(__name__)

_BACKLOG = 64
_CREDENTIALS = struct.Struct("=iII")  # pid, uid, gid (struct ucred)
#: Seconds between two tries to bind while a predecessor still has the name.
_RETRY = 0.1
#: Tries after which a log line says that somebody else has it.
_PATIENCE = 100


def order_names(admin: Address) -> tuple[str, ...]:
    """Return the names that a process with this admin address may have; the first one is its own. No leading zero byte."""
    hosts = ("any",) if admin.host in (EVERYWHERE, "0.0.0.0") else (admin.host, "any")
    return tuple(f"edgefast-admin-{host}-{admin.port}" for host in hosts)


async def refuse_order(request: Request) -> Reply:
    """Answer an order that came by TCP."""
    said = (
        f"refused: {request.method} {request.path} is an order, which is taken on a unix socket only; "
        "use `edgefast shutdown` or `edgefast log-level`, or curl --abstract-unix-socket edgefast-admin-HOST-PORT\n"
    )
    return Reply(403, said.encode())


class OrderServer:
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
        self.name = order_names(admin)[0]
        self._routes = routes
        self._probes = probes
        self._retry = retry
        self._server: HttpServer | None = None
        self._retired = False

    async def run(self) -> None:
        """Serve until cancelled; a name that another process has is waited for."""
        sock = await self._bind()
        if sock is None:
            return
        self._server = HttpServer(sock, self._routes, probes=self._probes, admits=_is_trusted)
        await self._server.run()

    def retire(self) -> None:
        """Leave the name to a successor."""
        self._retired = True
        if self._server is not None:
            self._server.shut()

    async def _bind(self) -> socket.socket | None:
        tries = 0
        while not self._retired:
            try:
                return _bind(self.name)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    log.error("orders: socket @%s cannot be bound: %s", self.name, error.strerror)
                    return None
            tries += 1
            if tries == _PATIENCE:
                log.warning(
                    "orders: socket @%s is in use by another process; still trying", self.name
                )
            await asyncio.sleep(self._retry)
        return None


def send_order(
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
        self._names = order_names(admin)

    def connect(self) -> None:
        refused: OSError | None = None
        for name in self._names:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(self.timeout)
            try:
                sock.connect(f"\0{name}")
                if os.geteuid() and not _is_trusted(sock):
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
    """Tell whether a process of this user, or of root, is at the other end."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(credentials)[1] in (0, os.geteuid())
