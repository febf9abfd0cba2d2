"""A worker whose engine does what the names of clusters tell it: the real one, with faults on order.

In: the agent's messages, as any worker. A cluster named `refuse...` is refused, `die...` ends the
process in the middle of the swap, `hang...` blocks the loop for ever, `starve...` runs out of
descriptors. `short...` is refused for a shortage the first time. Everything else goes to the real
engine.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from typing import Any

import edgefast.core

_Change = tuple[str, str, str, int, int]


class FaultyEngine:
    """Stands in front of `Engine`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._engine = edgefast.core.Engine(*arguments, **options)
        self._upstream_tls = options["upstream_tls"]
        self._seen: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def apply(self, changes: Sequence[_Change], version: str) -> list[tuple[str, str, str]]:
        refused = []
        taken = []
        for change in changes:
            op, type_, name = change[:3]
            if op == "put" and type_ == "cluster" and name.startswith("refuse"):
                refused.append((type_, name, "ordered to refuse"))
            elif op == "put" and type_ == "cluster" and name.startswith("die"):
                os._exit(3)
            elif op == "put" and type_ == "cluster" and name.startswith("hang"):
                time.sleep(1000)
            elif op == "put" and type_ == "cluster" and name.startswith("starve"):
                raise OSError(errno.EMFILE, "Too many open files")
            elif op == "put" and type_ == "cluster" and name.startswith("short"):
                if name in self._seen:
                    taken.append(change)
                else:
                    self._seen.add(name)
                    refused.append((type_, name, "ordered to be short"))
                    self._upstream_tls.short = True
            else:
                taken.append(change)
        answer: list[tuple[str, str, str]] = self._engine.apply(taken, version)
        return answer + refused


if __name__ == "__main__":
    from edgefast.proxy.worker import worker

    vars(worker)["Engine"] = FaultyEngine
    worker.main()
