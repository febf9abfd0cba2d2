"""Http: connections to one API server: opened, kept while idle, and reused.

In: the server's address, TLS and proxy from an Access; requests.
Out: `Answer`s (wire.py). If the server just closed a kept connection, only a read request is sent
again, because others may have had an effect.
Must never: use a connection for two requests at a time, or send a line break inside a value.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from controller.kube.access import Access
from controller.kube.wire import Answer, Broken, Wire

__all__ = ["Http"]

#: Seconds for the addresses of a name to be found, and again for them to be tried.
_CONNECT_TIMEOUT = 5.0
#: How many of them are tried: each has its part of that time, and none less than half a second.
_ADDRESSES = 10
#: Seconds for which an unused connection is kept; API servers keep theirs for 90 or more.
_IDLE = 75.0
#: What may not be in a request line or a header.
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NO_TARGET = re.compile(r"[^\x21-\x7e]")


class Http:
    """A pool of HTTP connections to one API server; call `close` at the end."""

    def __init__(self, access: Access, headers: Mapping[str, str]) -> None:
        """`headers`: of every request."""
        self._access = access
        self._url = urlsplit(access.host)
        self._secure = self._url.scheme == "https"
        self._port = self._url.port or (443 if self._secure else 80)
        self._proxy = _split_proxy(access.proxy) if access.proxy is not None else None
        self._headers = {"Host": self._url.netloc.rpartition("@")[2], **headers}
        self._idle: list[Wire] = []  # the one that was used last at the end
        self._open: set[Wire] = set()

    async def close(self) -> None:
        """Close all connections, also of cancelled calls, without a TLS close_notify (up to 30 s)."""
        for wire in tuple(self._open):
            wire.cut()
        await asyncio.sleep(0)  # transports close their sockets in the next turn

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        """Make a request; `path` is behind the address of the server. Raises Broken, OSError."""
        request = self._encode(method, path, headers, body)
        while True:
            wire = self._take_idle() or await self._connect()
            kept = wire.used
            try:
                return await wire.ask(request)
            except Broken as broken:
                if not (kept and broken.untouched and method == "GET"):
                    raise

    def _encode(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> bytes:
        target = self._url.path + path
        lines = dict(self._headers)
        if self._proxy is not None and not self._secure:
            target = f"http://{lines['Host']}{target}"
            lines |= _proxy_headers(self._proxy)
        lines |= headers
        if body is not None or method in ("POST", "PUT", "PATCH"):
            lines["Content-Length"] = str(len(body or b""))
        if _NO_TARGET.search(target) or any(map(_BREAKS.search, lines.values())):
            raise Broken("a path or header has invalid characters")
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1", "replace") + (
            body or b""
        )

    # --- connections ----------------------------------------------------------------------------

    def _take_idle(self) -> Wire | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            wire = self._idle.pop()
            if now - wire.idle_since < _IDLE:
                return wire
            for old in (wire, *self._idle):  # whose last use was before that
                old.cut()
            self._idle.clear()
        return None

    def _on_lost(self, wire: Wire) -> None:
        self._open.discard(wire)
        if wire in self._idle:
            self._idle.remove(wire)

    async def _connect(self) -> Wire:
        """Make a connection, through the proxy if there is one."""
        access, host = self._access, self._url.hostname or ""
        tls = access.tls if self._secure else None
        proxy = self._proxy
        if proxy is None:
            return await self._wrap(await _dial(host, self._port), tls, access.server_name or host)
        if proxy.scheme != "http":
            message = f"a proxy of {proxy.scheme}:// cannot be used, only one of http://"
            raise OSError(message)
        made = await _dial(proxy.hostname or "", proxy.port or 80)
        if self._secure:
            made = await _tunnel(made, f"{_bracket(host)}:{self._port}", proxy)
        return await self._wrap(made, tls, access.server_name or host)

    async def _wrap(self, made: socket.socket, tls: ssl.SSLContext | None, name: str) -> Wire:
        """Make a wire of a connected socket."""
        loop = asyncio.get_running_loop()
        try:
            _, wire = await loop.create_connection(
                lambda: Wire(self._idle.append, self._on_lost),
                sock=made,
                ssl=tls,
                server_hostname=name if tls is not None else None,
            )
        except BaseException:
            made.close()
            raise
        if not wire.lost:  # by what the server said in the flight that ended the handshake
            self._open.add(wire)
        return wire


async def _dial(host: str, port: int) -> socket.socket:
    """Connect to the first address of a name that can be reached. TLS and proxies have the time of the whole call."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_CONNECT_TIMEOUT):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    del found[_ADDRESSES:]
    failed: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in found:
        made = _make_socket(family, kind, protocol)
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT / len(found)):
                await loop.sock_connect(made, address)
            return made
        except OSError as error:  # TimeoutError is one
            made.close()
            failed = error
        except BaseException:
            made.close()
            raise
    raise failed


def _make_socket(family: int, kind: int, protocol: int) -> socket.socket:
    """Make a socket that notices within about 30 s that the other machine is gone without a word."""
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    # Bytes of ours that nobody acknowledges: the same time.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)
    return made


async def _tunnel(made: socket.socket, target: str, proxy: SplitResult) -> socket.socket:
    """Ask a proxy for a way through (RFC 9110 9.3.6)."""
    loop = asyncio.get_running_loop()
    lines = {"Host": target, **_proxy_headers(proxy)}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    message = b""
    try:
        await loop.sock_sendall(made, f"CONNECT {target} HTTP/1.1\r\n{head}\r\n".encode())
        # Byte by byte: what comes after the head is the server's.
        while not message.endswith(b"\r\n\r\n"):
            more = await loop.sock_recv(made, 1)
            if not more or len(message) > 8192:
                raise OSError("the answer of the proxy cannot be read")
            message += more
        status = message.split(b" ", 2)[1:2]
        if not message.startswith(b"HTTP/1.") or status != [b"200"]:
            line = message.split(b"\r\n", 1)[0].decode("latin-1")
            raise OSError(f"the proxy refused: {line}")
    except BaseException:
        with contextlib.suppress(OSError):
            made.close()
        raise
    return made


def _split_proxy(address: str) -> SplitResult:
    """As Go and curl have it, an address alone is one of http://."""
    return urlsplit(address if "://" in address else f"http://{address}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    named = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(named).decode()}"}


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
