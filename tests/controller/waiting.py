"""Wait for a condition, and run coroutines beside a test; never for a fixed time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any


async def until(condition: Callable[[], object], what: str = "", seconds: float = 60.0) -> None:
    """Return when the condition holds; AssertionError naming `what` when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not so after {seconds} s: {what or condition}")
        await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def running(*runs: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run things beside a test, and end them with it; what they raise fails the test."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in runs]
        try:
            yield
        finally:
            for one in tasks:
                one.cancel()
