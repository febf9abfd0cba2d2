"""Run a test that is a coroutine on an event loop of its own, within a deadline.

A parameter that is an asynchronous context manager is entered first, and the test gets what it yields. A fixture
`loop_factory` chooses the event loop. `tests/core` runs its coroutines on its own worlds.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect

import pytest

DEADLINE = 110.0  # seconds for one test: only a test that hangs takes as long


async def _run(item: pytest.Function) -> None:
    async with asyncio.timeout(DEADLINE), contextlib.AsyncExitStack() as stack:
        arguments = {}
        for name in inspect.signature(item.obj).parameters:
            value = item.funcargs[name]
            if isinstance(value, contextlib.AbstractAsyncContextManager):
                value = await stack.enter_async_context(value)
            arguments[name] = value
        await item.obj(**arguments)


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the test when it is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    with asyncio.Runner(loop_factory=pyfuncitem.funcargs.get("loop_factory")) as runner:
        runner.run(_run(pyfuncitem))
    return True
