"""Tests that are coroutines run on a loop of their own, within a deadline."""

from __future__ import annotations

import asyncio
import inspect

import pytest

DEADLINE = 60.0  # seconds: only a hang comes near it


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run them."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def within_deadline() -> None:
        async with asyncio.timeout(DEADLINE):
            await pyfuncitem.obj(**arguments)

    asyncio.run(within_deadline())
    return True
