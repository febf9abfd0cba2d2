"""RendezvousSocket: the socket on which a successor finds the serving process.

In: the addresses of the operator's servers, which are unique for each gateway of a machine.
Out: a listening unix socket (mode 0600, in a folder of this user alone), and connections to it.
Workers also hold the socket, so that a successor finds them without their agent. The name is
published only when its owner serves.
Must never: communicate with a process of another user, or trust a folder that others can write to.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import socket
import stat
import struct
import time
from pathlib import Path

from edgefast.proxy.settings import ProxySettings

__all__ = ["RendezvousSocket", "bound_path", "connect", "is_own", "path_of", "remove_dead_names"]

log = logging.getLogger(__name__)

_BACKLOG = 16
_NAME = "handover-"
#: Seconds after which a socket's name without a socket is nobody's, and how many names are looked at.
_SETTLED = 10.0
_MOST_NAMES = 10_000
_FRESH = ".new"  # what a name ends with until its owner serves
_CREDENTIALS = struct.Struct("=iII")  # pid, uid, gid (struct ucred)
#: Bytes of an address (sun_path of unix(7), with its end).
_PATH_MAX = 107


def path_of(settings: ProxySettings) -> Path | None:
    """Return where gateways with these settings meet; None where no address tells them from others."""
    for address in (settings.admin, settings.ready, settings.metrics):
        if address is not None and address.port:
            name = f"{_NAME}{address.host}-{address.port}-{_network()}.sock"
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


def remove_dead_names(folder: Path, now: float) -> int:
    """Remove what killed processes left in `folder`: names that no socket of this network is bound with.

    Returns how many. `now`: seconds since 1970; names younger than _SETTLED are left, because a socket that is being
    bound has its name first. Those of other network namespaces are left, too: their sockets cannot be seen from here.
    """
    ending = f"-{_network()}.sock"
    found: dict[Path, int] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in itertools.islice(entries, _MOST_NAMES):
            name = entry.name.removesuffix(_FRESH)
            with contextlib.suppress(OSError):
                look = entry.stat(follow_symlinks=False)
                is_ours = name.startswith(_NAME) and name.endswith(ending)
                if is_ours and stat.S_ISSOCK(look.st_mode) and look.st_mtime < now - _SETTLED:
                    found[folder / entry.name] = look.st_ino
    bound = _bound_names() if found else None
    removed = 0
    for path, inode in found.items():
        if bound is None or path.name.removesuffix(_FRESH) + _FRESH in bound:
            continue
        with contextlib.suppress(OSError):
            if os.lstat(path).st_ino == inode and _is_deserted(path):
                path.unlink()
                removed += 1
    return removed


def _is_deserted(path: Path) -> bool:
    """Tell whether no socket is behind a name: the kernel's list leaves some out while others come and go."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as sock:
        return sock.connect_ex(os.fspath(path)) == errno.ECONNREFUSED


def _bound_names() -> set[str] | None:
    """Return the names of all unix sockets of this network, without folders, which can be spelled in several ways.

    Field 7 of each line, proc_net(5). None: not known.
    """
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    return {
        os.path.basename(fields[7]) for line in lines if len(fields := line.split(None, 7)) == 8
    }


class RendezvousSocket:
    """A listening socket; found by others after `publish`."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        self._fresh = bound_path(path)
        self._published = False
        _check_folder(path.parent)
        if dead := remove_dead_names(path.parent, time.time()):
            log.info("%s: removed %d names of processes that were killed", path.parent, dead)
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
        log.warning("%s belongs to another user; its sockets are not taken over", path)
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
        raise PermissionError(errno.EPERM, "other users have access to the folder", str(folder))
