"""An event loop whose time passes when nothing else is to be done, and as far as it has to.

In: a coroutine. Out: what it returns, at once, whatever it waited for; the loop's time says how long that was. What is done in a thread is
done in the loop. Must never be used with sockets: a loop that waits for one would only let time pass.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

_T = TypeVar("_T")


class _Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "nobody will ever wake this loop"
            self.passed += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.virtual = _Selector()
        super().__init__(self.virtual)

    def time(self) -> float:
        return 1000.0 + self.virtual.passed


def run_virtually(main: Coroutine[Any, Any, _T], monkeypatch: pytest.MonkeyPatch) -> _T:
    """Run to the end."""

    async def at_once(do: Callable[..., _T], /, *args: Any) -> _T:
        return do(*args)

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
