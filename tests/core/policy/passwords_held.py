"""The slow hashes of a World, one by one as a test lets them.

In: a World. Out: its engine's thread, which waits before each hash. Must never: judge a password itself.
"""

from __future__ import annotations

import threading

from core.world import World
from edgefast.auth.htpasswd import verify
from edgefast.core.policy.passwords import Passwords


class Held:
    """Hashes that a test lets begin."""

    def __init__(self, world: World) -> None:
        self.begun = 0
        self.tried: list[bytes] = []
        self._free = threading.Semaphore(0)
        self._passwords = Passwords(world.loop, self._check)
        world.engine.hold_passwords(self._passwords)

    @property
    def waiting(self) -> int:
        """Jobs that are not over."""
        return self._passwords.count

    def let(self, count: int) -> None:
        """Let so many begin."""
        self._free.release(count)

    def _check(self, kept: bytes, password: bytes) -> bool:
        self.begun += 1
        self.tried.append(kept)
        self._free.acquire()  # of a daemon: nobody waits for it in vain
        return verify(kept, password)
