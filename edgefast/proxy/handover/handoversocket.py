"""HandoverSocket: where a successor finds the process that serves now.

In: the addresses of the operator's servers, which no two gateways of a machine share. Out: a listening unix
socket (mode 0600, in a folder of this user alone), also held by workers, so that they can be found when
their agent is gone; connections to it. The name is published only when its owner serves. Must never speak
with a process of another user, nor trust a folder that others can write to.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
import struct
from pathlib import Path

from edgefast.proxy.settings import ProxySettings

__all__ = ["HandoverSocket", "bound_path", "connect", "is_own", "path_of"]

log = logging.getLogger(__name__)

_BACKLOG = 16
_FRESH = ".new"  # what a name ends with until its owner serves
_CREDENTIALS = struct.Struct("=iII")  # pid, uid, gid (struct ucred)
#: Bytes of an address (sun_path of unix(7), with its end).
_PATH_MAX = 107


def path_of(settings: ProxySettings) -> Path | None:
    """Return where gateways with these settings meet; None where no address tells them from others."""
    for address in (settings.admin, settings.ready, settings.metrics):
        if address is not None and address.port:
            name = f"handover-{address.host}-{address.port}-{_network()}.sock"
            path = _folder() / name
            return path if len(os.fsencode(path)) + len(_FRESH) <= _PATH_MAX else None
    return None


def bound_path(path: Path) -> Path:
    """Return the name that the socket found at `path` was bound with."""
    return path.with_name(path.name + _FRESH)


def _folder() -> Path:
    """Return the service's own folder, else one of this user."""
    own = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return Path(own) if own else Path(f"/tmp/edgefast-{os.geteuid()}")


def _network() -> int:
    """Return the network namespace: addresses are one process's within it."""
    try:
        return os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return 0


class HandoverSocket:
    """A listening socket; found by others after `publish`."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        self._fresh = bound_path(path)
        self._published = False
        _check_folder(path.parent)
        self._fresh.unlink(missing_ok=True)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            before = os.umask(0o177)
            try:
                self.sock.bind(os.fspath(self._fresh))
            finally:
                os.umask(before)
            self._inode = os.stat(self._fresh).st_ino
            self.sock.listen(_BACKLOG)
        except BaseException:
            self.sock.close()
            raise

    def publish(self) -> None:
        """Be found, in place of whoever was; raises OSError."""
        os.rename(self._fresh, self._path)
        self._published = True

    def close(self) -> None:
        """Close this process's copy, and take the name away if it is still this one's."""
        self.sock.close()
        path = self._path if self._published else self._fresh
        try:
            if os.lstat(path).st_ino == self._inode:
                path.unlink()
        except OSError as error:
            log.debug("%s: %s", path, error.strerror)


def connect(path: Path) -> socket.socket | None:
    """Connect to whoever is found at `path`; None when nobody is, or it is another user's."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        sock.connect(os.fspath(path))
    except OSError as error:
        sock.close()
        if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
            log.warning("%s cannot be reached: %s", path, error.strerror)
        return None
    if not is_own(sock):
        sock.close()
        log.warning("%s belongs to another user: not asked for sockets", path)
        return None
    return sock


def is_own(sock: socket.socket) -> bool:
    """Tell whether a process of this user is at the other end."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(credentials)[1] == os.geteuid())


def _check_folder(folder: Path) -> None:
    """Make the folder, or be sure that nobody else writes to it. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = os.stat(folder) if "RUNTIME_DIRECTORY" in os.environ else os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "the folder is not this user's alone", str(folder))
