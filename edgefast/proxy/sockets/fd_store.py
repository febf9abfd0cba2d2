"""FdStore: listening sockets that the service manager keeps while this process restarts (sd_pid_notify_with_fds(3)).

In: the listening sockets, by name.
Out: datagrams with `FDSTORE=1` and descriptors to the manager, which passes them to the next start
(inherited.py); `FDSTOREREMOVE=1` for released sockets. Active only if the manager announced free
space ($FDSTORE).
Must never: block, or report a socket as kept that was not sent; the drain (agent/drain.py) leaves
accept queues open because of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterable, Mapping, Sequence

from edgefast.proxy.process.sd_notify import manager_address
from edgefast.proxy.sockets.inherited import MEMORIES

__all__ = ["FdStore"]

log = logging.getLogger(__name__)

#: Descriptors in one datagram (the kernel's ceiling is 253, SCM_MAX_FD).
_PER_DATAGRAM = 64
_UNKNOWN = -1  # no inode: what is stored is not what is wanted
#: Seconds until a manager that was too busy is told again.
_AGAIN = 0.2


class FdStore:
    """Stores listening sockets in the service manager across a restart.

    Without a manager it does nothing.
    """

    def __init__(self, address: str, room: int, names: Iterable[str] = ()) -> None:
        """`names`: what is in the store from the process before."""
        self._address = address
        self._room = room if address else 0
        self._stored: dict[str, frozenset[int]] = {
            name: frozenset({_UNKNOWN} if name in MEMORIES else ()) for name in names
        }
        self._wanted: dict[str, Sequence[int]] = {}
        #: What is kept as well where there is room; stored anew by each process, so that one which could not use what its
        #: predecessor had there leaves its own.
        self.spare: Mapping[str, int] = {}
        self._due = asyncio.Event()
        self._told_full = 0

    @classmethod
    def of_manager(cls, environment: Mapping[str, str], names: Iterable[str] = ()) -> FdStore:
        """Return the store of the manager that started this process, if it has one."""
        room = environment.get("FDSTORE", "")
        return cls(manager_address(), int(room) if room.isdecimal() else 0, names)

    @property
    def keeps(self) -> bool:
        """Whether the manager has all that is listened on."""
        return bool(self._room and self._wanted) and not self._due.is_set() and not self._is_full()

    def follow(self, wanted: Mapping[str, Sequence[int]]) -> None:
        """Have exactly these descriptors kept, under these names (no colon in them)."""
        if not self._room:
            return
        self._wanted = dict(wanted)
        self._due.set()
        self._try()

    async def run(self) -> None:
        """Tell the manager what it was too busy for, until cancelled."""
        while True:
            await self._due.wait()
            await asyncio.sleep(_AGAIN)
            self._try()

    def _is_full(self) -> bool:
        return sum(map(len, self._wanted.values())) > self._room

    def _try(self) -> None:
        """Bring the store up to date, as far as the manager takes it."""
        if self._is_full():
            need = sum(map(len, self._wanted.values()))
            if need != self._told_full:
                self._told_full = need
                log.warning(
                    "service manager: it keeps %d descriptors but %d are needed; a restart "
                    "will refuse connections; raise FileDescriptorStoreMax= in the unit",
                    self._room,
                    need,
                )
            wanted: dict[str, Sequence[int]] = {}
        else:
            wanted = self._wanted
            if wanted and sum(map(len, wanted.values())) + len(self.spare) <= self._room:
                wanted = {**wanted, **{name: (fd,) for name, fd in self.spare.items()}}
        try:
            self._bring(wanted)
        except OSError as error:
            log.debug("service manager: it does not accept descriptors now: %s", error)
            return
        self._due.clear()

    def _bring(self, wanted: Mapping[str, Sequence[int]]) -> None:
        sockets = {name: {os.fstat(fd).st_ino: fd for fd in fds} for name, fds in wanted.items()}
        for name in list(self._stored):
            # Out of the store before anybody empties and closes the queue.
            if not self._stored[name] <= sockets.get(name, {}).keys() or name not in sockets:
                self._send(f"FDSTOREREMOVE=1\nFDNAME={name}", ())
                del self._stored[name]
        for name, by_inode in sockets.items():
            before = self._stored.get(name, frozenset())
            fresh = [fd for inode, fd in by_inode.items() if inode not in before]
            for start in range(0, len(fresh), _PER_DATAGRAM):
                self._send(f"FDSTORE=1\nFDNAME={name}", fresh[start : start + _PER_DATAGRAM])
            self._stored[name] = frozenset(by_inode)

    def _send(self, state: str, descriptors: Sequence[int]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect(self._address)
            if descriptors:
                socket.send_fds(sock, [state.encode()], descriptors)
            else:
                sock.send(state.encode())
