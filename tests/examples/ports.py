"""Examples and README blocks with their fixed ports replaced by free ones."""

from __future__ import annotations

import re

from wire.harness.ports import free_port

#: Listeners 8080 and 8443, origins 3001-3009, admin, metrics and readiness.
_FIXED = re.compile(r"(?<![\w.])(8080|8443|300[1-9]|1900[013])(?!\w)")


class Ports:
    """One free port for each fixed one that a text has."""

    def __init__(self) -> None:
        self._chosen: dict[str, int] = {}

    def __getitem__(self, fixed: int | str) -> int:
        key = str(fixed)
        if key not in self._chosen:
            self._chosen[key] = free_port()
        return self._chosen[key]

    def choose(self, fixed: int, port: int) -> None:
        """Take this port for a fixed one."""
        self._chosen[str(fixed)] = port

    def replace(self, text: str) -> str:
        """The text with free ports."""
        return _FIXED.sub(lambda match: str(self[match[1]]), text)
